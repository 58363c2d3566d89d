"""Run an engine without screens and follow its log: what every command that prints numbers does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fa4top.analysis.view.fold import Fold
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.cli.fail import fail
from fa4top.engine.client import Control, EngineError, connect, start_engine
from fa4top.orders import exits
from fa4top.orders.jobs import Job, job_to_data
from fa4top.orders.order import Order
from fa4top.records import Envelope
from fa4top.session.following import Follower
from fa4top.session.paths import LOG_NAME

POLL_S = 0.05

OnRecord = Callable[[Envelope], None]


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


def run_job(order: Order, job: Job, as_json: bool, on_record: OnRecord) -> tuple[int, Snapshot]:
    """Start an engine that does this job, follow it to its end. Returns its exit code and the final state."""
    return follow(replace(order, job=job_to_data(job)), as_json, on_record, lambda: False)


def follow(order: Order, as_json: bool, on_record: OnRecord, enough: Callable[[], bool]) -> tuple[int, Snapshot]:
    """Start an engine, follow its log until it ends or ``enough`` says so. Returns exit code and final state.

    Args:
        as_json: pass the log's lines on to stdout as they are.
        on_record: called with every record, in order.
    """
    click.echo(order.why_target, err=True)
    try:
        process = start_engine(order)
        control = connect(order.session_id, process)
    except EngineError as error:
        fail(str(error), exits.FAULT)
    follower = Follower(Path(order.folder) / LOG_NAME, keep_lines=as_json)
    fold = Fold()
    said: set[str] = set()
    stopping = False

    def take() -> int:
        records = follower.poll()
        for record in records:
            fold.feed(record)
            on_record(record)
        if as_json and (lines := follower.lines()):
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()
        return len(records)

    try:
        while True:
            count = take()
            _say_blocked(control, said)
            if process.poll() is not None and not count:
                break
            if not stopping and enough():
                stopping = True
                control.ask({"do": "stop"})
            if not count:
                time.sleep(POLL_S)
    except KeyboardInterrupt:
        control.ask({"do": "stop"})
        process.wait(10)
    except BrokenPipeError:
        control.ask({"do": "stop"})  # whoever read our output has left
        raise
    except OSError:
        process.wait(10)  # the engine went first
        take()
    finally:
        _say_blocked(control, said)
        control.close()
    return process.returncode if process.returncode is not None else process.wait(10), fold.snapshot()


def leave_on_fault(code: int, snapshot: Snapshot) -> None:
    """Leave with the engine's own words when it failed."""
    if code == exits.CHECK_FAILED and snapshot.verdict.bad:
        fail(snapshot.verdict.text, code)
    if code:
        why = next((line.text for line in reversed(snapshot.lines) if line.level == "error"), "see engine.stderr")
        fail(why, code)


def say_recorded(order: Order) -> None:
    """Where the session is."""
    if order.record:
        click.echo(f"recorded: fa4top replay {order.folder}", err=True)


def _say_blocked(control: Control, said: set[str]) -> None:
    """What the engine can not write into the log, because the log can not be written; each thing once."""
    for event in control.events():
        what = str(event.get("what", ""))
        if event.get("event") == "blocked" and what not in said:
            said.add(what)
            click.echo(f"warning: {event.get('text', '')}", err=True)
