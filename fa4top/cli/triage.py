"""`fa4top triage`: the six steps on one setting, what each rules out, what to try next, and a report."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fa4top.analysis.fold import Snapshot, fold_records
from fa4top.analysis.triage import TITLES, answer, next_experiments, triage
from fa4top.analysis.triage_rules import Evidence
from fa4top.cli import exits
from fa4top.cli.choose import config_or_fail, fail, make_order, parse_settings
from fa4top.cli.follow import follow, leave_on_fault, say_recorded
from fa4top.cli.live import Progress
from fa4top.cli.options import run_options
from fa4top.cli.report import write_report, write_session
from fa4top.engine.jobs import TriageJob, job_to_data
from fa4top.engine.sass import SassError, Wanted, read_setting
from fa4top.engine.sass_job import READABLE
from fa4top.records import Envelope, Plan, TriageRun, stamp, to_line
from fa4top.session.reading import LogError, read_log
from fa4top.targets.base import ShapeError, format_shape, parse_shape
from fa4top.targets.catalog import describe

EPILOG = """\b
Examples:
  fa4top triage                                       the best target that is here, about a minute
  fa4top triage --target builtin --set pv_mode=fp8 --set p_split=1/2
  fa4top triage --target fa4 --shape b1,s1024,h16,d128 --report report/
  fa4top triage --target sim --set p_split=1/2        the simulated device, plainly labelled
  fa4top triage --arch sm_100a --set num_regs_softmax=176 --set num_regs_correction=88 --set num_regs_other=64
  fa4top triage --from examples/h200-triage-builtin.jsonl.gz      a recorded one, again
"""
NOT_RUN = "compiled, not run"
MARKS = {"found": "!", "clear": "ok", "unknown": "-"}


@click.command("triage", epilog=EPILOG)
@run_options
@click.option("--seconds", default=6.0, metavar="S", help="How long to trace.")
@click.option("--times", default=20, type=click.IntRange(2, 10_000), help="Launches compared bit for bit.")
@click.option("--skip", multiple=True, type=click.Choice(list(TITLES.values())), help="Leave a step out; repeatable.")
@click.option("--report", type=click.Path(path_type=Path), metavar="DIR", help="Write report.md and report.html there.")
@click.option(
    "--from", "recorded", type=click.Path(exists=True, path_type=Path), metavar="SESSION", help="Read a recorded one."
)
@click.option("--arch", default="", metavar="ARCH", help="Compile for this chip and look at what needs no GPU.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(
    seconds: float,
    times: int,
    skip: tuple[str, ...],
    report: Path | None,
    recorded: Path | None,
    arch: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Walk the method's six steps: throughputs, trace, SASS, algebra, split, checks.

    Each step shows its evidence, what it concludes, and which class of fix it rules out; every finding says how sure it
    is and how to falsify it.
    """
    if recorded is not None:
        snapshot = _recorded(recorded)
        click.echo(render(snapshot))
        if report is not None:
            _report(snapshot, report, str(recorded))
        return
    if arch:
        snapshot = compiled_only(arch, options)
        if as_json:
            for body in (*snapshot.triage_steps, snapshot.triage):
                assert body is not None
                click.echo(to_line(stamp(body, "engine")).decode().rstrip())
        else:
            click.echo(render(snapshot))
        if report is not None:
            _report(snapshot, report, "")
        return
    order = make_order(config_or_fail(), options, wait_gpu_s=0.0, idle_limit_s=5.0)
    job = TriageJob(seconds, times=times, skip=list(skip))
    progress = Progress()

    def note(record: Envelope) -> None:
        body: Any = record.body
        if record.kind == "triage" and body.state == "running" and not as_json:
            click.echo(body.text, err=True)
        elif record.kind in ("notice", "fault"):
            progress.show(record)

    code, fold = follow(replace(order, job=job_to_data(job)), as_json, note, lambda: False)
    snapshot = fold.snapshot()
    if not as_json and snapshot.triage is not None:
        click.echo(render(snapshot))
    if report is not None and snapshot.triage is not None:
        _report(snapshot, report, order.folder if order.record else "")
    leave_on_fault(code, fold)
    say_recorded(order)


