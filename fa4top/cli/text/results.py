"""Results as plain text: every job's in the same form."""

from __future__ import annotations

from fa4top.analysis.view.results import Result, Table, results
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.cli.text.graphs import graphs
from fa4top.records import TriageStep

NAME = 18  # of a fact
INDENT = 19  # of a triage step's lines
MARKS = {"found": "!", "clear": "ok", "unknown": "-"}


def text_of(snapshot: Snapshot) -> str:
    """All that the session came to."""
    return "\n\n".join(render(result, snapshot) for result in results(snapshot))


def of_kind(snapshot: Snapshot, kind: str) -> str:
    """One job's result; '' where the session has none of that kind."""
    return next((render(result, snapshot) for result in results(snapshot) if result.kind == kind), "")


def render(result: Result, snapshot: Snapshot) -> str:
    """Head, facts, curves, tables, steps, the answer."""
    lines = [result.head, ""]
    lines += [f"{name:{NAME}} {text}" for name, text in result.facts]
    lines += [""] if result.facts else []
    lines += graphs(result.kind, snapshot)
    for table in result.tables:
        lines += [*table_lines(table), ""]
    for step in result.steps:
        lines += step_lines(step)
    lines += [""] if result.steps else []
    lines.append(f"> {result.sentence}")
    lines += [f"  {text}" for text in result.below]
    lines += [f"  try: {command}" for command in result.commands]
    return "\n".join(lines)


def table_lines(table: Table) -> list[str]:
    """Aligned columns under their heads; a column that is empty throughout is left out."""
    heads = [column.name for column in table.columns]
    kept = [i for i, head in enumerate(heads) if head or any(row[i] for row in table.rows)]
    widths = {i: max(len(heads[i]), *(len(row[i]) for row in table.rows), 0) for i in kept}

    def line(cells: tuple[str, ...] | list[str]) -> str:
        parts = [f"{cells[i]:<{widths[i]}}" if table.columns[i].left else f"{cells[i]:>{widths[i]}}" for i in kept]
        return ("  " + "  ".join(parts)).rstrip()

    title = [] if kept and table.title == heads[kept[0]] else [table.title]
    return [*title, line(heads), *(line(row) for row in table.rows), *(f"  {note}" for note in table.notes)]


def step_lines(step: TriageStep) -> list[str]:
    """A step of a triage: conclusion, evidence, what it rules out, how to falsify each finding."""
    pad = " " * INDENT
    lines = [f"{step.number} {step.title:12} {MARKS.get(step.state, '?'):3} {step.conclusion}"]
    lines += [f"{pad}{text}" for text in step.evidence]
    if step.rules_out:
        lines.append(f"{pad}rules out: {step.rules_out}")
    for finding in step.findings:
        if finding.key not in step.said:
            lines.append(f"{pad}! {finding.text}")
        lines.append(f"{pad}({finding.confidence} confidence; falsify: {finding.falsify})")
    return lines
