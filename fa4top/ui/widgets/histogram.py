"""Distribution of the focused role's step periods."""

from __future__ import annotations

import numpy as np

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.colours import role_style
from fa4top.ui.glyphs import Row, bar, frame, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.period_graph import focus


class Histogram(Lines):
    """Shares of periods by bin, from p1 to p99; the ends hold what lies beyond."""

    HELP = "How the step periods of the focused role spread: one row a bin, share of steps."
    EVERY_S = 1.0

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with one row a bin."""
        role = focus(snapshot, view)
        periods = dict(snapshot.histogram).get(role.role if role else "", ())
        bins = height - 2
        if not periods or bins < 2:
            return frame([], width, height, "periods", self.g)
        low, high = periods[len(periods) // 100], periods[-1 - len(periods) // 100]
        size = max(1.0, (high - low) / bins)
        places = np.clip((np.asarray(periods) - low) / size, 0, bins - 1).astype(np.int64)
        counts: list[int] = np.bincount(places, minlength=bins).tolist()
        room = width - 2 - 9 - 6
        most = max(counts)
        body: list[Row] = [
            [
                (f" {number(low + size * i):>7} ", "dim"),
                (f"{bar(count / most, room, self.g.full):<{room}}", role_style(snapshot, role.role if role else "")),
                (f"{count / len(periods):>5.0%} ", "text"),
            ]
            for i, count in enumerate(counts)
        ]
        return frame(body, width, height, f"periods of {role.role if role else ''}, cycles", self.g)
