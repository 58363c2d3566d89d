"""Screen 7's panes: outputs held against each other."""

from __future__ import annotations

import textwrap

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.tables import CheckRow, check_rows
from fa4top.analysis.view.words import device_name
from fa4top.ui.glyphs import Row
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.scrolled import Scrolled
from fa4top.ui.widgets.verdict_line import VerdictLine


class CheckTable(Scrolled):
    """A line a setting: flakes, against the baseline, error against FP32."""

    HELP = (
        "Each setting in a fresh process, launched many times into buffers full of NaN. differ: launches that are not "
        "bitwise equal to the first. against: the baseline's kept output. RMS: error against FP32 on sampled rows."
    )

    def table(self, snapshot: Snapshot, view: View, width: int) -> tuple[list[Row], list[Row]]:
        """Settings in the order that they were launched."""
        if not snapshot.repeats:
            return [], [[(" r launches the present setting 20 times (with an A/B: both arms) and compares", "dim")]]
        name = max(20, min(44, width - 60))
        head = f" {'setting':{name}} {'launches':>8} {'differ':>7} {'against':>9} {'RMS':>9}  verdict"
        return [[(head, "dim")]], [row for found in check_rows(snapshot.repeats) for row in _lines(found, name, width)]


def _lines(found: CheckRow, name: int, width: int) -> list[Row]:
    rows: list[Row] = [
        [
            (f" {found.setting[:name]:{name}}", "text"),
            (f" {found.launches:>8} {found.differ:>7} {found.against:>9} {found.error:>9}  ", "text"),
            (found.verdict, "good" if found.passed else "bad"),
        ]
    ]
    for note in found.notes:
        rows += [[("   " + line, "dim")] for line in textwrap.wrap(note, max(20, width - 5))]
    return rows


class CheckSentence(VerdictLine):
    """Whether it passed, in words."""

    HELP = "The baseline's own flakes come first; then the other setting, and the knob that changes the output."

    def text(self, snapshot: Snapshot) -> str:
        """The sentence."""
        run = snapshot.check_run
        if run is None:
            return "is the output right, the same every time, and the baseline's?"
        return run.text if run.state != "running" else f"checking: {run.text}"

    def bad(self, snapshot: Snapshot) -> bool:
        """Did it not pass?"""
        return snapshot.check_run is not None and snapshot.check_run.passed is False


class CheckHead(Lines):
    """What is checked."""

    HELP = "Target, chip, number of launches."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        run = snapshot.check_run
        row: Row = [(" check  ", "strong")]
        if run is not None:
            parts = [run.target, device_name(run.device), f"{run.times} launches a setting"]
            row.append((f" {self.g.dot} ".join(parts), "text"))
        return [row]
