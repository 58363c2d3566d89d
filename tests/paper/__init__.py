"""A machine of paper: an NVML with two GPUs, and an interpreter whose workers stop where a real kernel would start."""
