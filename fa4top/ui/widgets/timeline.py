"""A few steps of one launch as a Gantt chart: one row a role, work solid, waits thin."""

from __future__ import annotations

from collections.abc import Mapping

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.records import Timeline, TimelineRow
from fa4top.ui.colours import role_style, wait_style
from fa4top.ui.glyphs import Glyphs, Row, frame, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines

NAME = 8
WAIT = "wait "  # in front of a cause: a thin bar says it already
Styles = Mapping[str, str]


def short_role(role: str) -> str:
    """A role's name in its column: its number stays when letters go."""
    stem = role.rstrip("0123456789")
    number = role[len(stem) :]
    return stem[: NAME - 1 - len(number)] + number


def paint(row: TimelineRow, cycles: int, width: int, g: Glyphs, style: str, waits: Styles) -> Row:
    """Cells of one role. Each cell shows what fills most of it; a wait's name stands in it where it fits.

    Args:
        style: of its work. waits: of its waits, by cause.
    """
    coverage: list[dict[int, float]] = [{} for _ in range(width)]
    scale = width / max(1, cycles)
    for index, span in enumerate(row.spans):
        begin, end = span.begin_cycles * scale, min(span.end_cycles, cycles) * scale
        for cell in range(max(0, int(begin)), min(width, int(end) + 1)):
            part = min(end, cell + 1) - max(begin, cell)
            if part > 0:
                # waits lie inside work spans and win: they are what one looks for
                weight = 3.0 if span.wait else 1.0
                coverage[cell][index] = coverage[cell].get(index, 0.0) + part * weight
    owners = [max(cell, key=lambda k: cell[k]) if cell else -1 for cell in coverage]
    out: Row = []
    start = 0
    while start < width:
        stop = start
        while stop < width and owners[stop] == owners[start]:
            stop += 1
        out.append(_piece(row, owners[start], stop - start, g, style, waits))
        start = stop
    return out


def _piece(row: TimelineRow, owner: int, cells: int, g: Glyphs, style: str, waits: Styles) -> tuple[str, str]:
    if owner < 0:
        return " " * cells, "dim"
    span = row.spans[owner]
    label = span.name.removeprefix(WAIT)
    fits = cells >= len(label) + 2
    if span.wait:
        return label.center(cells, g.thin) if fits else g.thin * cells, waits.get(span.name, "wait-d")
    if fits:
        return label.center(cells), f"on-{style}"
    if g.full == "#":
        return "#" * cells, style
    return " " * cells, f"on-{style}"


class TimelinePane(Lines):
    """The roles of the recorded CTA over up to four steps; z zooms."""

    HELP = (
        "Some steps of one traced launch, from one CTA: all rows share the SM's clock. Solid: work. Thin: waits. "
        "Coarse probes do not name the parts of the work. z: 4, 2 or 1 steps."
    )
    EVERY_S = 1.0

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._drawn: tuple[object, ...] = ()
        self._painted: list[Row] = []

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with one row a role; painted anew only when a launch with a timeline has come."""
        timeline = snapshot.timeline
        if timeline is None:
            return frame([[("  waiting for a traced launch", "dim")]], width, height, "timeline", self.g)
        now = (timeline, snapshot.role_map, view.zoom_steps, view.ascii_only, width, height)
        if len(self._drawn) != len(now) or any(a is not b and a != b for a, b in zip(self._drawn, now, strict=True)):
            self._drawn, self._painted = now, self._paint(timeline, snapshot, view, width, height)
        return self._painted

    def _paint(self, timeline: Timeline, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        shown = max(1, min(view.zoom_steps, timeline.last_step - timeline.first_step + 1))
        steps = timeline.last_step - timeline.first_step + 1
        cycles = timeline.cycles * shown // steps
        body: list[Row] = []
        for row in timeline.rows:
            style = role_style(snapshot, row.role)
            waits = {span.name: wait_style(snapshot, row.role, span.name) for span in row.spans if span.wait}
            bars = paint(row, cycles, width - 2 - NAME - 1, self.g, style, waits)
            body.append([(f" {short_role(row.role):<{NAME - 1}}", style), *bars])
        last = timeline.first_step + shown - 1
        title = (
            f"timeline, CTA {snapshot.timeline_cta} on SM {snapshot.timeline_sm} {self.g.dot} "
            f"steps {timeline.first_step} to {last} of {timeline.steps_of_tile}"
        )
        return frame(body, width, height, title, self.g, f"{number(cycles)} cycles")
