"""What ended a worker, as a fault that says what it means and what to try."""

from __future__ import annotations

from fa4top.records import Fault
from fa4top.targets.launcher import TargetError

COMPILING, RUNNING = "compiling", "running"
OUT_OF_MEMORY = ("out of memory", "OutOfMemory", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")
# reasons that a fresh process would only repeat
PERMANENT = frozenset(
    {
        "missing package",
        "unsupported GPU",
        "compile error",
        "unknown package layout",
        "probes missing",
        "unknown probe set",
        "out of memory",
    }
)

# parts of CUDA's texts (driver and runtime, as CuPy and torch print them), lower case: what it means
MEANINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("illegal address", "illegal memory access", "cuda_error_illegal_address", "cudaerrorillegaladdress"),
        "the kernel read or wrote an address that is not its own: a descriptor, a stage or an index went wrong",
    ),
    (
        ("illegal instruction", "cuda_error_illegal_instruction", "cudaerrorillegalinstruction"),
        "the GPU met an instruction that it does not have, or one with a corrupt descriptor",
    ),
    (
        ("misaligned address", "cuda_error_misaligned_address", "cudaerrormisalignedaddress"),
        "an address does not have the alignment that the instruction wants",
    ),
    (
        ("device-side assert", "cuda_error_assert", "cudaerrorassert"),
        "an assertion in the kernel failed: the worker's log has its text",
    ),
    (
        ("launch timeout", "launch timed out", "cuda_error_launch_timeout", "cudaerrorlaunchtimeout"),
        "the driver ended a kernel that took too long: a display's watchdog is on",
    ),
    (
        ("unspecified launch failure", "cuda_error_launch_failed", "cudaerrorlaunchfailure"),
        "the kernel failed in a way that the driver does not name: often a bad address in shared memory",
    ),
)


def plain(text: str) -> str:
    """The message with what it means behind it, where that is known."""
    lower = text.lower()
    for names, meaning in MEANINGS:
        if any(name in lower for name in names):
            return f"{text} ({meaning})"
    return text


def is_cuda_error(error: BaseException) -> bool:
    """Exceptions of CuPy, torch and the DSL have no common class; their texts name CUDA."""
    return "cuda" in f"{type(error).__name__}: {error}".lower()


def fault_of(error: BaseException, worker: str, plan_id: int, stage: str, danger: str = "") -> Fault:
    """The record of what ended a worker.

    Args:
        stage: COMPILING or RUNNING.
        danger: what is known to be wrong with the setting, to be added to a CUDA error.
    """
    reason, hint = "exception", "the worker's log has the traceback"
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    if isinstance(error, TargetError):
        reason, hint, text = error.reason, error.hint or hint, error.text
    elif isinstance(error, MemoryError) or any(word in str(error) for word in OUT_OF_MEMORY):
        reason, hint = "out of memory", "choose a smaller shape (b, s or h), or free the GPU"
    elif isinstance(error, ModuleNotFoundError):
        reason = "missing package"
        hint = "fa4top doctor says what this interpreter lacks; --python PATH chooses another"
    elif is_cuda_error(error):
        reason, hint = "CUDA error", "the process is replaced; if it comes back, run compute-sanitizer on it"
        text = f"{plain(text)}{danger}"
    elif stage == COMPILING:
        reason, hint = "compile error", "the worker's log has the compiler's words"
    return Fault(worker=worker, plan_id=plan_id, reason=reason, text=text, hint=hint, permanent=reason in PERMANENT)
