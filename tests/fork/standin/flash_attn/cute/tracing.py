"""What the kernel's probes leave in the buffer: every block records."""

from __future__ import annotations

import numpy as np

from tests.fork.buffers import GROUPS, RING, mma, softmax


def write(buffer, *, hang, ring, detail, steps, blocks=8):
    """Events of one tile of every block, into shared memory (128 a group) or the buffer itself.

    Args:
        hang: the second signal of P was lost after some steps: MMA waits for it, softmax for S.
    """
    words = buffer.numpy().view(np.uint32)
    words[0], words[1] = blocks, GROUPS
    for block in range(blocks):
        recorders = {1: softmax(1000, steps, detail), 2: softmax(1100, steps, detail), 0: mma(900, steps)}
        for group, recorder in recorders.items():
            events = recorder.events
            if hang:
                events = events[: cut(group, detail, steps // 2)]
            events = events[:RING] if ring else events
            if ring and hang:
                continue  # the ring is flushed at the kernel's end
            for k, (event, kind, clock) in enumerate(events):
                tag = block << 24 | (block & 0xFFF) << 12 | event << 2 | kind
                slot = 2 + 2 * (block * GROUPS + group + k * blocks * GROUPS)
                if slot + 1 >= len(words) or (ring and not tag):
                    continue
                words[slot], words[slot + 1] = tag, clock & 0xFFFFFFFF


def cut(group, detail, step):
    """Events until everybody stands: MMA in the wait for P's second part, softmax in the wait for S."""
    if group == 0:
        return 4 + 18 * (step - 1) + 2 + 2 + 2  # ... wait KV, wait P, PV begin, wait P 2nd begin
    return (12 if detail else 8) * (step + 1) + 1
