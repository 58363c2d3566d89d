"""CUDA's names of what a kernel did wrong, in words."""

from __future__ import annotations

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
