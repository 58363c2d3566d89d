"""Step metrics of one role: period, waits by cause, busy, tile overhead. Definitions: design.md, Metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fa4top.analysis.decode import I64, RoleTrace
from fa4top.analysis.events import EVENTS, event_id
from fa4top.records import RoleSample

PERIODS_KEPT = 48


@dataclass(frozen=True)
class StepRule:
    """What begins a step of a role: an event's mark, or its begin; ``per_stage`` when each Q stage has one."""

    event: str
    is_mark: bool
    per_stage: bool = False


STEP_RULES: dict[str, dict[str, StepRule]] = {
    "sm90": {role: StepRule("step", True) for role in ("mma0", "mma1", "mma2")},
    "sm100": {
        # with two Q stages one KV iteration is two PV GEMMs, and two looks at the softmax statistics
        "mma": StepRule("PV", False, per_stage=True),
        "softmax0": StepRule("step", True),
        "softmax1": StepRule("step", True),
        "correction": StepRule("wait stats", False, per_stage=True),
    },
    "builtin": {
        "mma": StepRule("step", True, per_stage=True),
        "softmax0": StepRule("step", True),
        "softmax1": StepRule("step", True),
    },
    "fork": {
        "mma": StepRule("PV", False, per_stage=True),
        "softmax0": StepRule("wait S", False),
        "softmax1": StepRule("wait S", False),
    },
}
STEP_ROLE: dict[str, str] = {"sm90": "mma0", "sm100": "softmax0", "builtin": "softmax0", "fork": "softmax0"}
WAITS: dict[int, str] = {event.id: event.wait for event in EVENTS if event.wait}


def q_stages(traces: list[RoleTrace]) -> int:
    """Q stages of the launch: 1 when the second softmax warpgroup had nothing to do (short sequences)."""
    return 2 if any(trace.role == "softmax1" and trace.stream.recorded for trace in traces) else 1


def step_begins(trace: RoleTrace, family: str, stages: int) -> I64:
    """Clocks at which the steps of this role begin."""
    rule = STEP_RULES[family].get(trace.role)
    if rule is None:
        return np.zeros(0, dtype=np.int64)
    event = event_id(rule.event)
    begins = trace.marks(event) if rule.is_mark else trace.spans(event)[0]
    return begins[::stages] if rule.per_stage else begins


def step_gaps(begins: I64, tile_ends: I64) -> tuple[I64, npt.NDArray[np.bool_]]:
    """Gaps between consecutive step begins, and which of them lie within one tile."""
    if len(begins) < 2:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    gaps = np.diff(begins)
    tile = np.searchsorted(tile_ends, begins, side="right")
    return gaps, tile[1:] == tile[:-1]


def role_sample(trace: RoleTrace, family: str, measured: frozenset[str], stages: int) -> RoleSample:
    """Metrics of one role.

    Args:
        stages: Q stages of the launch.
        measured: wait causes that the probe set can see in this role; one that never blocked is 0, others are absent.
    """
    begins = step_begins(trace, family, stages)
    tile_ends = trace.marks(event_id("tile"))
    gaps, inside = step_gaps(begins, tile_ends)
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
        trace.role,
        steps,
        tiles,
        median,
        p5,
        p95,
        busy,
        waits,
        overhead,
        float(cycles) if cycles is not None else None,
        [int(x) for x in inner[::every][:PERIODS_KEPT]],
    )
