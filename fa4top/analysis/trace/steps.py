"""Step metrics of one role: period, waits by cause, busy, tile overhead. Definitions: design.md, Metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.decode import I64, RoleTrace
from fa4top.analysis.trace.events import EVENTS, event_id
from fa4top.analysis.trace.family import Family
from fa4top.records import RoleSample

PERIODS_KEPT = 48


WAITS: dict[int, str] = {event.id: event.wait for event in EVENTS if event.wait}


def q_stages(traces: Sequence[RoleTrace], family: Family) -> int:
    """Q stages of the launch: 1 when the second softmax warpgroup had nothing to do (short sequences)."""
    return 2 if any(trace.role == family.stage_role and trace.stream.recorded for trace in traces) else 1


def step_begins(trace: RoleTrace, family: Family, stages: int) -> I64:
    """Clocks at which the steps of this role begin."""
    rule = family.steps.get(trace.role)
    if rule is None:
        return np.zeros(0, dtype=np.int64)
    event = event_id(rule.event)
    begins = trace.marks(event) if rule.is_mark else trace.spans(event)[0]
    return begins[::stages] if rule.per_stage else begins


@dataclass(frozen=True)
class Steps:
    """The steps of one role: where they begin, the gaps between them, and which gaps lie within one tile."""

    begins: I64
    gaps: I64
    inside: npt.NDArray[np.bool_]
    tile_ends: I64


def steps_of(trace: RoleTrace, family: Family, stages: int) -> Steps:
    """Steps of a role, from its marks."""
    begins, tile_ends = step_begins(trace, family, stages), trace.marks(event_id("tile"))
    gaps, inside = step_gaps(begins, tile_ends)
    return Steps(begins, gaps, inside, tile_ends)


def step_gaps(begins: I64, tile_ends: I64) -> tuple[I64, npt.NDArray[np.bool_]]:
    """Gaps between consecutive step begins, and which of them lie within one tile."""
    if len(begins) < 2:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    gaps = np.diff(begins)
    tile = np.searchsorted(tile_ends, begins, side="right")
    return gaps, tile[1:] == tile[:-1]


def role_sample(trace: RoleTrace, found: Steps, measured: frozenset[str]) -> RoleSample:
    """Metrics of one role.

    Args:
        measured: wait causes that the probe set can see in this role; one that never blocked is 0, others are absent.
    """
    begins, gaps, inside, tile_ends = found.begins, found.gaps, found.inside, found.tile_ends
    inner = gaps[inside & (gaps > 0)]
    steps = len(begins)
    waits: dict[str, float] = {}
    waited_inside = 0.0
    for event, cause in WAITS.items():
        begin, end = trace.spans(event)
        if cause not in measured and not len(begin):
            continue
        length = (end - begin).clip(min=0)
        if len(begins) >= 2 and len(inner):
            index = np.searchsorted(begins, begin, side="right") - 1
            counted = (index >= 0) & (index < len(gaps))
            counted[counted] &= inside[index[counted]]
            total = float(length[counted].sum())
            waits[cause] = total / len(inner)
            waited_inside += total
        else:
            waits[cause] = float(length.sum()) / max(1, steps)
    median = p5 = p95 = busy = overhead = None
    if len(inner):
        p5, median, p95 = (float(x) for x in np.percentile(inner, (5, 50, 95)))
        busy = (float(inner.sum()) - waited_inside) / len(inner)
    cycles = trace.header.cycles
    tiles = len(tile_ends)
    if cycles is not None and len(inner) and tiles:
        overhead = (cycles - steps * float(inner.mean())) / tiles
    every = max(1, len(inner) // PERIODS_KEPT)
    return RoleSample(
        role=trace.role,
        steps=steps,
        tiles=tiles,
        period_median_cycles=median,
        period_p5_cycles=p5,
        period_p95_cycles=p95,
        busy_cycles=busy,
        waits_cycles=waits,
        tile_overhead_cycles=overhead,
        role_cycles=float(cycles) if cycles is not None else None,
        periods_cycles=[int(x) for x in inner[::every][:PERIODS_KEPT]],
    )
