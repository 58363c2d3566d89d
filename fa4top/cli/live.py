"""`fa4top live`: the live screen's numbers as text, or the log's records."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from fa4top.analysis.fold import Fold
from fa4top.cli import exits
from fa4top.cli.choose import config_or_fail, fail, make_order
from fa4top.cli.compact import render
from fa4top.cli.options import run_options
from fa4top.engine.order import Order
from fa4top.engine.start import Control, EngineError, connect, start_engine
from fa4top.records import Envelope, to_line
from fa4top.session.following import Follower
from fa4top.session.paths import LOG_NAME

POLL_S = 0.05
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
    click.echo(order.why_target, err=True)
    try:
        process = start_engine(order)
        control = connect(order.session_id, process)
    except EngineError as error:
        fail(str(error), exits.FAULT)
    follower = Follower(Path(order.folder) / LOG_NAME)
    fold = Fold()
    progress = _Progress()
    said: set[str] = set()
    end: float | None = None
    limit = time.monotonic() + START_LIMIT_S
    stopping = False
    try:
        while True:
            records = follower.poll()
            for record in records:
                fold.feed(record)
                progress.show(record)
                if as_json:
                    sys.stdout.buffer.write(to_line(record))
                if record.kind == "trace" and end is None:
                    end = time.monotonic() + seconds
            if as_json and records:
                sys.stdout.buffer.flush()
            _say_blocked(control, said)
            now = time.monotonic()
            if process.poll() is not None and not records:
                break
            if not stopping and ((end is not None and now > end) or now > limit):
                stopping = True
                control.ask({"do": "stop"})
            if not records:
                time.sleep(POLL_S)
    except KeyboardInterrupt:
        control.ask({"do": "stop"})
        process.wait(10)
    except BrokenPipeError:
        control.ask({"do": "stop"})  # whoever read our output has left
        raise
    except OSError:
        process.wait(10)  # the engine went first
    finally:
        _say_blocked(control, said)
        control.close()
    code = process.returncode if process.returncode is not None else process.wait(10)
    snapshot = fold.snapshot()
    if not as_json and snapshot.roles:
        click.echo(render(snapshot))
    if code not in (0, exits.CHECK_FAILED):
        why = next((line.text for line in reversed(snapshot.lines) if line.level == "error"), "see engine.stderr")
        held = "is held by fa4top" in why
        fail(why, exits.NOTHING_TO_RUN_ON if held else exits.FAULT)
    if code == exits.CHECK_FAILED:
        fail(snapshot.verdict, exits.CHECK_FAILED)
    if order.record:
        click.echo(f"recorded: fa4top replay {order.folder}", err=True)
    return exits.OK if snapshot.roles else exits.FAULT


def _say_blocked(control: Control, said: set[str]) -> None:
    """What the engine can not write into the log, because the log can not be written."""
    for event in control.events():
        text = str(event.get("text", ""))
        # the byte count in it grows; say it once
        if event.get("event") == "blocked" and text.partition(",")[0] not in said:
            said.add(text.partition(",")[0])
            click.echo(f"warning: {text}", err=True)


class _Progress:
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
