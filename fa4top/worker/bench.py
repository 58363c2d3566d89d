"""The bench worker: builds, checks and times the suite, one record each, then ends."""

from __future__ import annotations

import os

from fa4top.records import Fault, WorkerState
from fa4top.targets.launcher import TargetError
from fa4top.worker.channel import Channel

EXIT_FAULT = 4


def run_bench(channel: Channel, worker: str, plan_id: int, names: list[str], arch: str) -> int:
    """All chosen microbenchmarks; returns the exit code. ``arch``: compile for it, run nothing; '' runs on the GPU."""

    def state(word: str, text: str = "", progress: float | None = None) -> None:
        channel.send(WorkerState(worker, plan_id, "bench", word, os.getpid(), text, progress))

    state("importing")
    try:
        from fa4top.targets.bench.run import Bench, choose

        kernels = choose(names)
        bench = Bench(worker, plan_id, arch, run=not arch)
        for index, kernel in enumerate(kernels):
            state("measuring", kernel.name, index / len(kernels))
            channel.send(bench.one(kernel, index, len(kernels)))
        state("stopped", "", 1.0)
    except BrokenPipeError:
        raise
    except TargetError as error:
        channel.send(Fault(worker, plan_id, error.reason, error.text, error.hint))
        return EXIT_FAULT
    except ModuleNotFoundError as error:
        hint = "pip install 'fa4top[cuda13,sass]', or --python PATH of an interpreter that has CuPy and NVRTC"
        channel.send(Fault(worker, plan_id, "missing package", str(error), hint))
        return EXIT_FAULT
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        channel.send(Fault(worker, plan_id, "exception", text, "the worker's log has the traceback"))
        raise
    return 0
