"""Custody of the GPU: the lock between fa4tops, the SM clock where it was locked, and NVML's readings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from fa4top.engine.gpulock import GpuLock
from fa4top.engine.gpus import GpuError, Telemetry, choose_gpu, list_gpus
from fa4top.orders import exits
from fa4top.orders.order import Order
from fa4top.records import Body, GpuSample, Notice

NVML_PERIOD_S = 0.5
LOCK_POLL_S = 0.5


class Stopped(Exception):
    """The session was asked to end, or can not go on; the text says which, ``code`` is the engine's exit code."""

    def __init__(self, text: str, code: int = exits.FAULT) -> None:
        super().__init__(text)
        self.code = code


class Custody:
    """One GPU in the hands of one engine; nothing of it for a simulated one, which reads itself."""

    def __init__(self, order: Order, append: Callable[[Body], object]) -> None:
        self._order = order
        self._append = append
        real = order.gpu_uuid and not order.simulated
        self._lock = GpuLock(order.gpu_uuid, order.session_id) if real else None
        self._telemetry: Telemetry | None = None
        self._due = 0.0
        self._foreign: tuple[int, ...] = ()
        self._clock_locked = False
        self.simulated: GpuSample | None = None  # a simulated device's own reading

    def _say(self, level: str, text: str) -> None:
        self._append(Notice(level, text))

    async def take(self, on_state: Callable[[str, str], None]) -> None:
        """Take the lock, waiting as long as the order says.

        Raises:
            Stopped: somebody else keeps it.
        """
        if self._lock is None:
            return
        began, said = time.monotonic(), ""
        while (holder := self._lock.acquire()) is not None:
            sentence = holder.sentence()
            if time.monotonic() - began >= self._order.wait_gpu_s:
                raise Stopped(sentence, exits.NOTHING_TO_RUN_ON)
            if sentence != said:
                said = sentence
                self._say("warning", f"waiting: {sentence}")
                on_state("waiting", sentence)
            await asyncio.sleep(LOCK_POLL_S)
        on_state("running", "")
        try:
            self._telemetry = Telemetry(choose_gpu(self._order.gpu_uuid, list_gpus()))
        except GpuError as error:
            self._say("warning", f"no GPU readings: {error}")
        self._lock_clock()

    def _lock_clock(self) -> None:
        mhz = self._order.lock_mhz
        if not mhz or self._telemetry is None:
            return
        if why := self._telemetry.lock_clock(mhz):
            self._say("warning", f"the SM clock could not be locked at {mhz} MHz ({why}); it runs free")
            return
        self._clock_locked = True
        self._say("info", f"SM clock locked at {mhz} MHz; if this engine is killed, nvidia-smi -rgc releases it")

    def release(self) -> None:
        """Give clock and lock back."""
        if self._clock_locked and self._telemetry is not None:
            self._clock_locked = False
            if why := self._telemetry.release_clock():
                self._say("error", f"the SM clock is still locked ({why}): nvidia-smi -rgc releases it")
        if self._lock is not None:
            self._lock.release()

    @property
    def due(self) -> bool:
        """Is it time for another reading?"""
        return time.monotonic() >= self._due

    def read(self, own_pids: Iterable[int]) -> GpuSample | None:
        """Readings at this moment, recorded; None where there are none."""
        if self._telemetry is None:
            return self.simulated
        self._due = time.monotonic() + NVML_PERIOD_S
        sample = self._telemetry.read(frozenset(own_pids))
        self._append(sample)
        if tuple(sample.foreign_pids) != self._foreign:
            self._foreign = tuple(sample.foreign_pids)
            if self._foreign:
                pids = ", ".join(map(str, self._foreign))
                self._say("warning", f"other processes compute on this GPU (pid {pids}): times are not to be trusted")
        return sample

    def held_back(self) -> dict[str, int]:
        """NVML's counters of clocks held back at this moment; {} where there are none."""
        return self._telemetry.held_back() if self._telemetry else {}
