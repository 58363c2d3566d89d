"""Run as a script under any Python >= 3.8: prints as JSON what this interpreter has. Imports none of it."""

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys

MODULES = ["numpy", "cupy", "torch", "triton", "cutlass", "flash_attn", "ml_dtypes", "einops"]
DISTRIBUTIONS = [
    "numpy",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "cupy",
    "torch",
    "triton",
    "flash-attn-4",
    "nvidia-cutlass-dsl",
    "nvidia-cutlass-dsl-libs-cu13",
    "nvidia-cutlass-dsl-libs-cu12",
    "quack-kernels",
    "apache-tvm-ffi",
    "ml-dtypes",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cuda-nvcc",
    "nvidia-cuda-nvdisasm",
    "nvidia-cuda-cuobjdump",
]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    modules = {}
    for name in MODULES:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        modules[name] = None if spec is None else (spec.origin or next(iter(spec.submodule_search_locations or []), ""))
    interface = None
    spec = importlib.util.find_spec("flash_attn") if modules["flash_attn"] is not None else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        candidate = os.path.join(folder, "cute", "interface.py")
        if os.path.exists(candidate):
            interface = candidate
    versions = {}
    for name in DISTRIBUTIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    nvdisasm = None
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for place in ("cu13", "cuda_nvdisasm"):
            candidate = os.path.join(folder, place, "bin", "nvdisasm")
            if os.path.exists(candidate):
                nvdisasm = candidate
    print(
        json.dumps(
            {
                "python": platform.python_version(),
                "executable": sys.executable,
                "modules": modules,
                "flash_attn.cute.interface": interface,
                "versions": versions,
                "nvdisasm": nvdisasm,
            }
        )
    )


if __name__ == "__main__":
    main()
