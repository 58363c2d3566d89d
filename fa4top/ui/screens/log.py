"""Screen 8: what workers, the compiler and the engine said."""

from __future__ import annotations

import time

from rich.text import Text
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer, RichLog

from fa4top.analysis.view.snapshot import LogLine, Snapshot
from fa4top.ui.view import View
from fa4top.ui.widgets.title import Title
from fa4top.ui.widgets.verdict_line import VerdictLine

MARKS = {"error": "E", "warning": "W", "info": "i", "output": " "}
VARIABLES = {"error": "fa-bad", "warning": "fa-warn", "output": "fa-dim"}


class LogScreen(Screen[None]):
    """Lines are appended as they come; arrows and page keys scroll."""

    def __init__(self) -> None:
        super().__init__()
        self._last_seq = -1
        self._first = True

    def compose(self) -> ComposeResult:
        """Title, lines, verdict."""
        yield Title(id="title")
        yield RichLog(id="log", max_lines=2000, wrap=True, min_width=20)
        yield VerdictLine(id="verdict")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """The list takes the keys, so that arrows scroll."""
        self.query_one(RichLog).focus()

    def show(self, snapshot: Snapshot, view: View) -> None:
        """Append what is new."""
        self.query_one(Title).update(snapshot, view)
        self.query_one(VerdictLine).update(snapshot, view)
        log = self.query_one(RichLog)
        lines = snapshot.lines
        if lines and lines[-1].seq < self._last_seq:  # a replay jumped back
            log.clear()
            self._last_seq = -1
        new = [line for line in lines if line.seq > self._last_seq]
        colours = self.app.theme_variables
        for line in new:
            log.write(self._text(line, colours))
        if new:
            self._last_seq = new[-1].seq

    @staticmethod
    def _text(line: LogLine, colours: dict[str, str]) -> Text:
        clock = time.strftime("%H:%M:%S", time.localtime(line.wall_ns / 1e9))
        style = colours.get(VARIABLES.get(line.level, "fa-text"), "")
        return Text.assemble(
            (f"{clock} {MARKS.get(line.level, ' ')} ", colours.get("fa-dim", "")),
            (f"{line.source}: ", style),
            (line.text, style),
        )
