"""The live program: one plan after another, a clean and a traced twin in turn; jobs interrupt it, and it goes on."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from fa4top.engine.commands import checked_job
from fa4top.engine.custody import Stopped
from fa4top.engine.host import BLOCKED_POLL_S, Host, JobFailed
from fa4top.engine.jobs.registry import spec_of
from fa4top.engine.sessionlog import SessionLog
from fa4top.engine.tasks import end_task
from fa4top.engine.twins import CHANGED, Twins
from fa4top.engine.workers import WorkerGone, WorkerProcess
from fa4top.orders import exits
from fa4top.orders.jobs import AbJob, Job
from fa4top.orders.order import Order
from fa4top.records import AbState
from fa4top.targets.legal import plan_record

TIMELINE_PERIOD_S = 1.0
RESTARTS, RESTART_WINDOW_S = 3, 60.0


class LiveProgram:
    """Runs one plan after another until it is stopped; a job (bench, sweep) comes before the plan goes on."""

    def __init__(self, order: Order, log: SessionLog, on_state: Callable[[str, str], None]) -> None:
        self.order = order
        self.host = Host(order, log, on_state)
        self.host.serve_plan(self.resident, self._round)
        self._on_state = on_state
        self._twins: Twins | None = None
        self._deaths: deque[float] = deque()
        self._timeline_due = 0.0
        self._replan: Order | None = None
        self._job: Job | None = checked_job(order.job) if order.job else None
        self._next_job: Job | None = None
        self._clear = False
        self._changed = asyncio.Event()

    @property
    def paused(self) -> bool:
        """Are launches held?"""
        return self.host.paused

    def change(self, order: Order) -> int:
        """Go on with another shape or setting, in fresh workers. Returns the plan's number."""
        self._replan = order
        self._changed.set()
        return self.host.last_plan_id + 1

    def start_job(self, job: Job) -> None:
        """Interrupt what runs, do this, then go on with the plan."""
        self._next_job = job
        self._changed.set()

    def clear_ab(self) -> None:
        """End the A/B that runs, if any, and forget it; the plan goes on."""
        self._clear = True
        if isinstance(self._job, AbJob):
            self._changed.set()
        else:
            self._cleared()

    def _cleared(self) -> None:
        self._clear = False
        state: AbState | None = self.host.snapshot().ab
        if state is not None:
            self.host.append(replace(state, state="cleared", text="cleared by a viewer"))

    async def run(self) -> None:
        """Until cancelled, or until workers keep dying (Stopped), or until the order's job is done."""
        await self.host.gpu.take(self._on_state)
        try:
            while True:
                await self._until_replanned()
                if self.order.job and not self.order.stay:
                    return
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop the workers and let go of the GPU."""
        await self.host.pool.close()
        self.host.gpu.release()

    async def _do_job(self, job: Job) -> None:
        spec = spec_of(job)
        if not spec.beside_plan(self.host, job):
            await self._end_plan()
        self._on_state("running", f"{job.kind} runs")
        try:
            await spec.run(self.host, job)
        except JobFailed as error:
            if not self.order.stay:
                raise Stopped(str(error)) from error
            self.host.say("error", str(error))
        finally:
            await self.host.pool.end_all(but=self._own_workers())
        self._job = None
        self._on_state("running", f"{job.kind} done")

    def _own_workers(self) -> set[WorkerProcess]:
        return set(self._twins.workers.values()) if self._twins is not None else set()

    def resident(self, order: Order) -> Twins | None:
        """The live plan's twins when they run this order: they may be used, not ended."""
        twins = self._twins
        return twins if twins is not None and twins.healthy and same_launch(twins.order, order) else None

    async def _until_replanned(self) -> None:
        """Run the present job or plan; a change of plan cuts it short, also in the middle of a compile."""
        plan = asyncio.create_task(self._do_job(self._job) if self._job else self._run_plan())
        change = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({plan, change}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_task(change)
            failure = await end_task(plan)
        if isinstance(failure, Stopped) and self.order.stay:
            self.host.say("error", str(failure))
            self._on_state("failed", str(failure))
            await self._end_plan()
            await self._changed.wait()
            self._deaths.clear()
            self._on_state("running", "")
        elif isinstance(failure, Exception):
            raise failure
        self._changed.clear()
        if self._clear:
            self._cleared()
        self.order = self.host.order = self._replan or self.order
        self._replan = None
        # a job that was cut short is over
        self._job, self._next_job = self._next_job, None

    async def _run_plan(self) -> None:
        order, host = self.order, self.host
        if self.resident(order) is None:
            await self._end_plan()
            self._twins = Twins(order, host.next_plan_id())
            host.append(plan_record(order, self._twins.plan_id))
        while True:
            try:
                await self._ready()
                if order.stay:
                    await host.pool.stand_by(order)
                await self._round()
            except WorkerGone as gone:
                await self._lost(gone)

    async def _ready(self) -> None:
        """Both twins compiled at the same time, then checked one after the other."""
        twins = self._twins
        assert twins is not None
        for worker in await twins.start(self.host.pool):
            if worker.state is not None and (warning := worker.state.versions.get("warning")):
                self.host.say("warning", f"{worker.name}: {warning}")
        if len(twins.checks) == len(twins.workers):
            return
        why = await twins.verify(side_by_side=False)
        if any(not check.passed for check in twins.checks.values()):
            raise Stopped(f"no numbers from a wrong kernel: {why}", exits.CHECK_FAILED)
        if why == CHANGED:
            self.host.say(
                "error",
                "the traced twin's output differs from the clean twin's bit by bit: probes must not "
                "change results; do not trust this trace",
            )

    async def _round(self) -> None:
        """One clean and one traced burst under the token, readings between them, then rest."""
        began, host, twins = time.monotonic(), self.host, self._twins
        assert twins is not None
        if not host.may_launch:
            if not host.paused:
                self._on_state("blocked", host.log.blocked or "")
            await host.rest(BLOCKED_POLL_S)
            if host.may_launch:
                self._on_state("running", "")
            return
        await twins.burst(twins.burst_launches)
        timeline = began >= self._timeline_due
        if timeline:
            self._timeline_due = began + TIMELINE_PERIOD_S
        await twins.trace(timeline)
        host.read_gpu()
        await host.rest(max(0.002, 1.0 / self.order.rounds_per_s - (time.monotonic() - began)))

    async def _lost(self, gone: WorkerGone) -> None:
        """Record the fault and start over with a fresh process, unless it keeps happening."""
        host, fault = self.host, gone.fault
        host.append(fault)
        for twin, worker in list(self._twins.workers.items()) if self._twins is not None else []:
            if worker.name == fault.worker or worker.pid is None:
                if worker.name != fault.worker:
                    host.append(worker.end_fault())  # it died too
                await host.end(worker)
                assert self._twins is not None
                del self._twins.workers[twin]
        if fault.reason == "hang" and (why := host.pool.quarantined(self.order)):
            raise Stopped(f"{why}; the last: {fault.text}" if why != fault.text else why)
        if fault.permanent:
            raise Stopped(f"{fault.reason}: {fault.text}. {fault.hint}")
        now = time.monotonic()
        self._deaths.append(now)
        while self._deaths and self._deaths[0] < now - RESTART_WINDOW_S:
            self._deaths.popleft()
        if len(self._deaths) > RESTARTS:
            raise Stopped(f"workers died {len(self._deaths)} times within a minute; the last: {fault.text}")
        host.say("info", f"starting a fresh worker for {fault.worker}")

    async def _end_plan(self) -> None:
        """Stop the plan's workers."""
        twins, self._twins = self._twins, None
        if twins is not None:
            await self.host.end(*twins.workers.values())


def same_launch(a: Order, b: Order) -> bool:
    """Would workers of one order do for the other?"""
    names = (
        "target",
        "shape",
        "knobs",
        "seed",
        "python",
        "gpu_uuid",
        "detail",
        "inflight",
        "probe_set",
        "sim_fault",
        "source_path",
    )
    return all(getattr(a, name) == getattr(b, name) for name in names)
