"""A pane with more rows than fit: a head that stays, and a body that arrows and page keys move."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.glyphs import Row
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines


class Scrolled(Lines):
    """Subclasses give ``table``; this cuts the part that is looked at and says where it lies."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._top = 0
        self._count = 0

    def table(self, snapshot: Snapshot, view: View, width: int) -> tuple[list[Row], list[Row]]:
        """Head rows and body rows at this width."""
        raise NotImplementedError

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """The head, a part of the body, and a line that says which part when there is more."""
        head, body = self.table(snapshot, view, width)
        room = height - len(head)
        self._count = len(body)
        if len(body) <= room:
            self._top = 0
            return [*head, *body]
        room -= 1
        self._top = max(0, min(self._top, len(body) - room))
        shown = body[self._top : self._top + room]
        place = f" rows {self._top + 1} to {self._top + len(shown)} of {len(body)}: arrows, page up, page down"
        return [*head, *shown, [(place, "dim")]]

    def scroll_pages(self, pages: int) -> None:
        """Move by what is seen, less a row that stays for the eye."""
        self.scroll_by(pages * max(1, self.size.height - 3))

    def scroll_by(self, rows: int) -> None:
        """Move."""
        self._top = max(0, min(self._top + rows, self._count))
        self._redraw()
