"""Trace buffers as the fork's profiler leaves them, both ways of recording, written from the contract (section 2)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

QK, PV, EXP, QUANT, ROWMAX, WAIT_S, STORE_P, WAIT_P, WAIT_CORR, WAIT_KV, WAIT_P2 = 0, 1, 2, 3, 4, 6, 7, 8, 10, 12, 13
BEGIN, END = 0, 1
RING = 128
GROUPS = 4

# cycles, so that every metric is known exactly
STEP = {"wait_s": 600, "row_max": 700, "exp": 1500, "quant": 300, "store": 230, "wait_corr": 170, "rest": 300}
PERIOD = sum(STEP.values())
MMA = {"wait_kv": 100, "wait_p": 950, "qk": 250, "before_p2": 300, "p2": 80, "after_p2": 20}


@dataclass
class Recorder:
    """Events of one group in program order: (event, kind, clock)."""

    now: int
    events: list[tuple[int, int, int]] = field(default_factory=list)

    def mark(self, event: int, kind: int) -> None:
        self.events.append((event, kind, self.now))

    def span(self, event: int, cycles: int) -> None:
        self.mark(event, BEGIN)
        self.now += cycles
        self.mark(event, END)


def softmax(start: int, steps: int, detail: bool) -> Recorder:
    """One softmax warpgroup: 8 or 12 events a step."""
    recorder = Recorder(start)
    for _ in range(steps):
        recorder.span(WAIT_S, STEP["wait_s"])
        if detail:
            recorder.span(ROWMAX, STEP["row_max"])
            recorder.span(EXP, STEP["exp"])
            recorder.span(QUANT, STEP["quant"])
        else:
            recorder.span(EXP, STEP["row_max"] + STEP["exp"] + STEP["quant"])
        recorder.span(STORE_P, STEP["store"])
        recorder.span(WAIT_CORR, STEP["wait_corr"])
        recorder.now += STEP["rest"]
    return recorder


def mma(start: int, blocks: int) -> Recorder:
    """The MMA warp of one tile: 4 + 18 (blocks - 1) + 12 events."""
    recorder = Recorder(start)

    def pv() -> None:
        recorder.mark(PV, BEGIN)
        recorder.now += MMA["before_p2"]
        recorder.span(WAIT_P2, MMA["p2"])
        recorder.now += MMA["after_p2"]
        recorder.mark(PV, END)

    for _ in range(2):
        recorder.span(QK, MMA["qk"])
    for _ in range(blocks - 1):
        recorder.span(WAIT_KV, MMA["wait_kv"])
        for _ in range(2):
            recorder.span(WAIT_P, MMA["wait_p"])
            pv()
            recorder.span(QK, MMA["qk"])
    for _ in range(2):
        recorder.span(WAIT_P, MMA["wait_p"])
        pv()
    return recorder


def buffer(
    recorders: dict[tuple[int, int], Recorder],
    blocks: int,
    size: int,
    *,
    sms: dict[int, int] | None = None,
    shared: bool = True,
    groups: int = GROUPS,
) -> npt.NDArray[np.uint32]:
    """A zeroed buffer of ``size`` words with these events in it.

    Args:
        recorders: by (block, group).
        shared: recorded into shared memory: 128 events a group, and the flush skips tags of zero.
    """
    words = np.zeros(size, dtype=np.uint32)
    words[0], words[1] = blocks, groups
    stride = blocks * groups
    for (block, group), recorder in recorders.items():
        sm = (sms or {}).get(block, block + 1)
        events = recorder.events[:RING] if shared else recorder.events
        for k, (event, kind, clock) in enumerate(events):
            tag = sm << 24 | (block & 0xFFF) << 12 | event << 2 | kind
            slot = 2 + 2 * (block * groups + group + k * stride)
            if slot + 1 >= size:
                if event == WAIT_P2:  # pairs without a place go to the last slot; others are dropped
                    words[size - 2], words[size - 1] = tag, clock & 0xFFFFFFFF
                continue
            if shared and not tag:
                continue
            words[slot], words[slot + 1] = tag, clock & 0xFFFFFFFF
    return words
