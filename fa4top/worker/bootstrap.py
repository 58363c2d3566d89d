"""Run as a script, by path, under any Python >= 3.10: makes this copy of fa4top importable and starts the worker.

Only the package ``fa4top`` is added to the interpreter: not the site-packages it lies in, whose NumPy or torch would
shadow the interpreter's own.
"""

import contextlib
import ctypes
import importlib.util
import pathlib
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> int:
    """Make the package importable and run the worker."""
    # a worker that hangs in a kernel never reads the end of its commands: the kernel ends it with the engine
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    package = pathlib.Path(__file__).resolve().parent.parent
    # the script's own folder must not shadow top-level names
    sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve() != package / "worker"]
    spec = importlib.util.spec_from_file_location(
        "fa4top", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        print(f"no fa4top package at {package}", file=sys.stderr)
        return 3
    module = importlib.util.module_from_spec(spec)
    sys.modules["fa4top"] = module
    spec.loader.exec_module(module)
    from fa4top.worker.loop import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
