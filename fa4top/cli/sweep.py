"""`fa4top sweep`: one knob over its values, with curves and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from fa4top.cli.choose import make_order
from fa4top.cli.fail import config_or_fail, fail, usage
from fa4top.cli.follow import Progress, leave_on_fault, run_job, say_recorded
from fa4top.cli.options import RunOptions, l2_option, run_options
from fa4top.cli.text.results import of_kind
from fa4top.engine.jobs.sweep import sweep_problems
from fa4top.orders import exits
from fa4top.orders.jobs import SweepJob
from fa4top.orders.order import Order
from fa4top.orders.typed import budget_seconds, knob_values, margin_share
from fa4top.records import Envelope

PROGRESS_EVERY = 20

EPILOG = """\b
Examples:
  fa4top sweep p_split=1/4,1/2,5/8,3/4,7/8 --target builtin
  fa4top sweep p_split=1/2,3/4 pv_mode=bf16,fp8 --target builtin    one curve for each pv_mode
  fa4top sweep kv_stages=2,3 --target builtin --set pv_mode=fp8 --json
"""


@click.command("sweep", epilog=EPILOG)
@click.argument("values")
@click.argument("series", default="")
@run_options
@click.option("--rounds", default=8, type=click.IntRange(3, 500), help="Traced launches for each setting.")
@click.option("--margin", default="1%", help="What counts as equal; set before the run.")
@click.option("--budget", default="30s", help="Time for comparing, shared by the curves; 30s or 2m.")
@click.option("--blocks", default=0, metavar="N", help="Blocks of a curve at most; 0: as many as the budget allows.")
@click.option(
    "--fresh", default=3, type=click.IntRange(0, 16), help="How many of the best are measured again in fresh processes."
)
@l2_option
@click.option("--coins", default=0, help="Seed of the orders of the blocks.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(as_json: bool, **options: Any) -> None:
    """Compare all values of KNOB=VALUE,VALUE,... with the present one, each in workers of its own.

    All are resident at once and launched in blocks of random order, then reversed; a null arm, the present value again,
    must come out equal. Verdicts hold together at 95%, however many values there are. The best are measured again in
    fresh processes, and that is the number to quote. A second KNOB=VALUE,... draws one curve (and, from three on, a
    heat map) for each of its values. Values that are known to be dangerous are shown as refused unless --unsafe is
    given.
    """
    with usage():
        job = job_of(options)
    order = make_order(config_or_fail(), RunOptions(**{k: v for k, v in options.items() if k not in OWN}))
    if problems := sweep_problems(order, job):
        fail("; ".join(problems), exits.USAGE)
    raise SystemExit(run_sweep(order, job, as_json))


OWN = frozenset({"values", "series", "rounds", "margin", "budget", "blocks", "fresh", "l2", "coins"})


def job_of(options: Mapping[str, Any]) -> SweepJob:
    """What was typed, as a job.

    Raises:
        ValueError: with the sentence for the person.
    """
    knob, values = knob_values(options["values"])
    series_knob, series = knob_values(options["series"]) if options["series"] else ("", [])
    return SweepJob(
        knob=knob,
        values=values,
        series_knob=series_knob,
        series=series,
        rounds=options["rounds"],
        margin=margin_share(options["margin"]),
        budget_s=budget_seconds(options["budget"]),
        fresh=options["fresh"],
        l2=options["l2"],
        seed=options["coins"],
        most_blocks=options["blocks"],
    )


def run_sweep(order: Order, job: SweepJob, as_json: bool) -> int:
    """Run the sweep to its end and print it. Returns the exit code."""
    progress = Progress()
    blocks = 0

    def note(record: Envelope) -> None:
        nonlocal blocks
        body: Any = record.body
        if record.kind == "sweep_point":
            if body.status in ("refused", "failed"):
                click.echo(f"{body.series} {body.value}: {body.status}: {body.text}".strip(), err=True)
        elif record.kind == "sweep" and body.state == "running":
            click.echo(body.text, err=True)
        elif record.kind == "sweep_block":
            blocks += 1
            if blocks % PROGRESS_EVERY == 0:
                click.echo(f"{blocks} blocks", err=True)
        elif record.kind != "worker":
            progress.show(record)

    code, snapshot = run_job(order, job, as_json, note)
    if not as_json and snapshot.sweep is not None:
        click.echo(of_kind(snapshot, "sweep"))
    leave_on_fault(code, snapshot)
    say_recorded(order)
    statuses = {point.status for point in snapshot.sweep_points}
    if "failed" in statuses or (snapshot.sweep is not None and snapshot.sweep.contaminated):
        return exits.CHECK_FAILED
    return exits.OK if "measured" in statuses else exits.FAULT
