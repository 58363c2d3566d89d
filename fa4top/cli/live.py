"""`fa4top live`: the live screen's numbers as text, or the log's records."""

from __future__ import annotations

import time
from typing import Any

import click

from fa4top.cli.choose import make_order
from fa4top.cli.fail import config_or_fail
from fa4top.cli.follow import Progress, follow, leave_on_fault, say_recorded
from fa4top.cli.options import RunOptions, run_options
from fa4top.cli.text.results import of_kind
from fa4top.orders import exits
from fa4top.orders.order import Order
from fa4top.records import Envelope

START_LIMIT_S = 900.0


@click.command("live", epilog="Example:  fa4top live --target fa4 --seconds 30 --json > run.jsonl")
@run_options
@click.option("--seconds", default=10.0, help="How long to measure, from the first number on.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(seconds: float, as_json: bool, **options: Any) -> None:
    """Measure for a while and print the numbers of the live screen. Progress goes to stderr."""
    order = make_order(config_or_fail(), RunOptions(**options))
    raise SystemExit(run_live(order, seconds, as_json))


def run_live(order: Order, seconds: float, as_json: bool) -> int:
    """Start an engine, follow its log for ``seconds`` after the first numbers, stop it. Returns the exit code."""
    progress = Progress()
    first: list[float] = []
    limit = time.monotonic() + START_LIMIT_S

    def note(record: Envelope) -> None:
        progress.show(record)
        if record.kind == "trace" and not first:
            first.append(time.monotonic())

    def enough() -> bool:
        now = time.monotonic()
        return bool(first and now > first[0] + seconds) or now > limit

    code, snapshot = follow(order, as_json, note, enough)
    if not as_json and snapshot.roles:
        click.echo(of_kind(snapshot, "live"))
    leave_on_fault(code, snapshot)
    say_recorded(order)
    return exits.OK if snapshot.roles else exits.FAULT
