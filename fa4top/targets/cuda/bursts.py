"""Timing of launches on one stream. Workers only."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from fa4top.targets.cuda.trace_buffer import NOBODY, TraceBuffer
from fa4top.targets.launcher import Burst, Capture

PRIMERS = 2  # launches before the timed ones: they take the ramp of the clock and the cold caches


def timed_burst(cupy: Any, stream: Any, launch: Callable[[], None], launches: int) -> Burst:
    """``launches`` back-to-back launches after the primers; an event pair around each, microseconds."""
    events = [cupy.cuda.Event() for _ in range(launches + 1)]
    for _ in range(PRIMERS):
        launch()
    events[0].record(stream)
    for event in events[1:]:
        launch()
        event.record(stream)
    stream.synchronize()
    elapsed = cupy.cuda.get_elapsed_time
    return Burst([elapsed(a, b) * 1000.0 for a, b in itertools.pairwise(events)], None)


def traced_launch(
    cupy: Any, stream: Any, launch: Callable[[], None], buffer: TraceBuffer, cta: int, generation: int
) -> Capture:
    """Primers that record nothing, so that the clock is where the clean twin's bursts have it, then one launch that
    records this CTA."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    buffer.record_async(0, NOBODY, generation)
    for _ in range(PRIMERS):
        launch()
    buffer.record_async(1, cta, generation)
    begin.record(stream)
    launch()
    end.record(stream)
    capture = buffer.capture()
    return Capture(capture, generation, cta, cupy.cuda.get_elapsed_time(begin, end) * 1000.0)
