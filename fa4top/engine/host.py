"""What a job may use of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fa4top.analysis.view.fold import Fold
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.engine.custody import Custody
from fa4top.engine.pool import Pool
from fa4top.engine.sessionlog import SessionLog
from fa4top.engine.twins import Twins
from fa4top.engine.workers import WorkerProcess
from fa4top.orders.commands import Message
from fa4top.orders.order import Order
from fa4top.records import Body, Envelope, GpuSample, Notice

BLOCKED_POLL_S = 0.5

OnState = Callable[[str, str], None]


class JobFailed(RuntimeError):
    """The job could not be done; the text says why and what to do."""


class Host:
    """Log, workers and GPU of a session, and whether launching is allowed."""

    def __init__(self, order: Order, log: SessionLog, on_state: OnState) -> None:
        self.order = order
        self.log = log
        self.on_state = on_state
        self.fold = Fold()
        self.gpu = Custody(order, self.append)
        self.pool = Pool(self._deliver, self.append, self._simulated_reading)
        self.paused = False
        self.changed = asyncio.Event()  # pause or resume
        self._plan_id = 0
        self._resident: Callable[[Order], Twins | None] = lambda order: None
        self._live_round: Callable[[], Awaitable[None]] | None = None

    def _simulated_reading(self, sample: GpuSample) -> None:
        self.gpu.simulated = sample

    def _deliver(self, record: Envelope) -> None:
        self.fold.feed(self.log.append(record.body, record.source, record.wall_ns, record.mono_ns))

    def append(self, body: Body) -> None:
        """Add a record to the log."""
        self.fold.feed(self.log.append(body))

    def say(self, level: str, text: str) -> None:
        """A sentence for the person."""
        self.append(Notice(level, text))

    def snapshot(self) -> Snapshot:
        """What this session knows so far."""
        return self.fold.snapshot()

    def next_plan_id(self) -> int:
        """Number of a plan to come."""
        self._plan_id += 1
        return self._plan_id

    @property
    def last_plan_id(self) -> int:
        """Number of the latest plan."""
        return self._plan_id

    def serve_plan(self, resident: Callable[[Order], Twins | None], live_round: Callable[[], Awaitable[None]]) -> None:
        """The live plan says how its twins and its rounds are reached."""
        self._resident, self._live_round = resident, live_round

    def resident(self, order: Order) -> Twins | None:
        """The live plan's twins when they run this order: they may be used, not ended."""
        return self._resident(order)

    async def live_round(self) -> None:
        """One round of the live plan, so that its screen goes on while a job gets ready."""
        if self._live_round is not None:
            await self._live_round()

    async def start(self, twin: str, order: Order, plan_id: int) -> WorkerProcess:
        """A worker for a job, fresh or one that stood by; it is ended with the job.

        Raises:
            WorkerGone: it can not be started.
        """
        return await self.pool.start(twin, order, plan_id)

    async def start_for(self, twin: str, order: Order, plan_id: int, first: Callable[[str], Message]) -> WorkerProcess:
        """A worker that serves no target.

        Raises:
            WorkerGone: it can not be started.
        """
        return await self.pool.start_for(twin, order, plan_id, first)

    async def end(self, *workers: WorkerProcess) -> None:
        """Stop workers of a job."""
        await self.pool.end(*workers)

    def read_gpu(self) -> None:
        """NVML's readings, if they are due."""
        if self.gpu.due:
            self.gpu_now()

    def gpu_now(self) -> GpuSample | None:
        """NVML's readings at this moment, recorded; None where there are none."""
        return self.gpu.read(self.pool.pids)

    def held_back(self) -> dict[str, int]:
        """NVML's counters of clocks held back at this moment; {} where there are none."""
        return self.gpu.held_back()

    @property
    def may_launch(self) -> bool:
        """Is launching allowed, and can what is recorded be written?"""
        return not self.paused and self.log.flush()

    def set_paused(self, paused: bool) -> None:
        """Stop or resume launching."""
        self.paused = paused
        self.on_state("paused" if paused else "running", "")
        self.changed.set()

    async def rest(self, seconds: float) -> None:
        """Wait, or until somebody pauses or resumes."""
        self.changed.clear()
        try:
            await asyncio.wait_for(self.changed.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    async def unpaused(self) -> None:
        """Return when launching is allowed and what is recorded can be written."""
        while not self.may_launch:
            await self.rest(BLOCKED_POLL_S)
