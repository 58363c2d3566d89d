"""Results as one self-contained HTML file: no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as e

from fa4top.analysis.triage.gathered import HIGH
from fa4top.analysis.view.results import Result, Table
from fa4top.records import TriageStep

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24;
       background: #fff }
table { border-collapse: collapse; width: 100% }
td, th { border-top: 1px solid #d0d7de; padding: .3rem .5rem; text-align: left; vertical-align: top }
.n { text-align: right; font-variant-numeric: tabular-nums }
code { background: #f3f4f6; padding: .1rem .3rem }
.found { color: #b42318 } .clear { color: #1a7f37 } .unknown { color: #6e7781 }
svg { max-width: 100%; height: auto }
"""


def table(found: Table) -> str:
    """A table with its notes below."""
    kinds = ["" if column.left else ' class="n"' for column in found.columns]
    head = "".join(f"<th{kind}>{e(c.name)}</th>" for c, kind in zip(found.columns, kinds, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{kind}>{e(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in found.rows
    )
    notes = "".join(f"<p><small>{e(note)}</small></p>" for note in found.notes)
    return f"<h3>{e(found.title)}</h3><table><tr>{head}</tr>{rows}</table>{notes}"


def section(result: Result) -> str:
    """One result: the answer first, then what it rests on."""
    facts = "".join(f"<tr><th>{e(name)}</th><td>{e(text)}</td></tr>" for name, text in result.facts)
    below = "".join(f"<br><small>{e(text)}</small>" for text in result.below)
    parts = [f"<h2>{e(result.head)}</h2><p><b>{e(result.sentence)}</b>{below}</p>"]
    parts.append(f"<table>{facts}</table>" if facts else "")
    parts += [table(each) for each in result.tables]
    if result.steps:
        parts.append(_steps(result.steps))
    return "".join(parts)


def _steps(steps: Sequence[TriageStep]) -> str:
    rows = "".join(
        f'<tr><td>{step.number} {e(step.title)}</td><td class="{e(step.state)}">{e(step.state)}</td>'
        f"<td>{e(step.conclusion)}"
        + "".join(f"<br><small>{e(text)}</small>" for text in step.evidence)
        + f"</td><td>{e(step.rules_out)}</td></tr>"
        for step in steps
    )
    findings = "".join(
        f"<li>{'<b>' if f.confidence == HIGH else ''}{e(f.text)}{'</b>' if f.confidence == HIGH else ''} "
        f"<small>({e(f.confidence)} confidence; falsify: {e(f.falsify)})</small>"
        + (f"<br><code>{e(f.command)}</code>" if f.command else "")
        + "</li>"
        for step in steps
        for f in step.findings
    )
    return (
        f"<table><tr><th>step</th><th>state</th><th>conclusion and evidence</th><th>rules out</th></tr>{rows}</table>"
        f"<h3>Findings</h3><ul>{findings or '<li>nothing stands out</li>'}</ul>"
    )


def page(results: Sequence[Result], title: str, figures: Sequence[tuple[str, str]] = (), replay: bool = False) -> str:
    """The whole document; ``figures`` are (name, SVG)."""
    pictures = "".join(f"<h2>{e(name)}</h2>{svg[svg.find('<svg') :]}" for name, svg in figures)
    again = "<p>Replay: <code>fa4top replay session.jsonl.gz</code>, the file beside this one</p>" if replay else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{e(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{e(title)}</h1>"
        f"{''.join(section(result) for result in results)}{pictures}{again}</body></html>\n"
    )
