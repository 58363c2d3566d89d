"""One cell an SM, by its step period: a slow SM shows."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.glyphs import Row, frame, merged, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines

SLOW = 1.05


class SmMap(Lines):
    """Rotation of the recording CTA lets every SM be seen; cells fill as that happens."""

    HELP = (
        "Each cell is an SM, in order of its number. Height: its step period between the least and the most seen. "
        "Marked: more than 5% above the median. Dot: not seen yet."
    )
    EVERY_S = 1.0

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with rows of cells."""
        seen = dict(snapshot.sm_periods)
        count = snapshot.geometry.sm_count if snapshot.geometry else 0
        per_row = max(1, width - 4)
        if not seen or not count:
            return frame([], width, height, "SMs", self.g)
        ordered = sorted(seen.values())
        low, high, middle = ordered[0], ordered[-1], ordered[len(ordered) // 2]
        steps = self.g.steps
        body: list[Row] = []
        for start in range(0, count, per_row):
            cells: Row = []
            for sm in range(start, min(count, start + per_row)):
                period = seen.get(sm)
                if period is None:
                    cells.append((self.g.dot, "dim"))
                elif period > SLOW * middle:
                    cells.append(("!", "bad"))
                else:
                    level = int((period - low) / max(1e-9, high - low) * (len(steps) - 2)) + 1
                    cells.append((steps[min(level, len(steps) - 1)], "role-a"))
            body.append([(" ", "text"), *merged(cells)])
        title = f"SMs {len(seen)} of {count}"
        return frame(body, width, height, title, self.g, "", f"{number(low)} to {number(high)} cycles")
