"""Start an engine and follow its log to the end: what the commands without screens share."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from fa4top.analysis.fold import Fold
from fa4top.cli import exits
from fa4top.cli.choose import fail
from fa4top.engine.order import Order
from fa4top.engine.start import Control, EngineError, connect, start_engine
from fa4top.records import Envelope, to_line
from fa4top.session.following import Follower
from fa4top.session.paths import LOG_NAME

POLL_S = 0.05


def follow(
    order: Order, as_json: bool, on_record: Callable[[Envelope], None], enough: Callable[[], bool]
) -> tuple[int, Fold]:
    """Run an order until its engine ends, or until ``enough`` says so (then it is stopped).

    Returns:
        The engine's exit code, and what its log folds to.
    """
    click.echo(order.why_target, err=True)
    try:
        process = start_engine(order)
        control = connect(order.session_id, process)
    except EngineError as error:
        fail(str(error), exits.FAULT)
    follower = Follower(Path(order.folder) / LOG_NAME)
    fold = Fold()
    said: set[str] = set()
    stopping = False
    try:
        while True:
            records = follower.poll()
            for record in records:
                fold.feed(record)
                on_record(record)
                if as_json:
                    sys.stdout.buffer.write(to_line(record))
            if as_json and records:
                sys.stdout.buffer.flush()
            _say_blocked(control, said)
            if process.poll() is not None and not records:
                break
            if not stopping and enough():
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
        for record in follower.poll():
            fold.feed(record)
            on_record(record)
            if as_json:
                sys.stdout.buffer.write(to_line(record))
    finally:
        _say_blocked(control, said)
        control.close()
    return process.returncode if process.returncode is not None else process.wait(10), fold


def leave_on_fault(code: int, fold: Fold) -> None:
    """Leave with the engine's own words when it failed."""
    snapshot = fold.snapshot()
    if code == exits.CHECK_FAILED:
        fail(snapshot.verdict, exits.CHECK_FAILED)
    if code:
        why = next((line.text for line in reversed(snapshot.lines) if line.level == "error"), "see engine.stderr")
        held = "is held by fa4top" in why
        fail(why, exits.NOTHING_TO_RUN_ON if held else exits.FAULT)


def say_recorded(order: Order) -> None:
    """Where the session is."""
    if order.record:
        click.echo(f"recorded: fa4top replay {order.folder}", err=True)


def _say_blocked(control: Control, said: set[str]) -> None:
    """What the engine can not write into the log, because the log can not be written."""
    for event in control.events():
        text = str(event.get("text", ""))
        # the byte count in it grows; say it once
        if event.get("event") == "blocked" and text.partition(",")[0] not in said:
            said.add(text.partition(",")[0])
            click.echo(f"warning: {text}", err=True)
