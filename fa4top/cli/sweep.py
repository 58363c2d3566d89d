"""`fa4top sweep`: one knob over its values, with curves and a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from fa4top.analysis.fold import Snapshot
from fa4top.analysis.sweeps import GRID_FROM
from fa4top.analysis.tables import null_lines, sweep_rows
from fa4top.cli import exits
from fa4top.cli.budget import parse_budget
from fa4top.cli.choose import config_or_fail, fail, make_order
from fa4top.cli.follow import follow, leave_on_fault, say_recorded
from fa4top.cli.live import Progress
from fa4top.cli.options import l2_option, run_options
from fa4top.engine import jobs
from fa4top.engine.jobs import SweepJob, job_to_data
from fa4top.engine.order import Order
from fa4top.engine.sweep import settings_of
from fa4top.records import Envelope, SweepState
from fa4top.ui.plots import MARKS, Curve, curves_plot

GRAPH_WIDTH, GRAPH_HEIGHT = 76, 11
PROGRESS_EVERY = 20

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
@click.option("--rounds", default=8, type=click.IntRange(3, 500), help="Traced launches for each setting.")
@click.option("--margin", default="1%", help="What counts as equal; set before the run.")
@click.option("--budget", default="30s", help="Time for comparing, shared by the curves; 30s or 2m.")
@click.option(
    "--fresh", default=3, type=click.IntRange(0, 16), help="How many of the best are measured again in fresh processes."
)
@l2_option
@click.option("--coins", default=0, help="Seed of the orders of the blocks.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(
    knob_values: str,
    series_values: str,
    rounds: int,
    margin: str,
    budget: str,
    fresh: int,
    l2: str,
    coins: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare all values of KNOB=VALUE,VALUE,... with the present one, each in workers of its own.

    All are resident at once and launched in blocks of random order, then reversed; a null arm, the present value again,
    must come out equal. Verdicts hold together at 95%, however many values there are. The best are measured again in
    fresh processes, and that is the number to quote. A second KNOB=VALUE,... draws one curve (and, from three on, a
    heat map) for each of its values. Values that are known to be dangerous are shown as refused unless --unsafe is
    given.
    """
    config = config_or_fail()
    order = make_order(config, options, wait_gpu_s=0.0, idle_limit_s=5.0)
    try:
        knob, values = jobs.knob_values(knob_values)
        series_knob, series = jobs.knob_values(series_values) if series_values else ("", [])
        share = jobs.margin_share(margin)
    except ValueError as error:
        fail(str(error), exits.USAGE)
    job = SweepJob(knob, values, series_knob, series, rounds, share, parse_budget(budget), fresh, l2, coins)
    problems = [setting.problem for setting in settings_of(order, job)]
    if all(problems):
        fail("; ".join(dict.fromkeys(str(problem) for problem in problems)), exits.USAGE)
    order = replace(order, job=job_to_data(job))
    raise SystemExit(run_sweep(order, as_json))


def run_sweep(order: Order, as_json: bool) -> int:
    """Run the order's sweep to its end and print it. Returns the exit code."""
    progress = Progress()
    blocks = 0

    def note(record: Envelope) -> None:
        nonlocal blocks
        if record.kind == "sweep_point":
            body: Any = record.body
            if body.status in ("refused", "failed"):
                click.echo(f"{body.series} {body.value}: {body.status}: {body.text}".strip(), err=True)
        elif record.kind == "sweep" and record.body.state == "running":  # type: ignore[attr-defined]
            click.echo(record.body.text, err=True)  # type: ignore[attr-defined]
        elif record.kind == "sweep_block":
            blocks += 1
            if blocks % PROGRESS_EVERY == 0:
                click.echo(f"{blocks} blocks", err=True)
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
    contaminated = snapshot.sweep is not None and bool(snapshot.sweep.contaminated)
    if failed or contaminated:
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


def title(state: SweepState, label: str) -> str:
    """What is swept, on what."""
    label = f"{label}  " if label else ""
    series = f" · {state.series_knob} {', '.join(state.series)}" if state.series_knob else ""
    return f"{label}sweep {state.knob} · {state.target} on {state.device}{series}"


def grid_lines(snapshot: Snapshot) -> list[str]:
    """Two knobs as a table of TFLOP/s."""
    state = snapshot.sweep
    assert state is not None
    by_place = {(point.series, point.value): point.tflops for point in snapshot.sweep_points}
    width = max(8, *(len(value) + 1 for value in state.values))
    head = f"{state.series_knob[:10]:10} " + "".join(f"{value:>{width}}" for value in state.values)
    lines = [head]
    for series in state.series:
        cells = (by_place.get((series, value)) for value in state.values)
        lines.append(f"{series:10} " + "".join(f"{cell:>{width}.0f}" if cell else f"{'-':>{width}}" for cell in cells))
    return lines


def render(snapshot: Snapshot, width: int = GRAPH_WIDTH) -> str:
    """Curves of TFLOP/s and of the waits, the table, the sentence."""
    state = snapshot.sweep
    assert state is not None
    lines = [title(state, snapshot.label), ""]
    if len(state.series) > 1:
        lines.append("  ".join(f"{MARKS[i % len(MARKS)]} {name}" for i, name in enumerate(state.series)))
    for metric, name in (
        ("tflops", "TFLOP/s (clean)"),
        ("wait_p_share", "MMA waits for P, share of its step (traced)"),
        ("wait_p_rest_share", "MMA waits for the second part of P, share of its step (traced)"),
    ):
        if graph := curves_plot(state.values, curves(snapshot, metric), width, GRAPH_HEIGHT):
            lines += [name, graph]
    if len(state.series) >= GRID_FROM:
        lines += ["TFLOP/s by both knobs", *grid_lines(snapshot), ""]
    lines.append(
        f"{'series':8} {'value':8} {'TFLOP/s':>8} {'time':>9} {'95% together':>18} {'verdict':11} {'fresh':>8} "
        f"{'period':>7} {'wait P':>7} {'P 2nd':>7}  output"
    )
    for row in sweep_rows(state, snapshot.sweep_points):
        mark = f"  < {row.plateau}" if row.plateau else ""
        if row.status == "measured":
            lines.append(
                f"{row.series:8} {row.value:8} {row.tflops:>8} {row.against:>9} {row.interval:>18} {row.word:11} "
                f"{row.fresh:>8} {row.period:>7} {row.wait_p:>7} {row.wait_rest:>7}  {row.output}{mark}"
            )
        else:
            lines.append(f"{row.series:8} {row.value:8} {row.status}: {row.note}")
    lines += null_lines(snapshot.sweep_points)
    label = f" ({snapshot.label})" if snapshot.label else ""
    lines += ["", f"> {state.text or state.state}{label}"]
    return "\n".join(lines)
