"""Screen 6's panes: the six steps of a triage."""

from __future__ import annotations

import textwrap

from fa4top.analysis.view.experiments import next_experiments
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.words import device_name, shape_text
from fa4top.orders.command_line import short_command
from fa4top.orders.jobs import job_from_data
from fa4top.records import TriageFinding, TriageStep
from fa4top.ui.glyphs import Row
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.scrolled import Scrolled
from fa4top.ui.widgets.verdict_line import VerdictLine

STATE = {"found": ("!", "bad"), "clear": ("ok", "good"), "unknown": ("-", "dim")}
INDENT = 20


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
        return [], [row for step in snapshot.triage_steps for row in _step(step, width)]


def _step(step: TriageStep, width: int) -> list[Row]:
    mark, style = STATE.get(step.state, ("?", "dim"))
    first = textwrap.wrap(step.conclusion, max(20, width - INDENT - 1)) or [""]
    rows: list[Row] = [[(f" {step.number} {step.title:12} ", "title"), (f"{mark:3}", style), (first[0], "strong")]]
    rows += [[(" " * (INDENT - 1) + line, "strong")] for line in first[1:]]

    def add(text: str, style: str) -> None:
        for line in textwrap.wrap(text, max(20, width - INDENT - 1)):
            rows.append([(" " * (INDENT - 1) + line, style)])

    for text in step.evidence:
        add(text, "text")
    if step.rules_out:
        add(f"rules out: {step.rules_out}", "good")
    for finding in step.findings:
        if finding.key not in step.said:
            add(f"! {finding.text}", "bad")
        add(f"({finding.confidence} confidence; falsify: {finding.falsify})", "dim")
    return rows


def experiment(finding: TriageFinding) -> str:
    """Its command as short as the screen wants it; a recording that has no job shows the line it has."""
    return short_command(job_from_data(finding.job)) if finding.job else finding.command


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
        experiments = next_experiments(snapshot.triage_steps)
        if not experiments:
            return run.text
        # what to do comes before what else is so: the line may be cut
        live = not self._view.replay and not self._view.ended
        best = run.best or run.text
        rest = f". {run.rest}" if run.rest else ""
        return f"{best}. {'enter runs' if live else 'next'}: {experiment(experiments[0])}{rest}"


class TriageHead(Lines):
    """What is looked at."""

    HELP = "Target, setting, shape, chip."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        run = snapshot.triage
        row: Row = [(" triage  ", "strong")]
        if run is not None:
            parts = [run.target, shape_text(run.shape, blanks=True), device_name(run.device), run.arch]
            row.append((f" {self.g.dot} ".join(parts), "text"))
        return [row]
