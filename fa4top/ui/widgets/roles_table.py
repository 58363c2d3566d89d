"""All roles at once, for wide terminals."""

from __future__ import annotations

from fa4top.analysis.fold import Snapshot
from fa4top.ui.colours import role_style
from fa4top.ui.glyphs import Row, frame, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.period_graph import focus


class RolesTable(Lines):
    """Period, spread, busy and the longest wait of every role."""

    HELP = "Every role: median period, p5 to p95, busy cycles, and its longest wait."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with one row a role."""
        chosen = focus(snapshot, view)
        body: list[Row] = [[(f"   {'role':<11}{'period':>7}{'p5':>7}{'p95':>7}{'busy':>7}  longest wait", "dim")]]
        for role in snapshot.roles:
            mark = self.g.arrow if chosen is not None and role.role == chosen.role else " "
            longest = max(role.waits_cycles, key=lambda item: item[1], default=None)
            wait = f"{longest[0]} {number(longest[1])}" if longest and longest[1] > 0 else "-"
            body.append(
                [
                    (f" {mark} ", "good"),
                    (f"{role.role:<11}", role_style(role.role)),
                    (f"{number(role.median_cycles):>7}", "strong"),
                    (f"{number(role.p5_cycles):>7}{number(role.p95_cycles):>7}{number(role.busy_cycles):>7}", "text"),
                    (f"  {wait}", "text"),
                ]
            )
        return frame(body, width, height, "roles, cycles", self.g)
