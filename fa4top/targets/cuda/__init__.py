"""What targets of our own CUDA C++ share: NVRTC with a disk cache, tensor maps, trace buffers."""
