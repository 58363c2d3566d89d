"""A few steps of one launch as spans on one clock, for the Gantt pane. All roles of a CTA share the SM's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fa4top.analysis.trace.decode import I64, RoleTrace
from fa4top.analysis.trace.events import BY_ID, event_id
from fa4top.analysis.trace.family import Family, WorkSpan
from fa4top.analysis.trace.steps import WAITS, Steps
from fa4top.records import Span, Timeline, TimelineRow

STEPS_SHOWN = 4
SPANS_PER_ROW = 64
Bar = tuple[str, int, int, bool]  # name, begin and end in the role's cycles, is it a wait?


def _offset(trace: RoleTrace, base: RoleTrace) -> int:
    difference = (trace.stream.first_clock - base.stream.first_clock) & 0xFFFFFFFF
    return difference - (1 << 32) if difference >= 1 << 31 else difference


def _clocks(trace: RoleTrace, name: str) -> I64:
    """Where an event of this name stands: its marks, or where its spans begin; with ``~`` in front, where they end."""
    event = event_id(name.removeprefix("~"))
    begins, ends = trace.spans(event)
    if name.startswith("~"):
        return ends
    marks = trace.marks(event)
    return marks if len(marks) else begins


def _next(clocks: I64, begin: int) -> int | None:
    at = int(np.searchsorted(clocks, begin))
    return int(clocks[at]) if at < len(clocks) else None


def _work(trace: RoleTrace, rules: Sequence[WorkSpan], low: int, high: int) -> list[Bar]:
    """Work between marks, where coarse probes leave it unnamed."""
    spans: list[Bar] = []
    for rule in rules:
        begins, ends = _clocks(trace, rule.begin), _clocks(trace, rule.end)
        after = _clocks(trace, f"~{rule.after}") if rule.after else None
        for begin in begins[(begins >= low) & (begins < high)]:
            end = _next(ends, int(begin))
            if end is None:
                end = high if rule.to_window else None
            if end is None or end <= begin:
                continue
            ready = _next(after, int(begin)) if after is not None else None
            spans.append((rule.name, ready if ready is not None and ready < end else int(begin), end, False))
    return spans


def timeline(
    traces: Sequence[RoleTrace], family: Family, steps: Mapping[str, Steps], steps_of_tile: int
) -> Timeline | None:
    """Cut a window of whole steps out of the middle of a tile; None when there are too few steps.

    Args:
        steps: those of each role.
    """
    base = next((trace for trace in traces if trace.role == family.lead), None)
    if base is None:
        return None
    begins, gaps, inside = steps[base.role].begins, steps[base.role].gaps, steps[base.role].inside
    if len(gaps) < STEPS_SHOWN:
        return None
    starts = np.flatnonzero(np.lib.stride_tricks.sliding_window_view(inside, STEPS_SHOWN).all(axis=1))
    if not len(starts):
        return None
    # a role whose recording stopped early would have no spans: a window that all of them saw, if there is one
    ends = [int(t.stream.clock[-1]) + _offset(t, base) for t in traces if len(t.stream.clock)]
    seen = starts[begins[starts + STEPS_SHOWN] <= min(ends)]
    starts = seen if len(seen) else starts
    start = int(starts[np.argmin(np.abs(starts - len(gaps) // 2))])
    low, high = int(begins[start]), int(begins[start + STEPS_SHOWN])
    if not 0 < high - low < 1 << 30:
        return None
    rows = []
    for trace in traces:
        shift = _offset(trace, base)
        own_low, own_high = low - shift, high - shift
        spans = _work(trace, family.work.get(trace.role, ()), own_low, own_high)
        for event in np.unique(trace.pairs.event):
            begin, end = trace.spans(int(event))
            keep = (end > own_low) & (begin < own_high)
            name = BY_ID[int(event)].name if int(event) in BY_ID else f"event {event}"
            wait = int(event) in WAITS
            spans += [(name, int(b), int(e), wait) for b, e in zip(begin[keep], end[keep], strict=True)]
        spans.sort(key=lambda span: (span[1], span[2]))
        rows.append(
            TimelineRow(
                trace.role,
                [
                    Span(name, max(0, b + shift - low), min(high, e + shift) - low, wait)
                    for name, b, e, wait in spans[:SPANS_PER_ROW]
                    if min(high, e + shift) - low > max(0, b + shift - low)
                ],
            )
        )
    borders = np.flatnonzero(~inside[:start])
    first = start - (int(borders[-1]) + 1 if len(borders) else 0)
    return Timeline(
        first_step=first, last_step=first + STEPS_SHOWN - 1, steps_of_tile=steps_of_tile, cycles=high - low, rows=rows
    )
