"""The last faults and notices, for tall terminals."""

from __future__ import annotations

import time

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.glyphs import Row, frame
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines

LEVEL_STYLES = {"error": "bad", "warning": "warn", "info": "text", "output": "dim"}


class Recent(Lines):
    """Newest last; the whole log is screen 8."""

    HELP = "The newest lines of the log (screen 8), without workers' chatter."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with one row a line."""
        lines = [line for line in snapshot.lines[-200:] if line.level != "output"][-(height - 2) :]
        body: list[Row] = [
            [
                (f" {time.strftime('%H:%M:%S', time.localtime(line.wall_ns / 1e9))} ", "dim"),
                (line.text, LEVEL_STYLES.get(line.level, "text")),
            ]
            for line in lines
        ]
        return frame(body, width, height, "log", self.g, "8 shows all")
