"""The engine's workers: started fresh or taken from those that stand by, counted by setting when they hang, ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from fa4top.engine.standby import Standby
from fa4top.engine.workers import WorkerGone, WorkerProcess
from fa4top.orders.commands import Message
from fa4top.orders.order import Order
from fa4top.records import Body, Envelope, Fault, GpuSample, HangReport, Output

MOST_HANGS = 2

Deliver = Callable[[Envelope], None]


class Pool:
    """All worker processes of a session."""

    def __init__(self, deliver: Deliver, append: Callable[[Body], object], on_gpu: Callable[[GpuSample], None]) -> None:
        self._pass_on, self._append, self._on_gpu = deliver, append, on_gpu
        self._starts = 0
        self._standby = Standby(lambda twin: self._fresh(twin, 0))
        self._launched: dict[str, Order] = {}  # by worker
        self._hangs: dict[str, int] = {}
        self._workers: set[WorkerProcess] = set()

    def _fresh(self, twin: str, plan_id: int) -> WorkerProcess:
        self._starts += 1
        return WorkerProcess(f"{twin}{self._starts}", plan_id, twin, self._deliver, self._output)

    def _output(self, worker: str, text: str) -> None:
        self._append(Output(worker, text))

    def _deliver(self, record: Envelope) -> None:
        body = record.body
        if isinstance(body, GpuSample):
            self._on_gpu(body)  # only simulated devices read themselves
        elif isinstance(body, HangReport) and body.worker in self._launched:
            key = launch_key(self._launched[body.worker])
            self._hangs[key] = self._hangs.get(key, 0) + 1
        self._pass_on(record)

    async def start(self, twin: str, order: Order, plan_id: int) -> WorkerProcess:
        """A worker for this order; one that stands by, if it fits.

        Raises:
            WorkerGone: the interpreter can not be started, or the setting hung too often in this session.
        """
        if why := self.quarantined(order):
            hint = "choose another setting; a new session may try this one again"
            raise WorkerGone(Fault(worker=twin, plan_id=plan_id, reason="hang", text=why, hint=hint, permanent=True))
        if (ready := self._standby.take(twin, order)) is not None:
            self._workers.add(ready)
            self._launched[ready.name] = order
            ready.assign(order, plan_id)
            return ready
        return await self.start_for(twin, order, plan_id, None)

    async def start_for(
        self, twin: str, order: Order, plan_id: int, first: Callable[[str], Message] | None
    ) -> WorkerProcess:
        """A fresh worker; ``first`` makes what it is asked, by its name, instead of serving the order's target.

        Raises:
            WorkerGone: the interpreter can not be started.
        """
        worker = self._fresh(twin, plan_id)
        self._workers.add(worker)
        self._launched[worker.name] = order
        await worker.start(order, Path(order.folder) / f"{worker.name}.stderr", first(worker.name) if first else None)
        return worker

    async def stand_by(self, order: Order) -> None:
        """Let workers import ahead what a change of setting will need."""
        await self._standby.fill(order)

    async def end(self, *workers: WorkerProcess) -> None:
        """Stop these workers: one that compiles does not hear, and holds nothing, so it is not asked for long."""
        self._workers.difference_update(workers)
        await asyncio.gather(
            *(worker.stop(2.0 if worker.state and worker.state.state == "ready" else 0.1) for worker in workers)
        )

    async def end_all(self, but: set[WorkerProcess] | None = None) -> None:
        """Stop all workers but these."""
        await self.end(*(self._workers - (but or set())))

    async def close(self) -> None:
        """Stop everything, those that stand by too."""
        await self.end_all()
        await self._standby.close()

    @property
    def pids(self) -> frozenset[int]:
        """Processes of ours that may be on the GPU."""
        return frozenset(worker.pid for worker in self._workers if worker.pid is not None)

    def quarantined(self, order: Order) -> str:
        """Why this setting is not launched again in this session; '' when it may be."""
        hangs = self._hangs.get(launch_key(order), 0)
        if hangs < MOST_HANGS:
            return ""
        return f"this setting hung {hangs} times in this session: it is not launched again"


def launch_key(order: Order) -> str:
    """Names what is launched: target, shape and setting."""
    return json.dumps([order.target, asdict(order.shape), order.knobs], sort_keys=True)
