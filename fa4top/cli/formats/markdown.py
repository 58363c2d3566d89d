"""Results as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from fa4top.analysis.view.results import Result, Table

ESCAPED = "\\`*_{}[]<>|#"


def escape(text: str) -> str:
    """Text that stays what it is: no markup, no tag, no new cell."""
    return "".join(f"\\{char}" if char in ESCAPED else char for char in text.replace("\n", " "))


def table(found: Table) -> list[str]:
    """A pipe table, with its notes below."""
    e = escape
    lines = [f"### {e(found.title)}", ""]
    lines.append("| " + " | ".join(e(column.name) for column in found.columns) + " |")
    lines.append("|" + "|".join("---" if column.left else "---:" for column in found.columns) + "|")
    lines += ["| " + " | ".join(e(cell) for cell in row) + " |" for row in found.rows]
    return [*lines, "", *(f"- {e(note)}" for note in found.notes), *([""] if found.notes else [])]


def section(result: Result) -> list[str]:
    """One result: the answer first, then what it rests on."""
    e = escape
    lines = [f"## {e(result.head)}", "", f"**{e(result.sentence)}**", ""]
    lines += [f"{e(text)}  " for text in result.below]
    lines += [""] if result.below else []
    lines += [f"- {e(name)}: {e(text)}" for name, text in result.facts]
    lines += [""] if result.facts else []
    for each in result.tables:
        lines += table(each)
    if result.steps:
        lines += _steps(result)
    return lines


def _steps(result: Result) -> list[str]:
    e = escape
    lines = ["| step | state | conclusion | rules out |", "|---|---|---|---|"]
    for step in result.steps:
        lines.append(f"| {step.number} {e(step.title)} | {step.state} | {e(step.conclusion)} | {e(step.rules_out)} |")
    lines += ["", "### Evidence", ""]
    for step in result.steps:
        lines.append(f"{step.number}. {e(step.title)}")
        lines += [f"   - {e(text)}" for text in step.evidence]
    findings = [finding for step in result.steps for finding in step.findings]
    if findings:
        lines += ["", "### Findings", ""]
        for finding in findings:
            lines.append(f"- {e(finding.text)} ({finding.confidence} confidence). Falsify: {e(finding.falsify)}.")
            if finding.command:
                lines.append(f"  Next: `{finding.command}`")
    return [*lines, ""]


def document(results: Sequence[Result], title: str, figures: Sequence[str] = (), replay: bool = False) -> str:
    """All results; ``figures`` are names of SVG files beside it."""
    lines = [f"# {escape(title)}", ""]
    for result in results:
        lines += section(result)
    lines += [f"![{name}]({name}.svg)\n" for name in figures]
    if replay:
        lines.append("Replay: `fa4top replay session.jsonl.gz`; the records behind every figure are in it.")
    return "\n".join(lines).rstrip() + "\n"
