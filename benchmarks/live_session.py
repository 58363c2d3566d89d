"""A live session on a GPU: how soon B shows a number, and what watching costs the kernel.

    python benchmarks/live_session.py b TARGET KNOB=VALUE ...  from the command to B's first number; A goes on meanwhile
    python benchmarks/live_session.py watched TARGET [ROUNDS]  clean kernel time with a TUI attached (tmux), and without
    python benchmarks/live_session.py hang TARGET SETTING ...  settings that hang or fail, and if the session goes on

``b`` sends what the form of key b sends. A SETTING is KNOB=VALUE, more of them joined by commas. ``watched`` attaches
and detaches in random order, and compares medians.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import Any

import click

from fa4top.cli.choose import make_order
from fa4top.cli.options import RunOptions, run_options
from fa4top.engine.client import Control, connect, start_engine
from fa4top.orders.jobs import job_to_data
from fa4top.orders.order import Order
from fa4top.records import AbArm, AbState, CleanBurst, EngineState, Envelope, HangReport
from fa4top.session.config import load_config
from fa4top.session.reading import read_log
from fa4top.ui.screens.ab import ab_job

WATCH_S = 4.0


@click.command()
@run_options
def order_of(**options: Any) -> Order:
    """The same options as every command of fa4top."""
    return make_order(load_config(), RunOptions(**options), wait_gpu_s=60.0, idle_limit_s=60.0)


def records(order: Order, since: int = 0) -> list[Envelope]:
    return [record for record in read_log(Path(order.folder)) if record.mono_ns >= since]


def until(condition: Callable[[], Any], seconds: float) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise SystemExit("it never came")


def latency(order: Order, control: Control, settings: list[str]) -> None:
    until(lambda: sum(isinstance(r.body, CleanBurst) for r in records(order)) > 40, 120.0)
    times = []
    for setting in settings:
        time.sleep(16.0 if order.target == "fa4" else 4.0)  # workers that stand by import meanwhile
        began = time.monotonic_ns()
        job = replace(ab_job(setting, "1%"), budget_s=4.0, until_decided=False)
        answer = control.ask({"do": "job", "job": job_to_data(job)})
        assert answer["ok"], answer

        def first(since: int = began) -> Envelope | None:
            own = (
                r
                for r in records(order, since)
                if (isinstance(r.body, AbArm) and r.body.arm == "B")
                or (isinstance(r.body, AbState) and r.body.state in ("done", "failed"))
            )
            return next(own, None)

        found = until(first, 60.0)
        if not isinstance(found.body, AbArm):
            print(f"{setting}: no number: {found.body.text}", flush=True)
            continue
        seconds = (found.mono_ns - began) / 1e9
        times.append(seconds)
        since = records(order, began)
        a_goes_on = sum(isinstance(r.body, CleanBurst) and r.mono_ns < found.mono_ns for r in since)
        stages = [
            f"{(r.mono_ns - began) / 1e9:.1f} {r.body.text or r.body.state}"
            for r in since
            if isinstance(r.body, AbState)
        ]
        print(f"{setting}: {seconds:.1f} s; bursts meanwhile: {a_goes_on}; {'; '.join(stages)}", flush=True)

        def over(since: int = began) -> bool:
            states = [r.body.state for r in records(order, since) if isinstance(r.body, AbState)]
            return states[-1:] in (["done"], ["failed"])

        until(over, 60.0)
    print(f"B's first number: median {statistics.median(times):.1f} s of {len(times)}")


def watched(order: Order, rounds: int) -> None:
    until(lambda: sum(isinstance(r.body, CleanBurst) for r in records(order)) > 40, 120.0)
    coin = random.Random(0)
    ratios = []
    for number in range(rounds):
        levels = {}
        for attached in (True, False) if coin.random() < 0.5 else (False, True):
            if attached:
                command = f"{sys.executable} -m fa4top attach {order.session_id}"
                subprocess.run(
                    ["tmux", "new-session", "-d", "-s", "watch", "-x", "120", "-y", "40", command], check=True
                )
                time.sleep(1.5)
            began = time.monotonic_ns()
            time.sleep(WATCH_S)
            own = [r.body.times_us for r in records(order, began) if isinstance(r.body, CleanBurst)]
            levels[attached] = statistics.median(log(t) for times in own for t in times)
            if attached:
                screen = subprocess.run(["tmux", "capture-pane", "-p", "-t", "watch"], capture_output=True, text=True)
                assert "TFLOP" in screen.stdout, screen.stdout
                subprocess.run(["tmux", "kill-session", "-t", "watch"], check=False)
                time.sleep(0.5)
        ratios.append(levels[True] - levels[False])
        print(f"round {number}: watched / alone = {exp(ratios[-1]):.5f}", flush=True)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    print(f"clean time with a TUI watching / without: {exp(statistics.fmean(ratios)):.5f} +- {error:.5f}")


def hang(order: Order, control: Control, settings: list[str]) -> None:
    healthy = order.knobs

    def bursts(since: int) -> int:
        return sum(isinstance(r.body, CleanBurst) for r in records(order, since))

    until(lambda: bursts(0) > 20, 120.0)
    for setting in settings:
        began = time.monotonic_ns()
        chosen = dict(pair.split("=") for pair in setting.split(","))
        answer = control.ask({"do": "plan", "knobs": chosen})
        print(f"{setting}: {answer}", flush=True)

        def failed(since: int = began) -> Any:
            own = (r for r in records(order, since) if isinstance(r.body, EngineState) and r.body.state == "failed")
            return next(own, None)

        found = until(failed, 240.0)
        for record in records(order, began):
            if isinstance(record.body, HangReport):
                after = (record.mono_ns - began) / 1e9
                print(f"  hang after {after:.1f} s: {record.body.text}; {'; '.join(record.body.roles)}")
        print(f"  after {(found.mono_ns - began) / 1e9:.1f} s: {found.body.text}", flush=True)
        if any(isinstance(r.body, HangReport) for r in records(order, began)):
            print(f"  again: {control.ask({'do': 'plan', 'knobs': chosen})}")
        back = time.monotonic_ns()
        print(f"  back: {control.ask({'do': 'plan', 'knobs': healthy})}", flush=True)
        while bursts(back) <= 20:
            time.sleep(0.1)
        print(f"  healthy again, 20 bursts after {(time.monotonic_ns() - back) / 1e9:.1f} s", flush=True)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the engine is stopped
    what, target, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.environ.get("FA4TOP_BENCH_RECORD", temporary)
        order: Order = order_of.main(["--target", target, "--record", folder], standalone_mode=False)
        order = replace(order, stay=True, unsafe=what == "hang")
        process = start_engine(order)
        control = connect(order.session_id, process)
        try:
            if what == "b":
                latency(order, control, rest)
            elif what == "hang":
                hang(order, control, rest)
            else:
                watched(order, int(rest[0]) if rest else 8)
        finally:
            control.ask({"do": "stop"})
            process.wait(20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
