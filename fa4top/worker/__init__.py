"""The child process that owns a kernel. It alone imports CuPy, torch or the CuTe DSL."""
