"""A screen of panes, one of them a table that scrolls."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.scrolled import Scrolled
from fa4top.ui.widgets.title import Title

SCROLL_KEYS: tuple[Any, ...] = (
    ("up", "scroll(-1)", "up"),
    ("down", "scroll(1)", "down"),
    ("pageup", "pages(-1)", "page up"),
    ("pagedown", "pages(1)", "page down"),
    ("home", "scroll(-10000)", "top"),
    ("end", "scroll(10000)", "bottom"),
)


class TableScreen(Screen[None]):
    """Title, then the panes of ``PANES`` with their ids, then the keys."""

    BINDINGS: ClassVar[list[Any]] = [Binding(key, action, text, show=False) for key, action, text in SCROLL_KEYS]
    PANES: ClassVar[tuple[tuple[type[Lines], str], ...]] = ()

    def compose(self) -> ComposeResult:
        """One pane under another."""
        yield Title(id="title")
        for pane, name in self.PANES:
            yield pane(id=name)
        yield Footer(show_command_palette=False)

    def show(self, snapshot: Snapshot, view: View) -> None:
        """Hand the snapshot to all panes, in one repaint."""
        with self.app.batch_update():
            for pane in self.query(Lines):
                if pane.display:
                    pane.update(snapshot, view)

    def action_pages(self, pages: int) -> None:
        """Move in the table by pages."""
        self.query_one(Scrolled).scroll_pages(pages)

    def action_scroll(self, rows: int) -> None:
        """Move in the table."""
        self.query_one(Scrolled).scroll_by(rows)
