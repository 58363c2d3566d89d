"""Screen 2's panes: the arms side by side, and the interval as it shrinks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import expm1

from fa4top.analysis.compare.verdict import detectable
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.tables import ab_rows, milestones
from fa4top.records import AbBlock, AbPair
from fa4top.ui.glyphs import Row, frame
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.scrolled import Scrolled


class AbTable(Scrolled):
    """What differs, then time, TFLOP/s, period, waits, clock, probe effect and output of both arms."""

    HELP = (
        "A left, B right. Time and TFLOP/s are the clean twins' medians; period and waits the traced twins'. The probe "
        "effect is each arm's own. Output: against A, bit for bit, and against FP32."
    )

    def table(self, snapshot: Snapshot, view: View, width: int) -> tuple[list[Row], list[Row]]:
        """Head and one row a line."""
        state = snapshot.ab
        if state is None:
            return [], [[(" no A/B yet: b compares the present setting (A) with another (B)", "dim")]]
        column = max(20, (width - 26) // 2)
        head: Row = [(f" {'':24}", "dim"), (f"{'A':{column}}", "role-a"), ("B", "role-b")]
        body: list[Row] = []
        differing = sum(state.a.get(name) != state.b.get(name) for name in {**state.a, **state.b})
        for number, (name, a, b) in enumerate(ab_rows(state, snapshot.ab_arms)):
            style = "strong" if number < differing else "text"
            body.append([(f" {name:24}", "dim"), (f"{a[: column - 1]:{column}}", style), (b, style)])
        return [head], body


class AbIntervals(Lines):
    """Confidence sequences after some of the blocks, on one axis; the line at 0 is "no difference"."""

    HELP = (
        "Each line: which changes of time (B against A) the blocks so far do not contradict; the dot is the estimate. "
        "The truth lies within all of them, at all times, with the stated probability. Left of 0: B is faster."
    )

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with an axis and the intervals."""
        state, count = snapshot.ab, max(1, height - 3)
        replicated = state is not None and state.tier == 2
        blocks: list[AbBlock] | list[AbPair]
        blocks = milestones(snapshot.ab_pairs, count) if replicated else milestones(snapshot.ab_blocks, count)
        title = "B against A, time"
        telling: list[AbBlock | AbPair] = [block for block in blocks if (block.high or 0.0) - (block.low or 0.0) < 1.3]
        if state is None or not telling:
            done = len(snapshot.ab_blocks)
            return frame(
                [[(f"  {done} blocks; an interval needs 9 after the pilot", "dim")]], width, height, title, self.g
            )
        inner = width - 2 - 11
        low, high = axis_range(telling, state.margin)
        body: list[Row] = [self._axis(inner, low, high)]
        body += [self._interval(block, inner, low, high, block is telling[-1]) for block in telling]
        foot = f"margin {100 * state.margin:g}%" + ("" if low <= 0.0 <= high else f" {self.g.dot} 0 lies outside")
        if not replicated and (seen := detectable_now(snapshot.ab_blocks)) is not None:
            foot += f" {self.g.dot} four runs in five would see {100 * expm1(seen):.2f}% by now"
        return frame(body, width, height, title, self.g, foot=foot)

    def _axis(self, width: int, low: float, high: float) -> Row:
        cells = [" "] * width
        digits = 2 if high - low > 0.002 else 3
        places = [low + (high - low) * share for share in (0.1, 0.5, 0.9)]
        if low < 0.0 < high:
            places = [0.0, *(place for place in places if abs(place) > 0.12 * (high - low))]
        for place in places:
            text = "0" if place == 0.0 else f"{100 * expm1(place):+.{digits}f}%"
            start = _column(place, width, low, high) - len(text) // 2
            for i, char in enumerate(text):
                if 0 <= start + i < width:
                    cells[start + i] = char
        return [(f"{'':11}", "dim"), ("".join(cells), "dim")]

    def _interval(self, block: AbBlock | AbPair, width: int, left_end: float, right_end: float, last: bool) -> Row:
        low, high = block.low or 0.0, block.high or 0.0
        zero = _column(0.0, width, left_end, right_end) if left_end <= 0.0 <= right_end else -1
        start, end = _column(low, width, left_end, right_end), _column(high, width, left_end, right_end)
        dot = _column(block.estimate or 0.0, width, left_end, right_end)
        style = "good" if high < 0 else "bad" if low > 0 else "strong" if last else "text"
        left, right, line, mark = ("|", "|", "-", "o") if self._view.ascii_only else ("├", "┤", "─", "●")
        name = "block" if isinstance(block, AbBlock) else "pair "
        row: Row = [(f" {name} {block.number:<4}", "dim")]
        for i in range(width):
            inside = start <= i <= end
            char = " "
            if i == dot:
                char = mark
            elif inside and i == start and low > left_end:
                char = left
            elif inside and i == end and high < right_end:
                char = right
            elif inside:
                char = line
            elif i == zero:
                char = ":" if self._view.ascii_only else "┊"
            row.append((char, style if inside or i == dot else "frame"))
        return row


def detectable_now(blocks: Sequence[AbBlock]) -> float | None:
    """Log ratio that 80% of runs with this noise detect within as many blocks; None while there are few."""
    ratios = [block.log_ratio for block in blocks if block.accepted and not block.pilot]
    return detectable(statistics.stdev(ratios), len(ratios)) if len(ratios) > 2 else None


def axis_range(blocks: Sequence[AbBlock | AbPair], margin: float) -> tuple[float, float]:
    """Log ratios at the ends of the axis: all intervals but the widest first third, and 0 unless it is far away."""
    kept = blocks[len(blocks) // 3 :]
    low, high = min(block.low or 0.0 for block in kept), max(block.high or 0.0 for block in kept)
    away = max(low, -high, 0.0)  # from 0 to the nearest end
    span = max(high - low, 1e-4)
    if away < max(4.0 * span, margin):
        low, high = min(low, 0.0), max(high, 0.0)
    pad = 0.12 * max(high - low, 1e-4)
    return low - pad, high + pad


def _column(value: float, width: int, low: float, high: float) -> int:
    return max(0, min(width - 1, round((value - low) / (high - low) * (width - 1))))
