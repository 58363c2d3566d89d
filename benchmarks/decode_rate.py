"""Events a second of the decoder on one core, for both kinds of buffers: 8-byte events and 16-byte step records.

    python benchmarks/decode_rate.py [--millions 4]

A slow decoder of the same format (one Python object an event, as public decoders do it) runs beside it in the same
process; only ratios and the order of magnitude carry over to other machines.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fa4top.analysis.trace.decode import decode_events, decode_records, pair  # noqa: E402
from fa4top.analysis.trace.events import WIDE_STEP, event_id  # noqa: E402
from fa4top.analysis.trace.layout import BEGIN, END, GENERATION_SHIFT, MARK, WIDE  # noqa: E402

GENERATION = 7


def event_slots(count: int) -> npt.NDArray[np.uint32]:
    """A softmax role's pattern, repeated: step, wait S, first part, rest, wait corr."""
    pattern = [("step", MARK), ("wait S", BEGIN), ("wait S", END), ("P 1st part", MARK), ("P rest", MARK),
               ("wait corr", BEGIN), ("wait corr", END)]  # fmt: skip
    tags = np.array([event_id(name) << 2 | kind for name, kind in pattern], dtype=np.uint32)
    slots = np.empty((count, 2), dtype=np.uint32)
    slots[:, 0] = np.resize(tags, count) | np.uint32(GENERATION << GENERATION_SHIFT)
    slots[:, 1] = (np.arange(count, dtype=np.uint64) * 270 + 2**32 - 10_000).astype(np.uint32)
    return slots


def record_slots(count: int) -> npt.NDArray[np.uint32]:
    """Hopper step records; each stands for up to seven events."""
    slots = np.empty((count, 4), dtype=np.uint32)
    slots[:, 0] = GENERATION << GENERATION_SHIFT | WIDE_STEP << 2 | WIDE
    slots[:, 1] = (np.arange(count, dtype=np.uint64) * 2400).astype(np.uint32)
    slots[:, 2] = slots[:, 1] + np.uint32(40)
    slots[:, 3] = 30 | 20 << 16
    return slots


def slow(slots: npt.NDArray[np.uint32]) -> int:
    """One event at a time."""
    open_at: dict[int, int] = {}
    spans = []
    for tag, clock in slots.tolist():
        if tag >> GENERATION_SHIFT != GENERATION:
            continue
        event, kind = tag >> 2 & 63, tag & 3
        if kind == BEGIN:
            open_at[event] = clock
        elif kind == END and event in open_at:
            spans.append((event, (clock - open_at.pop(event)) & 0xFFFFFFFF))
    return len(spans)


def best_rate(work: Callable[[], object], events: int, repeats: int) -> float:
    """Millions of events a second, the best of some repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return events / min(times) / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, default=4.0)
    options = parser.parse_args()
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    count = int(options.millions * 1e6)
    events, records = event_slots(count), record_slots(count // 7)
    launch = event_slots(12_312)  # one launch of the simulated GB300, s8192
    few = event_slots(200_000)
    stream = decode_records(records, GENERATION)
    rates = {
        "8-byte events, decode and pair": best_rate(lambda: pair(decode_events(events, GENERATION)), count, 7),
        "  the same, one launch at a time": best_rate(lambda: pair(decode_events(launch, GENERATION)), 12_312, 200),
        "16-byte records, decode and pair": best_rate(
            lambda: pair(decode_records(records, GENERATION)), len(stream.key), 7
        ),
        "one event at a time (Python objects)": best_rate(lambda: slow(few), len(few), 3),
    }
    base = rates["one event at a time (Python objects)"]
    for name, rate in rates.items():
        print(f"{name:38} {rate:8.2f} million events/s   {rate / base:6.1f} x")


if __name__ == "__main__":
    main()
