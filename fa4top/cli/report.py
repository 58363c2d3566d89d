"""A triage as Markdown and as one self-contained HTML file. Curves: matplotlib (the `report` extra), as SVG."""

from __future__ import annotations

import gzip
import html
import io
from collections.abc import Sequence
from pathlib import Path

from fa4top import __version__
from fa4top.analysis.fold import Snapshot
from fa4top.analysis.triage_rules import HIGH
from fa4top.analysis.verdict import lead_role
from fa4top.records import SweepPoint, to_line
from fa4top.session.reading import read_log
from fa4top.session.sharing import shareable
from fa4top.targets.base import format_shape

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24;
       background: #fff }
table { border-collapse: collapse; width: 100% }
td, th { border-top: 1px solid #d0d7de; padding: .4rem; text-align: left; vertical-align: top }
code { background: #f3f4f6; padding: .1rem .3rem }
.label { background: #b42318; color: #fff; padding: .1rem .5rem }
.found { color: #b42318 } .clear { color: #1a7f37 } .unknown { color: #6e7781 }
svg { max-width: 100%; height: auto }
"""


def write_report(snapshot: Snapshot, folder: Path, session: str) -> list[Path]:
    """report.md and report.html in a folder; returns their paths.

    Raises:
        OSError: they can not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    curves = figures(snapshot)
    made = [folder / "report.md", folder / "report.html"]
    for name, svg in curves:
        (folder / f"{name}.svg").write_text(svg)
        made.append(folder / f"{name}.svg")
    made[0].write_text(markdown(snapshot, session, [name for name, _ in curves]))
    made[1].write_text(page(snapshot, session, curves))
    return made


def write_session(session: Path, folder: Path) -> Path:
    """The session itself beside its report, without paths and UUIDs: a colleague can replay it.

    Raises:
        OSError: it can not be written.
    """
    path = folder / "session.jsonl.gz"
    with gzip.open(path, "wb") as file:
        for record in read_log(session):
            file.write(to_line(shareable(record)))
    return path


def _facts(snapshot: Snapshot) -> list[tuple[str, str]]:
    run = snapshot.triage
    assert run is not None
    facts = [
        ("target", f"{run.target} on {run.device} ({run.arch})"),
        ("shape", format_shape(run.shape) + (" causal" if run.shape.causal else "") + f" {run.shape.dtype}"),
        ("setting", " ".join(f"{name}={value}" for name, value in run.knobs.items()) or "defaults"),
        ("fa4top", __version__),
    ]
    for worker in snapshot.workers[:1]:
        facts.append(("versions", "; ".join(f"{name} {value}" for name, value in worker.versions.items())))
    if snapshot.clean_us:
        facts.append(("kernel", f"{snapshot.clean_us / 1000:.4f} ms, {snapshot.tflops or 0:.0f} TFLOP/s"))
    return facts


def markdown(snapshot: Snapshot, session: str, curves: Sequence[str]) -> str:
    """The whole report as Markdown."""
    run = snapshot.triage
    assert run is not None
    label = f" ({snapshot.label})" if snapshot.label else ""
    lines = [f"# Triage{label}", "", f"**{run.text}**", ""]
    lines += [f"- {name}: {text}" for name, text in _facts(snapshot)]
    lines += ["", "| step | state | conclusion | rules out |", "|---|---|---|---|"]
    for step in snapshot.triage_steps:
        lines.append(f"| {step.number} {step.title} | {step.state} | {step.conclusion} | {step.rules_out} |")
    lines += ["", "## Evidence", ""]
    for step in snapshot.triage_steps:
        lines.append(f"{step.number}. {step.title}")
        lines += [f"   - {text}" for text in step.evidence]
    findings = [finding for step in snapshot.triage_steps for finding in step.findings]
    if findings:
        lines += ["", "## Findings", ""]
        for finding in findings:
            lines.append(f"- {finding.text} ({finding.confidence} confidence). Falsify: {finding.falsify}.")
            if finding.command:
                lines.append(f"  Next: `{finding.command}`")
    lines += [f"\n![{name}]({name}.svg)" for name in curves]
    if session:
        lines += ["", "Replay: `fa4top replay session.jsonl.gz`; the records behind every figure are in it."]
    return "\n".join(lines) + "\n"


def page(snapshot: Snapshot, session: str, curves: Sequence[tuple[str, str]]) -> str:
    """The whole report as one HTML file: no script, nothing fetched."""
    run = snapshot.triage
    assert run is not None
    e = html.escape
    label = f' <span class="label">{e(snapshot.label)}</span>' if snapshot.label else ""
    rows = "".join(f"<tr><th>{e(name)}</th><td>{e(text)}</td></tr>" for name, text in _facts(snapshot))
    steps = "".join(
        f'<tr><td>{step.number} {e(step.title)}</td><td class="{e(step.state)}">{e(step.state)}</td>'
        f"<td>{e(step.conclusion)}"
        + "".join(f"<br><small>{e(text)}</small>" for text in step.evidence)
        + f"</td><td>{e(step.rules_out)}</td></tr>"
        for step in snapshot.triage_steps
    )
    findings = "".join(
        f"<li>{'<b>' if f.confidence == HIGH else ''}{e(f.text)}{'</b>' if f.confidence == HIGH else ''} "
        f"<small>({e(f.confidence)} confidence; falsify: {e(f.falsify)})</small>"
        + (f"<br><code>{e(f.command)}</code>" if f.command else "")
        + "</li>"
        for step in snapshot.triage_steps
        for f in step.findings
    )
    pictures = "".join(f"<h2>{e(name)}</h2>{svg[svg.find('<svg') :]}" for name, svg in curves)
    replay = "<p>Replay: <code>fa4top replay session.jsonl.gz</code>, the file beside this one</p>" if session else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>fa4top triage</title>'
        f"<style>{STYLE}</style></head>"
        f"<body><h1>Triage{label}</h1><p><b>{e(run.text)}</b></p><table>{rows}</table><h2>Steps</h2>"
        f"<table><tr><th>step</th><th>state</th><th>conclusion and evidence</th><th>rules out</th></tr>{steps}</table>"
        f"<h2>Findings</h2><ul>{findings or '<li>nothing stands out</li>'}</ul>{pictures}{replay}</body></html>\n"
    )


def plain_page(title: str, text: str) -> str:
    """Numbers as they stand in a terminal, as one HTML file."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{html.escape(title)}</h1><pre>{html.escape(text)}</pre></body></html>\n"
    )


def figures(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(name, SVG) of the step period over time and of the sweep; [] without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("svg")
        from matplotlib import pyplot
    except ImportError:
        return []
    found = []

    def save(name: str) -> None:
        text = io.StringIO()
        pyplot.tight_layout()
        pyplot.savefig(text, format="svg", metadata={"Date": None})
        pyplot.close()
        found.append((name, text.getvalue()))

    suffix = f" ({snapshot.label})" if snapshot.label else ""
    lead = lead_role(snapshot.roles)
    if lead is not None and len(lead.series) > 2:
        start = lead.series[0].time_s
        pyplot.figure(figsize=(7, 2.6))
        pyplot.plot([p.time_s - start for p in lead.series], [p.value for p in lead.series], lw=1)
        if snapshot.floors is not None:
            pyplot.axhline(snapshot.floors.floor, ls="--", lw=1, color="grey", label=f"floor ({snapshot.floors.unit})")
            pyplot.legend()
        pyplot.xlabel("s")
        pyplot.ylabel("cycles")
        pyplot.title(f"step period of {lead.role}, traced{suffix}")
        save("period")
    own = [point for point in snapshot.sweep_points if point.status == "measured" and point.tflops]
    if own and snapshot.sweep is not None:
        pyplot.figure(figsize=(7, 2.6))
        for series in dict.fromkeys(point.series for point in own):
            _curve(pyplot, [point for point in own if point.series == series], series)
        pyplot.ylabel("TFLOP/s")
        pyplot.xlabel(snapshot.sweep.knob)
        pyplot.title(f"sweep of {snapshot.sweep.knob}{suffix}")
        save("sweep")
    return found


def _curve(pyplot: object, points: Sequence[SweepPoint], name: str) -> None:
    pyplot.plot(  # type: ignore[attr-defined]
        [point.value for point in points], [point.tflops for point in points], marker="o", lw=1, label=name or None
    )
