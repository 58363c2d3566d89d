"""A few steps of one launch as spans on one clock, for the Gantt pane. All roles of a CTA share the SM's clock."""

from __future__ import annotations

import numpy as np

from fa4top.analysis.decode import RoleTrace
from fa4top.analysis.events import BY_ID, event_id
from fa4top.analysis.steps import STEP_ROLE, q_stages, step_begins, step_gaps
from fa4top.records import Span, Timeline, TimelineRow

STEPS_SHOWN = 4
SPANS_PER_ROW = 64


def _offset(trace: RoleTrace, base: RoleTrace) -> int:
    difference = (trace.stream.first_clock - base.stream.first_clock) & 0xFFFFFFFF
    return difference - (1 << 32) if difference >= 1 << 31 else difference


def _work(trace: RoleTrace, family: str, low: int, high: int) -> list[tuple[str, int, int]]:
    """Work between marks, where coarse probes leave it unnamed."""
    step = event_id("step")
    spans: list[tuple[str, int, int]] = []
    if family == "sm90":
        begins = trace.marks(step)
        turn_begins = trace.spans(event_id("turn"))[0]
        for begin in begins[(begins >= low) & (begins < high)]:
            later = turn_begins[np.searchsorted(turn_begins, begin) :][:1]
            spans.append(("step", int(begin), int(later[0]) if len(later) else high))
    elif trace.role.startswith("softmax"):
        order = [trace.marks(step), trace.marks(event_id("P 1st part")), trace.marks(event_id("P rest"))]
        waits_s = trace.spans(event_id("wait S"))[1]
        for begin in order[0][(order[0] >= low) & (order[0] < high)]:
            ready = waits_s[np.searchsorted(waits_s, begin) :][:1]
            first = order[1][np.searchsorted(order[1], begin) :][:1]
            rest = order[2][np.searchsorted(order[2], begin) :][:1]
            start = int(ready[0]) if len(ready) and len(first) and ready[0] < first[0] else int(begin)
            if len(first):
                spans.append(("softmax", start, int(first[0])))
                if len(rest) and rest[0] > first[0]:
                    spans.append(("P rest", int(first[0]), int(rest[0])))
    return spans


def timeline(traces: list[RoleTrace], family: str, steps_of_tile: int) -> Timeline | None:
    """Cut a window of whole steps out of the middle of a tile; None when there are too few steps."""
    base = next((trace for trace in traces if trace.role == STEP_ROLE[family]), None)
    if base is None:
        return None
    begins = step_begins(base, family, q_stages(traces))
    gaps, inside = step_gaps(begins, base.marks(event_id("tile")))
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
        spans = _work(trace, family, own_low, own_high)
        for event in np.unique(trace.pairs.event):
            begin, end = trace.spans(int(event))
            keep = (end > own_low) & (begin < own_high)
            name = BY_ID[int(event)].name if int(event) in BY_ID else f"event {event}"
            spans += [(name, int(b), int(e)) for b, e in zip(begin[keep], end[keep], strict=True)]
        spans.sort(key=lambda span: (span[1], span[2]))
        rows.append(
            TimelineRow(
                trace.role,
                [
                    Span(name, max(0, b + shift - low), min(high, e + shift) - low)
                    for name, b, e in spans[:SPANS_PER_ROW]
                    if min(high, e + shift) - low > max(0, b + shift - low)
                ],
            )
        )
    borders = np.flatnonzero(~inside[:start])
    first = start - (int(borders[-1]) + 1 if len(borders) else 0)
    return Timeline(first, first + STEPS_SHOWN - 1, steps_of_tile, high - low, rows)
