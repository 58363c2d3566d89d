"""Screen 5's panes: a kernel's SASS in counts."""

from __future__ import annotations

from fa4top.analysis.view.sass_figures import sass_rows
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.glyphs import Row
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.scrolled import Scrolled
from fa4top.ui.widgets.verdict_line import VerdictLine


class SassTable(Scrolled):
    """Figures down, A and B across."""

    HELP = (
        "Counts in the compiled code: of the whole kernel, then of each role's step, the innermost loop that does its "
        "work, by the unit that issues them. Static counts are not time. With an A/B on screen 2, r compiles both arms."
    )

    def table(self, snapshot: Snapshot, view: View, width: int) -> tuple[list[Row], list[Row]]:
        """One column a setting."""
        reports = [report for report in snapshot.sass if not report.error]
        failed = [report for report in snapshot.sass if report.error]
        if not reports:
            text = [f" {report.setting}: {report.error}" for report in failed] or [
                " r compiles the present setting once more and reads its SASS; nothing is launched"
            ]
            return [], [[(line[: width - 1], "bad" if failed else "dim")] for line in text]
        head: Row = [(f" {'':34}", "dim")]
        for letter, report in zip("AB", reports, strict=False):
            name = f"{letter} {report.setting}" if len(reports) > 1 else report.setting
            head.append((f"{name[:24]:>26}", "strong"))
        body: list[Row] = []
        for number, (heading, lines) in enumerate(sass_rows(reports)):
            if number:
                body.append([(f" {heading}", "title")])
            for key, label, cells in lines:
                spilled = key.endswith("spills")
                row: Row = [(f"   {label:32}", "text")]
                for cell in cells:
                    bad = spilled and cell not in ("0", "-")
                    row.append((f"{cell:>26}", "bad" if bad else "strong" if len(set(cells)) > 1 else "text"))
                body.append(row)
        for report in failed:
            body.append([(f" {report.setting}: {report.error}", "bad")])
        return [head], body


class SassSentence(VerdictLine):
    """What stands out in the SASS."""

    HELP = "Spills by role, or how exponentials and conversions are woven; of two settings also how they differ."

    def text(self, snapshot: Snapshot) -> str:
        """The sentence."""
        reports = [report for report in snapshot.sass if not report.error]
        if not reports:
            return "static counts are not time: they say what must be issued, not when it waits"
        if len(reports) == 1:
            return reports[0].headline
        return f"{reports[1].difference}. B: {reports[1].headline}"


class SassHead(Lines):
    """What was compiled, for which chip, by what."""

    HELP = "Target, architecture, and the versions that made the code."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        row: Row = [(" SASS  ", "strong")]
        if snapshot.sass:
            first = snapshot.sass[0]
            versions = "  ".join(f"{name} {version}" for name, version in first.versions.items())
            row.append((f"{first.target} {first.arch}  {versions}"[: width - 8], "text"))
        return [row]
