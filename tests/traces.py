"""Helpers for tests of traces: tags as the probes write them, and a buffer's record in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.capture import Capture
from fa4top.analysis.trace.decode import RoleTrace, decode_role
from fa4top.analysis.trace.family import Family
from fa4top.analysis.trace.layout import GENERATION_SHIFT, MAX_GENERATION, BufferLayout
from fa4top.analysis.trace.sample import Sampling, trace_sample
from fa4top.records import TraceSample


def make_tag(generation: int, event: int, kind: int) -> int:
    """A tag as the device composes it (kernels/trace.cuh)."""
    if not 1 <= generation <= MAX_GENERATION or not 0 <= event < 64 or not 0 <= kind < 4:
        raise ValueError(f"tag field out of range: {generation=} {event=} {kind=}")
    return generation << GENERATION_SHIFT | event << 2 | kind


def sampled(
    capture: Capture,
    layout: BufferLayout,
    family: Family,
    *,
    timeline: bool = False,
    steps_of_tile: int = 0,
    probe_set: str = "coarse",
    **named: Any,
) -> TraceSample:
    """The record of one capture."""
    facts: dict[str, Any] = {"worker": "w", "plan_id": 1, "launch": 1, "detail": False} | named
    sampling = Sampling(**facts, probe_set=probe_set, timeline=timeline, steps_of_tile=steps_of_tile)
    return trace_sample(capture, layout, family, sampling)


def analysed(
    buffer: npt.NDArray[np.uint8],
    layout: BufferLayout,
    family: Family,
    generation: int,
    *,
    cta: int = 0,
    time_us: float = 0.0,
    **named: Any,
) -> TraceSample:
    """The record of a compact buffer."""
    capture = Capture(recorded=layout.views(buffer), generation=generation, cta=cta, time_us=time_us)
    return sampled(capture, layout, family, **named)


def role_of(buffer: npt.NDArray[np.uint8], layout: BufferLayout, role: int, generation: int) -> RoleTrace | None:
    """One role of a compact buffer."""
    return decode_role(layout.views(buffer), layout, role, generation)
