"""All roles at once, for wide terminals."""

from __future__ import annotations

from fa4top.analysis.view.metrics import metrics_of
from fa4top.analysis.view.snapshot import RoleView, Snapshot
from fa4top.ui.colours import role_style
from fa4top.ui.glyphs import Row, frame, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.period_graph import focus

CELL = 7


class RolesTable(Lines):
    """Period, spread, busy and the longest wait of every role."""

    HELP = "Every role, and its longest wait. " + "; ".join(f"{m.name}: {m.help}" for m in metrics_of(RoleView)) + "."
    EVERY_S = 1.0

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with one row a role."""
        chosen = focus(snapshot, view)
        shown = metrics_of(RoleView)
        heads = "".join(f"{metric.name:>{CELL}}" for metric in shown)
        body: list[Row] = [[(f"   {'role':<11}{heads}  longest wait", "dim")]]
        for role in snapshot.roles:
            mark = self.g.arrow if chosen is not None and role.role == chosen.role else " "
            longest = max(role.waits_cycles, key=lambda item: item[1], default=None)
            wait = f"{longest[0]} {number(longest[1])}" if longest and longest[1] > 0 else "-"
            body.append(
                [
                    (f" {mark} ", "good"),
                    (f"{role.role:<11}", role_style(snapshot, role.role)),
                    *(
                        (f"{number(metric.value(role)):>{CELL}}", "text" if i else "strong")
                        for i, metric in enumerate(shown)
                    ),
                    (f"  {wait}", "text"),
                ]
            )
        return frame(body, width, height, "roles, cycles", self.g)
