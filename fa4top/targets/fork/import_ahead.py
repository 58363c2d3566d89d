"""What a fork worker that stands by may import before it knows its setting: nothing that reads an FA4_* variable."""

from __future__ import annotations


def import_ahead(knobs: dict[str, str]) -> None:
    """Torch takes most of the time; flash_attn reads the environment, so it has to wait for the order."""
    import torch  # noqa: F401
