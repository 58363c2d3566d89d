"""Base of all panes: rows of styled runs, drawn line by line; only what changed is sent to the terminal."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.glyphs import Glyphs, Row, fit, glyphs, merged
from fa4top.ui.view import View

STYLES = (
    "text",
    "dim",
    "strong",
    "frame",
    "title",
    "good",
    "warn",
    "bad",
    "inverse",
    "role-a",
    "role-b",
    "role-c",
    "role-d",
    "on-role-a",
    "on-role-b",
    "on-role-c",
    "on-role-d",
    "wait-a",
    "wait-b",
    "wait-c",
    "wait-d",
)


class Lines(Widget):
    """A pane whose content is a list of rows. Subclasses implement ``rows``; help text is the class's HELP."""

    COMPONENT_CLASSES = {f"fa--{name}" for name in STYLES}
    HELP = ""
    EVERY_S = 0.0  # of the session's time, at most: summaries of a minute need not be drawn four times a second

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[Row] = []
        self._styles: dict[str, Style] = {}
        self._view = View()
        self._snapshot = Snapshot()
        self._drawn_s = 0.0
        self._cells = (0, 0)  # asking Textual for it takes longer than drawing a short pane

    @property
    def g(self) -> Glyphs:
        """Characters to draw with."""
        return glyphs(self._view.ascii_only)

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """The content at this size."""
        raise NotImplementedError

    def update(self, snapshot: Snapshot, view: View) -> None:
        """Take a snapshot; redraw the cells that differ."""
        early = 0.0 <= snapshot.time_s - self._drawn_s < self.EVERY_S
        if early and view == self._view and snapshot.plan is self._snapshot.plan and self._rows:
            return
        self._snapshot, self._view = snapshot, view
        self._drawn_s = snapshot.time_s
        self._redraw()

    def on_resize(self) -> None:
        """The old rows have another width."""
        self._rows = []
        self._cells = (self.size.width, self.size.height)
        self._redraw()
        self.refresh()

    def notify_style_update(self) -> None:
        """A theme change makes the cached styles stale."""
        self._styles = {}
        super().notify_style_update()

    def _redraw(self) -> None:
        width, height = self._cells
        if not width or not height or not self.display:
            return
        rows = [fit(row, width) for row in self.rows(self._snapshot, self._view, width, height)[:height]]
        rows += [fit([], width) for _ in range(height - len(rows))]
        old, self._rows = self._rows, rows
        if len(old) != len(rows):
            self.refresh()
            return
        for y, (before, after) in enumerate(zip(old, rows, strict=True)):
            if before != after:
                begin, end = changed(before, after)
                self.refresh(Region(begin, y, end - begin, 1))

    def render_line(self, y: int) -> Strip:
        """One row as a strip: one segment a run."""
        if y >= len(self._rows):
            return Strip.blank(self._cells[0], self._style("text"))
        segments = [Segment(text, self._style(name)) for text, name in merged(self._rows[y])]
        return Strip(segments, self._cells[0])

    def _style(self, name: str) -> Style:
        if name not in self._styles:
            self._styles[name] = self.get_component_rich_style(f"fa--{name}")
        return self._styles[name]


def changed(before: Row, after: Row) -> tuple[int, int]:
    """First and one past the last cell that differ between two rows of the same length."""
    old = [(char, style) for text, style in before for char in text]
    new = [(char, style) for text, style in after for char in text]
    width = min(len(old), len(new))
    begin = 0
    while begin < width and old[begin] == new[begin]:
        begin += 1
    end = max(len(old), len(new))
    while end > begin + 1 and end <= width and old[end - 1] == new[end - 1]:
        end -= 1
    return begin, max(end, begin + 1)
