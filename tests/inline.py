"""Whole jobs in this process: the engine's own code, its workers threads on the simulated device; no process started.

For what a job decides. What processes are for (crashes, hangs, kills, viewers) is tested with real ones.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import queue
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.engine.host import Host, JobFailed
from fa4top.engine.jobs.registry import spec_of
from fa4top.engine.sessionlog import SessionLog
from fa4top.engine.workers import WorkerProcess
from fa4top.orders.commands import Message, Serve, Stop, from_line, to_line
from fa4top.orders.jobs import Job, job_from_data
from fa4top.orders.order import Order
from fa4top.records import SCHEMA_MAJOR, SCHEMA_MINOR, Body, Envelope, Fault, Header, stamp
from fa4top.records import to_line as record_line
from fa4top.session.paths import LOG_NAME
from fa4top.session.reading import Skipped, decode_line, read_log
from fa4top.worker.loop import _Worker
from tests.limits import PATIENCE_S

PIDS = itertools.count(1_000_000)
# a mutant may wait for ever for what another thread never says
LIMIT_S = 30.0 if os.environ.get("MUTANT_UNDER_TEST") else PATIENCE_S
CLOCKED = ("ab", "arms", "sweep_series", "triage")  # jobs that look at the time


class Clock:
    """Time for jobs: it passes when they look at it, so that a budget is spent at the same block on any machine."""

    def __init__(self) -> None:
        self._looks = itertools.count()

    def monotonic(self) -> float:
        """Seconds."""
        return next(self._looks) * 0.05


class _Pipe:
    """What a worker has for its two pipes. Records go through their written form, as between processes."""

    def __init__(self, worker: InlineWorker, name: str) -> None:
        self._worker, self._name, self._seq = worker, name, 0
        self.inbox: queue.Queue[Message] = queue.Queue()

    def send(self, body: Body) -> None:
        self._seq += 1
        record = decode_line(record_line(stamp(body, self._name, self._seq)), Skipped())
        assert record is not None
        self._worker.loop.call_soon_threadsafe(self._worker.take, record)

    def commands(self) -> Iterator[Message]:
        while True:
            yield self.inbox.get()


class InlineWorker(WorkerProcess):
    """A worker of the engine whose life is a thread."""

    async def _spawn(self, order: Order, stderr_path: Path) -> None:
        self.loop = asyncio.get_running_loop()
        self._number = next(PIDS)
        self._pipe = _Pipe(self, self.name)
        self._over = asyncio.Event()
        self._thread: threading.Thread | None = None

    def _write(self, message: Message) -> None:
        message = from_line(to_line(message).decode())
        if isinstance(message, Serve):
            self._thread = threading.Thread(target=self._live, args=(message,), daemon=True)
            self._thread.start()
        else:
            self._pipe.inbox.put(message)

    def _live(self, serve: Serve) -> None:
        _Worker(self._pipe, serve.request, serve.worker, serve.plan_id).run()  # type: ignore[arg-type]
        self.loop.call_soon_threadsafe(self._finish)

    def take(self, record: Envelope) -> None:
        """As the reader of the pipe does."""
        if isinstance(record.body, Fault):
            self._fault = record.body
            return
        if record.kind == "worker":
            self.state = record.body  # type: ignore[assignment]
        self._deliver(record)
        self._records.put_nowait(record)

    def _finish(self) -> None:
        self._over.set()
        self._records.put_nowait(None)

    @property
    def pid(self) -> int | None:
        return None if self._over.is_set() else self._number

    def kill(self) -> None:
        self._pipe.inbox.put(Stop())

    async def _ended(self) -> None:
        await self._over.wait()

    async def stop(self, grace_s: float = 2.0) -> None:
        if self._thread is None:
            return
        self._pipe.inbox.put(Stop())
        await self._over.wait()


@dataclass(frozen=True)
class Done:
    """What a job left: the session's state, its records, and why it failed, if so."""

    snapshot: Snapshot
    records: list[Envelope]
    failed: str

    def bodies(self, kind: str) -> list[Body]:
        """The records of one kind."""
        return [record.body for record in self.records if record.kind == kind]


def run_inline(order: Order, job: Job, cut_at: str = "") -> Done:
    """Do a job to its end, as an engine does that has nothing else to do; or cut it short at the second record of the
    kind ``cut_at``."""
    with ExitStack() as stack:
        stack.enter_context(patch("fa4top.engine.pool.WorkerProcess", InlineWorker))
        stack.enter_context(patch("fa4top.targets.sim.launch.COMPILE_STEP_S", 0.0))
        stack.enter_context(patch("fa4top.worker.loop.traceback.print_exc", lambda: None))
        for module in CLOCKED:
            stack.enter_context(patch.object(import_module(f"fa4top.engine.jobs.{module}"), "time", Clock()))
        return asyncio.run(asyncio.wait_for(_run(order, job, cut_at), LIMIT_S))


def run_order(order: Order) -> Done:
    """Do the job that an order holds."""
    return run_inline(order, job_from_data(order.job))


async def _run(order: Order, job: Job, cut_at: str) -> Done:
    header = Header(
        session_id=order.session_id,
        schema_major=SCHEMA_MAJOR,
        schema_minor=SCHEMA_MINOR,
        fa4top_version="0",
        argv=order.argv,
        python="3",
        platform="test",
        simulated=order.simulated,
    )
    folder = Path(order.folder)
    folder.mkdir(parents=True, exist_ok=True)
    log = SessionLog(folder / LOG_NAME, order.simulated)
    host = Host(order, log, lambda state, text: None)
    log.append(header)
    failed = ""
    append, seen = host.append, itertools.count(1)

    def cutting(body: Body) -> None:
        append(body)
        if body.kind == cut_at and next(seen) == 2:
            raise asyncio.CancelledError  # where a real one arrives is left to chance

    try:
        with patch.object(host, "append", cutting):
            await spec_of(job).run(host, job)
    except JobFailed as error:
        failed = str(error)
    except asyncio.CancelledError:
        failed = "cut short"
    finally:
        await host.pool.close()
        log.close()
    return Done(host.snapshot(), list(read_log(folder)), failed)
