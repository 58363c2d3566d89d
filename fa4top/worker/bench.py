"""The bench worker: builds, checks and times the suite, one record each, then ends."""

from __future__ import annotations

import os
import traceback
from dataclasses import replace

from fa4top.orders import exits
from fa4top.orders.commands import Bench
from fa4top.records import WorkerState
from fa4top.worker import faults
from fa4top.worker.channel import Channel

MISSING_HINT = "pip install 'fa4top[cuda13,sass]', or --python PATH of an interpreter that has CuPy and NVRTC"


def run_bench(channel: Channel, what: Bench) -> int:
    """All chosen microbenchmarks; returns the exit code. With an architecture they are compiled, and nothing runs."""

    def state(word: str, text: str = "", progress: float | None = None) -> None:
        channel.send(
            WorkerState(
                worker=what.worker,
                plan_id=what.plan_id,
                twin="bench",
                state=word,
                pid=os.getpid(),
                text=text,
                progress=progress,
            )
        )

    state("importing")
    try:
        from fa4top.targets.bench.run import Suite, choose

        kernels = choose(what.names)
        suite = Suite(what.worker, what.plan_id, what.arch, run=not what.arch)
        for index, kernel in enumerate(kernels):
            state("measuring", kernel.name, index / len(kernels))
            channel.send(suite.one(kernel, index, len(kernels)))
        state("stopped", "", 1.0)
    except BrokenPipeError:
        raise
    except Exception as error:
        traceback.print_exc()
        fault = faults.fault_of(error, what.worker, what.plan_id, faults.RUNNING)
        if isinstance(error, ModuleNotFoundError):
            fault = replace(fault, text=str(error), hint=MISSING_HINT)
        channel.send(fault)
        return exits.FAULT
    return 0
