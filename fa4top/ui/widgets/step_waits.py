"""A step of one role: work and waits as shares."""

from __future__ import annotations

from fa4top.analysis.chip.floors import ratio
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.colours import role_style, wait_style
from fa4top.ui.glyphs import Row, bar, frame, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.period_graph import focus

NAME = 11


class StepWaits(Lines):
    """Bars of the mean step of the last ten seconds: work solid, waits by cause; cycles where there is room."""

    HELP = (
        "A mean step of the last 10 s: busy (step minus its waits) and each wait by cause, in cycles and in percent of "
        "the step. A wait that was over at the first look counts as 0. Floor: cycles that the busiest unit needs for a "
        "step if all units overlap perfectly (tensor, exp2), and the clean period as a multiple of it."
    )

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with one row a cause."""
        role = focus(snapshot, view)
        if role is None or role.step_cycles is None or role.busy_cycles is None:
            return frame([], width, height, "a step", self.g)
        step = role.step_cycles
        with_cycles = width >= 34
        room = width - 2 - NAME - 5 - (8 if with_cycles else 0)
        body: list[Row] = []
        for name, cycles, style, glyph in (
            ("work", role.busy_cycles, role_style(snapshot, role.role), self.g.full),
            *(
                (cause, value, wait_style(snapshot, role.role, cause), "▒" if not view.ascii_only else "=")
                for cause, value in role.waits_cycles
            ),
        ):
            share = cycles / step
            row: Row = [
                (f" {name:<{NAME - 1}}", "text"),
                (f"{bar(share, room, glyph):<{room}}", style),
                (f"{share:>4.0%} ", "strong"),
            ]
            if with_cycles:
                row.append((f"{number(cycles):>7} ", "dim"))
            body.append(row)
        if not role.waits_cycles:
            body.append([(" waits: not in this probe set", "dim")])
        floors = snapshot.floors
        multiple = ratio(snapshot.clean_period_cycles, floors)
        if floors is not None and multiple is not None and len(body) < height - 2:
            row = [(f" {'floor':<{NAME - 1}}", "dim"), (f"{number(floors.floor)}  {multiple:.2f} x", "text")]
            body.append([*row, (f"  {floors.unit}", "dim")] if with_cycles else row)
        foot = f"step {number(step)} cycles"
        return frame(body, width, height, f"a step of {role.role}", self.g, "", foot)
