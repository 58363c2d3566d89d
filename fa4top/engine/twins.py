"""The clean and the traced worker of one order: started, checked against each other, launched in turn."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping
from typing import Protocol

from fa4top.engine.pace import burst_launches, launch_deadline_s, recording_cta
from fa4top.engine.workers import WorkerProcess
from fa4top.orders.commands import PRIMERS, CleanLaunches, TracedLaunch
from fa4top.orders.jobs import WARM
from fa4top.orders.order import Order
from fa4top.records import Check, CleanBurst, Geometry, TraceSample

CLEAN, TRACED = "clean", "traced"
FIRST_LAUNCHES = 3  # of a kernel whose time is not known


class Starts(Protocol):
    """Starts workers: the engine's pool."""

    async def start(self, twin: str, order: Order, plan_id: int) -> WorkerProcess:
        """A worker process for this twin."""
        ...


class Twins:
    """Two workers of one setting. Nothing of one is taken for the other's: headline time is the clean one's."""

    def __init__(self, order: Order, plan_id: int) -> None:
        self.order = order
        self.plan_id = plan_id
        self.workers: dict[str, WorkerProcess] = {}
        self.checks: dict[str, Check] = {}
        self.time_us: float | None = None  # median launch of the last burst
        self.traces = 0

    @property
    def clean(self) -> WorkerProcess:
        """The one without probes."""
        return self.workers[CLEAN]

    @property
    def traced(self) -> WorkerProcess:
        """The one with them."""
        return self.workers[TRACED]

    @property
    def geometry(self) -> Geometry | None:
        """How the clean kernel lies on the chip."""
        return self.workers[CLEAN].geometry if CLEAN in self.workers else None

    @property
    def healthy(self) -> bool:
        """Are both alive, checked and ready?"""
        both = [self.workers.get(CLEAN), self.workers.get(TRACED)]
        return all(w is not None and w.pid is not None and w.state and w.state.state == "ready" for w in both)

    async def start(self, pool: Starts) -> list[WorkerProcess]:
        """Start those that are missing, side by side, and wait until they have compiled. Nothing runs on the GPU yet.

        Raises:
            WorkerGone: one of them could not.
        """
        fresh = []
        for twin in (CLEAN, TRACED):
            if twin not in self.workers:
                self.workers[twin] = await pool.start(twin, self.order, self.plan_id)
                self.checks.pop(twin, None)
                fresh.append(self.workers[twin])
        for worker in fresh:
            await worker.compiled()
        return fresh

    async def check(self, worker: WorkerProcess) -> Check:
        """One twin's output against FP32.

        Raises:
            WorkerGone: it did not answer.
        """
        self.checks[worker.twin] = answer = await worker.check()
        return answer

    async def verify(self, side_by_side: bool) -> str:
        """Check those that were not yet, and hold the outputs against each other. Why nothing of these twins may be
        measured, '' when it may.

        Args:
            side_by_side: at the same time; else the traced twin first, so that a first launch that hangs can be told.

        Raises:
            WorkerGone: one did not answer.
        """
        todo = [self.workers[twin] for twin in (TRACED, CLEAN) if twin not in self.checks]
        if side_by_side:
            await asyncio.gather(*(self.check(worker) for worker in todo))
        else:
            for worker in todo:
                if not (await self.check(worker)).passed:
                    break
        return verdict(self.checks)

    async def burst(self, launches: int, l2: str = WARM, primers: int = PRIMERS) -> CleanBurst:
        """Launches of the clean twin.

        Raises:
            WorkerGone: it is gone, or a launch hangs.
        """
        command = CleanLaunches(launches=launches, l2=l2, primers=primers)
        burst = await self.clean.clean(command, launch_deadline_s(self.time_us, launches + primers))
        self.time_us = statistics.median(burst.times_us)
        return burst

    @property
    def burst_launches(self) -> int:
        """Launches of the next burst."""
        return FIRST_LAUNCHES if self.time_us is None else burst_launches(self.time_us)

    async def trace(self, timeline: bool) -> TraceSample:
        """One traced launch; the recording CTA rotates.

        Raises:
            WorkerGone: it is gone, or the launch hangs.
        """
        command = TracedLaunch(cta=recording_cta(self.traced.geometry, self.traces), timeline=timeline)
        sample = await self.traced.trace(command, launch_deadline_s(self.time_us, 1 + PRIMERS))
        self.traces += 1
        return sample


def verdict(checks: Mapping[str, Check]) -> str:
    """Why twins with these outputs may not be measured; '' when they may. Clean comes first."""
    for twin in (CLEAN, TRACED):
        if twin in checks and not checks[twin].passed:
            return f"the output is wrong ({twin} twin): {checks[twin].text}"
    equal = len({check.output_hash for check in checks.values()}) <= 1
    return "" if equal else CHANGED


CHANGED = "probes change the output"
