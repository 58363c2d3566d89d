"""fa4top: a terminal live profiler for FlashAttention-4 kernels."""

__version__ = "0.1.0"
