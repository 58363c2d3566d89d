"""The profiler's first version: 64-bit entries, no buffer of its own."""

from __future__ import annotations

NUM_GROUPS = 4
EVENT_NAMES = [
    "QK", "PV", "EXP", "QUANT", "ROWMAX", "ROWSUM", "WAIT_S", "SIGNAL_P", "WAIT_P", "unused", "CORRECTION", "unused",
]  # fmt: skip


def allocate_profiler_buffer(max_events_per_group=256, num_blocks=256):
    """64-bit words."""
    import torch

    return torch.zeros(2 + max_events_per_group * num_blocks * NUM_GROUPS, dtype=torch.int64)


def decode_events(buffer):
    """The interface that tells the version."""
    raise NotImplementedError("fa4top refuses this version")
