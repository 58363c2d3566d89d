"""The graph over the last minute: step period of one role, or clean kernel time."""

from __future__ import annotations

from collections.abc import Sequence

from fa4top.analysis.view.fold import WINDOW_S
from fa4top.analysis.view.snapshot import RoleView, Snapshot
from fa4top.ui.colours import role_style
from fa4top.ui.glyphs import Row, blocks, buckets, frame, nice_range, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines

AXIS = 7


def focus(snapshot: Snapshot, view: View) -> RoleView | None:
    """The role that the person looks at, or the one that stands for the kernel."""
    return snapshot.role(view.role) or snapshot.lead


class PeriodGraph(Lines):
    """Bars of medians; the axis keeps its range until the data leave it."""

    HELP = (
        "Step period: gap between consecutive step begins of one role, in SM cycles; medians of the last 60 s. "
        "f: next role. m: clean kernel time instead. Below: the clean period (clean kernel time x SM clock / steps of "
        "the busiest SM, so prologues, epilogues and the last wave are in it) and what the probes cost."
    )
    EVERY_S = 0.5

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._range: tuple[str, float, float] = ("", 0.0, 0.0)

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with the graph."""
        inner, graph_height = width - 2 - AXIS - 1, height - 3
        role = focus(snapshot, view)
        if view.metric == "time":
            points = snapshot.clean_series
            title, unit, style = "clean kernel time, us", "time", "role-a"
            now = f"now {number(points[-1][1], 1)}  median {number(snapshot.clean_us, 1)}" if points else ""
        else:
            points = role.series if role else ()
            name = role.role if role else ""
            title, unit, style = f"{name} period, cycles", name, role_style(snapshot, name)
            now = ""
            if role is not None:
                cells = (role.now_cycles, role.median_cycles, role.p95_cycles)
                now = "{} med {} p95 {}".format(*(number(cell).replace(" ", "") for cell in cells))
        body = self._graph(points, snapshot, unit, style, inner, graph_height)
        effect = f"{snapshot.probe_effect:+.1%}" if snapshot.probe_effect is not None else "?"
        foot = f"clean {number(snapshot.clean_period_cycles)} cycles {self.g.dot} probes {effect}"
        if snapshot.detail:
            foot += " DETAIL: proportions only"
        return frame(body, width, height, title, self.g, now, foot)

    def _graph(
        self, points: Sequence[tuple[float, float]], snapshot: Snapshot, unit: str, style: str, width: int, height: int
    ) -> list[Row]:
        if width < 8 or height < 1 or not points:
            return [[("", "text")], [("  waiting for the first launch", "dim")]]
        columns = buckets(points, snapshot.time_s, WINDOW_S, width)
        known = [value for value in columns if value is not None]
        if not known:
            return [[("  no launches in the last minute", "dim")]]
        low, high = self._keep_range(unit, min(known), max(known))
        axis = self.g.vertical if self._view.ascii_only else "┤"
        rows: list[Row] = []
        for number_, text in enumerate(blocks(columns, height, low, high, self.g.steps)):
            top = high - (high - low) * number_ / height
            label = f"{top:>{AXIS - 1},.0f}" if high >= 100 else f"{top:>{AXIS - 1}.2f}"
            shown = label.replace(",", " ") if number_ % 2 == 0 else " " * (AXIS - 1)
            rows.append([(shown + " ", "dim"), (axis, "frame"), (text, style)])
        line = self.g.horizontal
        left, right = "60 s ago ", " now"
        rows.append(
            [
                (" " * AXIS, "text"),
                ("+" if self._view.ascii_only else "└", "frame"),
                (left, "dim"),
                (line * max(0, width - len(left) - len(right)), "frame"),
                (right, "dim"),
            ]
        )
        return rows

    def _keep_range(self, unit: str, low: float, high: float) -> tuple[float, float]:
        before, kept_low, kept_high = self._range
        span = kept_high - kept_low
        if before == unit and kept_low <= low and high <= kept_high and high - low > 0.1 * span:
            return kept_low, kept_high
        if before == unit and kept_low <= low and high <= kept_high and span <= 0.15 * abs(high):
            return kept_low, kept_high
        new_low, new_high = nice_range(low, high)
        self._range = (unit, new_low, new_high)
        return new_low, new_high
