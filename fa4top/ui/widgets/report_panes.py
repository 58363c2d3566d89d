"""Panes of screens 5 to 7: a kernel's SASS, the six steps of a triage, outputs held against each other."""

from __future__ import annotations

import textwrap

from fa4top.analysis.fold import Snapshot
from fa4top.analysis.sass_kernel import UNIT_NAMES
from fa4top.analysis.triage import next_experiments
from fa4top.records import Repeats, SassReport, TriageStep
from fa4top.targets.base import format_shape
from fa4top.ui.glyphs import Row
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.scrolled import Scrolled
from fa4top.ui.widgets.verdict_line import VerdictLine

WHOLE = (
    ("instructions", "instructions"),
    ("registers", "registers"),
    ("stack", "stack, bytes"),
    ("spills", "spills (local loads and stores)"),
    ("ex2", "MUFU.EX2"),
    ("packs", "F2FP"),
    ("transitions", "MUFU/F2FP transitions"),
    ("longest_run", "longest run of one of them"),
    ("clock_reads", "clock reads (probes)"),
)
STEP = (
    ("instructions", "instructions"),
    ("ex2", "MUFU.EX2"),
    ("transitions", "transitions"),
    ("spills", "spills"),
    *((unit, unit) for unit in UNIT_NAMES),
)
ROLES = ("softmax", "mma", "correction", "load", "epilogue")


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
        for key, label in WHOLE:
            _figure(body, reports, key, label)
        for role in ROLES:
            keys = [report.figures.get(f"{role}.step.instructions") for report in reports]
            if not any(keys):
                continue
            body.append([(f" a step of {role}", "title")])
            _figure(body, reports, f"{role}.registers", "registers of the role")
            for key, label in STEP:
                _figure(body, reports, f"{role}.step.{key}", label)
        for report in failed:
            body.append([(f" {report.setting}: {report.error}", "bad")])
        return [head], body


def _figure(body: list[Row], reports: list[SassReport], key: str, label: str) -> None:
    values = [report.figures.get(key) for report in reports]
    if not any(values) and key not in ("spills", "stack", "clock_reads"):
        return
    differs = len(set(values)) > 1
    row: Row = [(f"   {label:32}", "text")]
    for value in values:
        style = "bad" if key.endswith("spills") and value else "strong" if differs else "text"
        row.append((f"{value:>26g}" if value is not None else f"{'-':>26}", style))
    body.append(row)


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


STATE = {"found": ("!", "bad"), "clear": ("ok", "good"), "unknown": ("-", "dim")}


class TriageTable(Scrolled):
    """The six steps: conclusion, evidence, what it rules out, and how to falsify each finding."""

    HELP = (
        "The method's six steps in their order; each rules out a class of fix. ! something to act on, ok ruled out, - "
        "not looked at (and why). Every finding says how sure it is, and what would show that it is not so. r runs it, "
        "enter runs the next experiment."
    )

    def table(self, snapshot: Snapshot, view: View, width: int) -> tuple[list[Row], list[Row]]:
        """A block of lines a step."""
        if not snapshot.triage_steps:
            return [], [[(" r walks the six steps on the present setting, in about a minute", "dim")]]
        return [], [row for step in snapshot.triage_steps for row in _step(step, width, snapshot)]


def _step(step: TriageStep, width: int, snapshot: Snapshot) -> list[Row]:
    mark, style = STATE[step.state]
    indent = 20
    first = textwrap.wrap(step.conclusion, max(20, width - indent - 1)) or [""]
    rows: list[Row] = [[(f" {step.number} {step.title:12} ", "title"), (f"{mark:3}", style), (first[0], "strong")]]
    rows += [[(" " * (indent - 1) + line, "strong")] for line in first[1:]]

    def add(text: str, style: str) -> None:
        for line in textwrap.wrap(text, max(20, width - indent - 1)):
            rows.append([(" " * (indent - 1) + line, style)])

    for text in step.evidence:
        add(text, "text")
    if step.rules_out:
        add(f"rules out: {step.rules_out}", "good")
    for finding in step.findings:
        if finding.text not in step.conclusion:
            add(f"! {finding.text}", "bad")
        add(f"({finding.confidence} confidence; falsify: {finding.falsify})", "dim")
    return rows


class TriageSentence(VerdictLine):
    """The answer and the next experiment, or what is being done."""

    HELP = "What to act on first; enter runs the experiment that is shown."

    def text(self, snapshot: Snapshot) -> str:
        """The sentence."""
        run = snapshot.triage
        if run is None:
            return "triage: which class of fix is left?"
        if run.state != "done":
            return f"{run.state}: {run.text}"
        commands = next_experiments(snapshot)
        live = not self._view.replay and not self._view.ended
        if not commands:
            return run.text
        # what to do comes before what else is so: the line may be cut
        first, sep, rest = run.text.partition(". Otherwise ")
        command = commands[0].partition(" --target ")[0]
        return f"{first}. {'enter runs' if live else 'next'}: {command}{sep}{rest}"


class TriageHead(Lines):
    """What is looked at."""

    HELP = "Target, setting, shape, chip."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        run = snapshot.triage
        row: Row = [(" triage  ", "strong")]
        if run is not None:
            parts = [run.target, format_shape(run.shape).replace(",", " "), run.device.replace("NVIDIA ", ""), run.arch]
            row.append((f" {self.g.dot} ".join(parts), "text"))
        return [row]


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
        body: list[Row] = []
        for found in snapshot.repeats:
            body += _repeats(found, name, width)
        return [[(head, "dim")]], body


def _repeats(found: Repeats, name: int, width: int) -> list[Row]:
    error = f"{found.rms_error:.1e}" if found.rms_error is not None else "?"
    style = "good" if found.passed else "bad"
    rows: list[Row] = [
        [
            (f" {found.setting[:name]:{name}}", "text"),
            (f" {found.times:8} {found.flaky_launches:7} {found.against or 'is it':>9} {error:>9}  ", "text"),
            (found.verdict, style),
        ]
    ]
    for what, where in (("between launches", found.where), ("from the baseline", found.differs_where)):
        if where:
            rows += [[("   " + line, "dim")] for line in textwrap.wrap(f"differs {what}: {where}", max(20, width - 5))]
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


class CheckHead(Lines):
    """What is checked."""

    HELP = "Target, chip, number of launches."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        run = snapshot.check_run
        row: Row = [(" check  ", "strong")]
        if run is not None:
            parts = [run.target, run.device.replace("NVIDIA ", ""), f"{run.times} launches a setting"]
            row.append((f" {self.g.dot} ".join(parts), "text"))
        return [row]