def compiled_only(arch: str, options: dict[str, Any]) -> Snapshot:
    """What can be said of a setting on a chip that is not here: its SASS, and what that forbids."""
    target = options["target"] or "fa4"
    if target not in READABLE:
        fail(f"--arch: only {' and '.join(READABLE)} can be compiled without their GPU", exits.USAGE)
    description = describe(target)
    knobs, problems = description.setting(parse_settings(options["settings"]))
    try:
        shape = parse_shape(options["shape"], description.default_shape)
    except ShapeError as error:
        fail(str(error), exits.USAGE)
    shape = replace(shape, dtype=options["dtype"] or shape.dtype, causal=bool(options["causal"]))
    if message := description.shape_problem(shape, arch, knobs):
        problems.append(message)
    if problems:
        fail("; ".join(problems), exits.USAGE)
    python = options["interpreter"] or config_or_fail().python or sys.executable
    plan = Plan(0, target, NOT_RUN, "", arch, shape, knobs, 0, False)
    click.echo(f"compiling {target} for {arch} (some seconds)", err=True)
    kernel, why_not = None, ""
    try:
        kernel = read_setting(Wanted(target, shape, arch, knobs, python)).kernel
    except SassError as error:
        why_not = f"{error.text}. {error.hint}".rstrip(". ")
    chosen = [f"--set {word}" for word in options["settings"]]
    found = Evidence(
        Snapshot(plan=plan), kernel, why_not, "", frozenset(knobs), ("--target", target, "--arch", arch, *chosen)
    )
    steps = triage(found, 0)
    run = TriageRun(0, target, NOT_RUN, arch, shape, knobs, "done", answer(steps))
    return Snapshot(plan=plan, triage=run, triage_steps=tuple(steps))


def _recorded(path: Path) -> Snapshot:
    try:
        snapshot = fold_records(read_log(path))
    except LogError as error:
        fail(str(error), exits.USAGE)
    if snapshot.triage is None:
        fail(f"{path} holds no triage; fa4top triage makes one", exits.USAGE)
    return snapshot


def _report(snapshot: Snapshot, folder: Path, session: str) -> None:
    try:
        made = write_report(snapshot, folder, session)
        if session:
            made.append(write_session(Path(session), folder))
        for path in made:
            click.echo(f"report: {path}", err=True)
    except OSError as error:
        fail(f"the report can not be written: {error}", exits.FAULT)


def head(snapshot: Snapshot) -> str:
    """Target, setting, shape, chip."""
    run = snapshot.triage
    assert run is not None
    label = f"{snapshot.label}  " if snapshot.label else ""
    mode = f" · {run.knobs['pv_mode']} PV" if "pv_mode" in run.knobs else ""
    causal = " causal" if run.shape.causal else ""
    return f"{label}triage · {run.target}{mode} · {format_shape(run.shape)}{causal} · {run.device} {run.arch}"


def render(snapshot: Snapshot) -> str:
    """Six steps, then the answer and the next experiments."""
    run = snapshot.triage
    assert run is not None
    lines = [head(snapshot), ""]
    for step in snapshot.triage_steps:
        lines.append(f"{step.number} {step.title:12} {MARKS[step.state]:3} {step.conclusion}")
        lines += [f"{'':19}{text}" for text in step.evidence]
        if step.rules_out:
            lines.append(f"{'':19}rules out: {step.rules_out}")
        for finding in step.findings:
            if finding.text not in step.conclusion:
                lines.append(f"{'':19}! {finding.text}")
            lines.append(f"{'':19}({finding.confidence} confidence; falsify: {finding.falsify})")
    mark = f" ({snapshot.label})" if snapshot.label else ""
    lines += ["", f"> {run.text}{mark}"]
    lines += [f"  try: {command}" for command in next_experiments(snapshot)]
    return "\n".join(lines)
