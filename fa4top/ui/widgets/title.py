"""Top line: what runs, on what, and whether it is real."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.words import device_name, shape_text, shown_knobs
from fa4top.orders.typed import setting_words
from fa4top.ui.glyphs import Row, length
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines

ELSEWHERE = ("chip", "pv_mode")  # they stand in the device's name and beside the dtype


def clock(seconds: float) -> str:
    """Elapsed time as hh:mm:ss."""
    whole = max(0, int(seconds))
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


class Title(Lines):
    """Target, dtype, shape, device; then SIMULATED or REPLAY in reverse video, or the recording mark; then the time."""

    HELP = "What runs and on what. SIMULATED: no real device. REPLAY: a recorded session. ● rec: kept on disk."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        plan = snapshot.plan
        right: Row = []
        if snapshot.simulated:
            right += [(" SIMULATED ", "inverse"), (" ", "text")]
        if snapshot.unsafe:
            right += [(" UNSAFE ", "bad"), (" ", "text")]
        if view.replay:
            position = view.replay if width >= 100 else view.replay.partition("/")[0]
            right += [(f" REPLAY {position} ", "inverse"), (" ", "text")]
        elif view.recording:
            right += [("* rec" if view.ascii_only else "● rec", "bad"), ("  ", "text")]
        if view.paused:
            right += [(" PAUSED ", "inverse"), (" ", "text")]
        if not view.replay:
            right.append((clock(snapshot.time_s - snapshot.began_s) + " ", "dim"))
        left: Row = [(" fa4top  ", "strong")]
        if plan is not None:
            dot = f" {self.g.dot} "
            parts = [plan.target]
            if not plan.simulated:
                parts.append(plan.shape.dtype)
            if "pv_mode" in plan.knobs:
                parts.append(f"{plan.knobs['pv_mode']} PV")
            parts += [shape_text(plan.shape, blanks=True), device_name(plan.device)]
            left.append((dot.join(parts), "text"))
            knobs = setting_words(shown_knobs(plan, but=ELSEWHERE))
            if knobs and length(left) + len(knobs) + 3 + length(right) < width:
                left.append((dot + knobs, "dim"))
        room = width - length(right)
        if length(left) > room:
            left = [(left[0][0], left[0][1]), ((left[1][0])[: max(0, room - 9)], "text")]
        gap = max(0, room - length(left))
        return [[*left, (" " * gap, "text"), *right]]
