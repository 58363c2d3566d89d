"""`fa4top sweep`: one knob over its values, with curves and a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from fa4top.analysis.fold import Snapshot
from fa4top.analysis.tables import sweep_rows
from fa4top.cli import exits
from fa4top.cli.choose import config_or_fail, fail, make_order
from fa4top.cli.follow import follow, leave_on_fault, say_recorded
from fa4top.cli.live import Progress
from fa4top.cli.options import run_options
from fa4top.engine import jobs
from fa4top.engine.jobs import SweepJob, job_to_data
from fa4top.engine.order import Order
from fa4top.engine.sweep import settings_of
from fa4top.records import Envelope, SweepState
from fa4top.ui.plots import MARKS, Curve, curves_plot

GRAPH_WIDTH, GRAPH_HEIGHT = 76, 11

EPILOG = """\b
Examples:
  fa4top sweep p_split=1/4,1/2,5/8,3/4,7/8 --target builtin
  fa4top sweep p_split=1/2,3/4 pv_mode=bf16,fp8 --target builtin    one curve for each pv_mode
  fa4top sweep kv_stages=2,3 --target builtin --set pv_mode=fp8 --json
"""


@click.command("sweep", epilog=EPILOG)
@click.argument("knob_values")
@click.argument("series_values", default="")
@run_options
@click.option("--rounds", default=12, type=click.IntRange(3, 500), help="Bursts and traced launches for each setting.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(knob_values: str, series_values: str, rounds: int, as_json: bool, **options: Any) -> None:
    """Launch KNOB=VALUE,VALUE,... one value after another, each in fresh workers, and compare.

    A second KNOB=VALUE,... draws one curve for each of its values. Medians with spread; no claims about significance.
    Values that are known to be dangerous are shown as refused unless --unsafe is given.
    """
    config = config_or_fail()
    order = make_order(config, options, wait_gpu_s=0.0, idle_limit_s=5.0)
    try:
        knob, values = jobs.knob_values(knob_values)
        series_knob, series = jobs.knob_values(series_values) if series_values else ("", [])
    except ValueError as error:
        fail(str(error), exits.USAGE)
    job = SweepJob(knob, values, series_knob, series, rounds)
    problems = [setting.problem for setting in settings_of(order, job)]
    if all(problems):
        fail("; ".join(dict.fromkeys(str(problem) for problem in problems)), exits.USAGE)
    order = replace(order, job=job_to_data(job))
    raise SystemExit(run_sweep(order, as_json))


def run_sweep(order: Order, as_json: bool) -> int:
    """Run the order's sweep to its end and print it. Returns the exit code."""
    progress = Progress()

    def note(record: Envelope) -> None:
        if record.kind == "sweep_point":
            body: Any = record.body
            what = f"{body.tflops:.0f} TFLOP/s" if body.tflops is not None else f"{body.status}: {body.text}"
            click.echo(f"{body.series} {body.value}: {what}".strip(), err=True)
        elif record.kind in ("notice", "fault"):
            progress.show(record)

    code, fold = follow(order, as_json, note, lambda: False)
    snapshot = fold.snapshot()
    if not as_json and snapshot.sweep is not None:
        click.echo(render(snapshot))
    leave_on_fault(code, fold)
    say_recorded(order)
    measured = any(point.status == "measured" for point in snapshot.sweep_points)
    failed = any(point.status == "failed" for point in snapshot.sweep_points)
    if failed:
        return exits.CHECK_FAILED
    return exits.OK if measured else exits.FAULT


def curves(snapshot: Snapshot, metric: str) -> list[Curve]:
    """One curve a series: ``tflops`` or ``wait_p_share`` and so on over the swept values."""
    state = snapshot.sweep
    assert state is not None
    by_place = {(point.series, point.value): point for point in snapshot.sweep_points}
    result = []
    for number, series in enumerate(state.series):
        values = tuple(getattr(by_place.get((series, value)), metric, None) for value in state.values)
        result.append(Curve(MARKS[number % len(MARKS)], values))
    return result


def title(state: SweepState, simulated: bool) -> str:
    """What is swept, on what."""
    label = "SIMULATED  " if simulated else ""
    series = f" · {state.series_knob} {', '.join(state.series)}" if state.series_knob else ""
    return f"{label}sweep {state.knob} · {state.target} on {state.device}{series}"


def render(snapshot: Snapshot, width: int = GRAPH_WIDTH) -> str:
    """Curves of TFLOP/s and of the waits, the table, the sentence."""
    state = snapshot.sweep
    assert state is not None
    lines = [title(state, snapshot.simulated), ""]
    if len(state.series) > 1:
        lines.append("  ".join(f"{MARKS[i % len(MARKS)]} {name}" for i, name in enumerate(state.series)))
    for metric, name in (
        ("tflops", "TFLOP/s (clean)"),
        ("wait_p_share", "MMA waits for P, share of its step (traced)"),
        ("wait_p_rest_share", "MMA waits for the second part of P, share of its step (traced)"),
    ):
        if graph := curves_plot(state.values, curves(snapshot, metric), width, GRAPH_HEIGHT):
            lines += [name, graph]
    lines.append(
        f"{'series':8} {'value':8} {'TFLOP/s':>8} {'p5 to p95':>12} {'against':>9} {'period':>7} {'wait P':>7} "
        f"{'P 2nd':>7}  output"
    )
    for row in sweep_rows(state, snapshot.sweep_points):
        mark = "  < plateau" if row.plateau else ""
        if row.status == "measured":
            lines.append(
                f"{row.series:8} {row.value:8} {row.tflops:>8} {row.spread:>12} {row.against:>9} {row.period:>7} "
                f"{row.wait_p:>7} {row.wait_rest:>7}  {row.output}{mark}"
            )
        else:
            lines.append(f"{row.series:8} {row.value:8} {row.status}: {row.note}")
    label = " (SIMULATED)" if snapshot.simulated else ""
    lines += ["", f"> {state.text or state.state}{label}"]
    return "\n".join(lines)
