"""The fork's figures of one block, by its own definitions, and a table of its events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fa4top.analysis.trace.decode import I64, Pairs, RoleTrace
from fa4top.analysis.trace.events import BY_ID, event_id
from fa4top.targets.fork.trace_buffer import ForkTrace


@dataclass(frozen=True)
class ForkMetrics:
    """The fork's own figures, cycles; None where nothing was recorded.

    By its ``step_stats``: ``softmax_period`` median gap between begins of wait S, mean over the warpgroups;
    ``softmax_busy`` all spans but wait S and wait corr over the number of waits for S; ``mma_qk_pv`` mean QK and mean
    PV, the embedded wait for the second signal included; ``mma_wait_p`` and ``p2_wait`` means. By its ``stage_totals``:
    ``softmax_stage`` exp, quantise and row max a step, the larger warpgroup's.
    """

    softmax_period: float | None
    softmax_busy: float | None
    softmax_stage: float | None
    mma_qk_pv: float | None
    mma_wait_p: float | None
    p2_wait: float | None


def _lengths(trace: RoleTrace, name: str) -> I64:
    begin, end = trace.spans(event_id(name))
    lengths: I64 = end - begin
    return lengths


def _mean(trace: RoleTrace | None, name: str) -> float | None:
    lengths = _lengths(trace, name) if trace is not None else np.zeros(0, dtype=np.int64)
    return float(lengths.mean()) if len(lengths) else None


def _average(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def fork_metrics(trace: ForkTrace) -> ForkMetrics:
    """The fork's figures of one block: whole trace, first and boundary steps included, as it does."""
    mma = trace.role("mma")
    groups = [role for name in ("softmax0", "softmax1") if (role := trace.role(name)) is not None]
    periods, busy, stages = [], [], []
    for role in groups:
        begins = role.spans(event_id("wait S"))[0]
        if len(begins) > 1:
            periods.append(float(np.median(np.diff(begins))))
        if len(begins):
            work = sum(int(_lengths(role, n).sum()) for n in ("exp2", "quantise P", "row max", "store P"))
            busy.append(work / len(begins))
            stages.append(sum(int(_lengths(role, n).sum()) for n in ("exp2", "quantise P", "row max")) / len(begins))
    qk, pv = _mean(mma, "QK"), _mean(mma, "PV")
    return ForkMetrics(
        _average(periods),
        _average(busy),
        max(stages) if stages else None,
        qk + pv if qk is not None and pv is not None else None,
        _mean(mma, "wait P"),
        _mean(mma, "wait P 2nd"),
    )


@dataclass(frozen=True)
class EventRow:
    """One event of one role: count, total and mean cycles, and its share of the role's window."""

    role: str
    name: str
    count: int
    total_cycles: int
    mean_cycles: float
    window_share: float


def summarise(trace: ForkTrace) -> list[EventRow]:
    """By role and event; the window is from the role's first event to its last."""
    rows = []
    for role in trace.roles:
        window = int(role.stream.clock[-1] - role.stream.clock[0]) if len(role.stream.clock) else 0
        pairs: Pairs = role.pairs
        for event in np.unique(pairs.event):
            lengths = _lengths(role, BY_ID[int(event)].name)
            total = int(lengths.sum())
            rows.append(
                EventRow(
                    role.role, BY_ID[int(event)].name, len(lengths), total, total / len(lengths), total / max(1, window)
                )
            )
    return rows
