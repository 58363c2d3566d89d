"""A few steps of one launch as a Gantt chart: one row a role, work solid, waits thin."""

from __future__ import annotations

from fa4top.analysis.fold import Snapshot
from fa4top.records import Span, TimelineRow
from fa4top.ui.colours import SHORT, role_style, wait_style
from fa4top.ui.glyphs import Glyphs, Row, frame, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines

NAME = 8
LABELS = {
    "wait P 2nd": "P2",
    "wait P": "P",
    "wait S": "S",
    "wait corr": "corr",
    "wait stats": "stats",
    "wait KV": "KV",
    "wait K": "K",
    "wait V": "V",
    "turn": "turn",
    "softmax": "softmax",
    "P rest": "P",
    "rescale": "resc",
    "epilogue": "epi",
    "step": "QK softmax PV",
}


def paint(row: TimelineRow, cycles: int, width: int, g: Glyphs) -> Row:
    """Cells of one role. Each cell shows what fills most of it; a wait's name stands in it where it fits."""
    coverage: list[dict[int, float]] = [{} for _ in range(width)]
    scale = width / max(1, cycles)
    for index, span in enumerate(row.spans):
        begin, end = span.begin_cycles * scale, min(span.end_cycles, cycles) * scale
        for cell in range(max(0, int(begin)), min(width, int(end) + 1)):
            part = min(end, cell + 1) - max(begin, cell)
            if part > 0:
                # waits lie inside work spans and win: they are what one looks for
                weight = 3.0 if _is_wait(span) else 1.0
                coverage[cell][index] = coverage[cell].get(index, 0.0) + part * weight
    owners = [max(cell, key=lambda k: cell[k]) if cell else -1 for cell in coverage]
    out: Row = []
    start = 0
    while start < width:
        stop = start
        while stop < width and owners[stop] == owners[start]:
            stop += 1
        out.append(_piece(row, owners[start], stop - start, g))
        start = stop
    return out


def _is_wait(span: Span) -> bool:
    return span.name.startswith("wait") or span.name == "turn"


def _piece(row: TimelineRow, owner: int, cells: int, g: Glyphs) -> tuple[str, str]:
    if owner < 0:
        return " " * cells, "dim"
    span = row.spans[owner]
    label = LABELS.get(span.name, span.name)
    if _is_wait(span):
        if cells >= len(label) + 2:
            return label.center(cells, g.thin), wait_style(span.name)
        return g.thin * cells, wait_style(span.name)
    style = role_style(row.role)
    if cells >= len(label) + 2:
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

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with one row a role."""
        timeline = snapshot.timeline
        if timeline is None:
            return frame([[("  waiting for a traced launch", "dim")]], width, height, "timeline", self.g)
        shown = max(1, min(view.zoom_steps, timeline.last_step - timeline.first_step + 1))
        steps = timeline.last_step - timeline.first_step + 1
        cycles = timeline.cycles * shown // steps
        body: list[Row] = []
        for row in timeline.rows:
            name = SHORT.get(row.role, row.role)
            body.append(
                [(f" {name:<{NAME - 1}}", role_style(row.role)), *paint(row, cycles, width - 2 - NAME - 1, self.g)]
            )
        last = timeline.first_step + shown - 1
        title = (
            f"timeline, CTA {snapshot.timeline_cta} on SM {snapshot.timeline_sm} {self.g.dot} "
            f"steps {timeline.first_step} to {last} of {timeline.steps_of_tile}"
        )
        return frame(body, width, height, title, self.g, f"{number(cycles)} cycles")
