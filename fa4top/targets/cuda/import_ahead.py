"""What a worker that stands by for our own kernels imports before it knows its setting."""

from __future__ import annotations


def import_ahead(knobs: dict[str, str]) -> None:
    """CuPy takes a second or two."""
    del knobs
    import cupy  # noqa: F401
