"""`fa4top live`: the live screen's numbers as text, or the log's records."""

from __future__ import annotations

import time
from typing import Any

import click

from fa4top.cli import exits
from fa4top.cli.choose import config_or_fail, make_order
from fa4top.cli.compact import render
from fa4top.cli.follow import follow, leave_on_fault, say_recorded
from fa4top.cli.options import run_options
from fa4top.engine.order import Order
from fa4top.records import Envelope

START_LIMIT_S = 900.0


@click.command("live", epilog="Example:  fa4top live --target fa4 --seconds 30 --json > run.jsonl")
@run_options
@click.option("--seconds", default=10.0, help="How long to measure, from the first number on.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(seconds: float, as_json: bool, **options: Any) -> None:
    """Measure for a while and print the numbers of the live screen. Progress goes to stderr."""
    config = config_or_fail()
    order = make_order(config, options, wait_gpu_s=0.0, idle_limit_s=5.0)
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

    code, fold = follow(order, as_json, note, enough)
    snapshot = fold.snapshot()
    if not as_json and snapshot.roles:
        click.echo(render(snapshot))
    leave_on_fault(code, fold)
    say_recorded(order)
    return exits.OK if snapshot.roles else exits.FAULT


class Progress:
    """What the workers do until there are numbers, on stderr."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def show(self, record: Envelope) -> None:
        """Say each new thing once."""
        body: Any = record.body
        if record.kind == "worker":
            text = f"{body.twin} twin: {body.state} {body.text}".rstrip()
        elif record.kind == "notice" and body.level != "info":
            text = f"{body.level}: {body.text}"
        elif record.kind == "fault":
            text = f"fault: {body.worker}: {body.reason}: {body.text}. Try: {body.hint}"
        else:
            return
        if text not in self._said:
            self._said.add(text)
            click.echo(text, err=True)
