"""`fa4top triage`: the six steps on one setting, what each rules out, what to try next, and a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fa4top.analysis.triage.gathered import Gathered
from fa4top.analysis.triage.steps import TITLES, answer, triage
from fa4top.analysis.view.fold import fold_records
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.cli.choose import make_order, python_of, shape_of
from fa4top.cli.fail import config_or_fail, fail, usage
from fa4top.cli.follow import Progress, leave_on_fault, run_job, say_recorded
from fa4top.cli.formats.report import write_report, write_session
from fa4top.cli.options import RunOptions, run_options
from fa4top.cli.text.results import of_kind
from fa4top.engine.sass_reading import SassError, Wanted, read_setting
from fa4top.orders import exits
from fa4top.orders.command_line import Setting
from fa4top.orders.jobs import TriageJob
from fa4top.orders.typed import budget_seconds, settings
from fa4top.records import Envelope, Plan, TriageRun, stamp, to_line
from fa4top.session.reading import LogError, read_log
from fa4top.targets.catalog import UnknownTarget, compiled_without_gpu, describe
from fa4top.targets.legal import problems_of

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


@click.command("triage", epilog=EPILOG)
@run_options
@click.option("--seconds", default=6.0, metavar="S", help="How long to trace.")
@click.option("--sweep-budget", default="10s", metavar="TIME", help="How long to compare splits of P.")
@click.option("--times", default=20, type=click.IntRange(2, 10_000), help="Launches compared bit for bit.")
@click.option("--skip", multiple=True, type=click.Choice(list(TITLES.values())), help="Leave a step out; repeatable.")
@click.option("--report", type=click.Path(path_type=Path), metavar="DIR", help="Write report.md and report.html there.")
@click.option(
    "--from", "recorded", type=click.Path(exists=True, path_type=Path), metavar="SESSION", help="Read a recorded one."
)
@click.option("--arch", default="", metavar="ARCH", help="Compile for this chip and look at what needs no GPU.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(report: Path | None, recorded: Path | None, arch: str, as_json: bool, **options: Any) -> None:
    """Walk the method's six steps: throughputs, trace, SASS, algebra, split, checks.

    Each step shows its evidence, what it concludes, and which class of fix it rules out; every finding says how sure it
    is and how to falsify it.
    """
    run = RunOptions(**{name: value for name, value in options.items() if name not in OWN})
    if recorded is not None:
        snapshot = _recorded(recorded)
        click.echo(of_kind(snapshot, "triage"))
        if report is not None:
            _report(snapshot, report, str(recorded))
        return
    if arch:
        snapshot = compiled_only(arch, run)
        if as_json:
            for body in (*snapshot.triage_steps, snapshot.triage):
                assert body is not None
                click.echo(to_line(stamp(body, "engine")).decode().rstrip())
        else:
            click.echo(of_kind(snapshot, "triage"))
        if report is not None:
            _report(snapshot, report, "")
        return
    with usage():
        job = job_of(options)
    order = make_order(config_or_fail(), run)
    progress = Progress()

    def note(record: Envelope) -> None:
        body: Any = record.body
        if record.kind == "triage" and body.state == "running" and not as_json:
            click.echo(body.text, err=True)
        elif record.kind != "worker":
            progress.show(record)

    code, snapshot = run_job(order, job, as_json, note)
    if not as_json and snapshot.triage is not None:
        click.echo(of_kind(snapshot, "triage"))
    if report is not None and snapshot.triage is not None:
        _report(snapshot, report, order.folder if order.record else "")
    leave_on_fault(code, snapshot)
    say_recorded(order)


OWN = frozenset({"seconds", "sweep_budget", "times", "skip"})


def job_of(options: Mapping[str, Any]) -> TriageJob:
    """What was typed, as a job.

    Raises:
        ValueError: with the sentence for the person.
    """
    return TriageJob(
        seconds=options["seconds"],
        sweep_s=budget_seconds(options["sweep_budget"]),
        times=options["times"],
        skip=list(options["skip"]),
    )


def compiled_only(arch: str, options: RunOptions) -> Snapshot:
    """What can be said of a setting on a chip that is not here: its SASS, and what that forbids."""
    target = options.target or compiled_without_gpu()[0]
    try:
        description = describe(target)
    except UnknownTarget as error:
        fail(str(error), exits.USAGE)
    if not description.compile_only:
        fail(f"--arch: only {' and '.join(compiled_without_gpu())} can be compiled without their GPU", exits.USAGE)
    shape = shape_of(description, replace(options, causal=bool(options.causal)))
    with usage():
        chosen = settings(options.settings, "--set")
    knobs, problems = problems_of(target, shape, arch, chosen, unsafe=True)
    if problems:
        fail("; ".join(problems), exits.USAGE)
    plan = Plan(
        plan_id=0,
        target=target,
        device=NOT_RUN,
        gpu_uuid="",
        arch=arch,
        shape=shape,
        knobs=knobs,
        seed=0,
        simulated=False,
    )
    click.echo(f"compiling {target} for {arch} (some seconds)", err=True)
    kernel, why_not = None, ""
    try:
        kernel = read_setting(Wanted(target, shape, arch, knobs, python_of(config_or_fail(), options))).kernel
    except SassError as error:
        why_not = f"{error.text}. {error.hint}".rstrip(". ")
    setting = Setting(target, shape, arch, description.chosen(knobs))
    steps = triage(Gathered(snapshot=Snapshot(plan=plan), setting=setting, sass=kernel, sass_why_not=why_not), 0)
    found = answer(steps)
    run = TriageRun(
        run_id=0,
        target=target,
        device=NOT_RUN,
        arch=arch,
        shape=shape,
        knobs=knobs,
        state="done",
        text=found.text,
        best=found.best,
        rest=found.rest,
    )
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
