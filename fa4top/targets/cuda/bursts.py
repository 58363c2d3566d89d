"""Timing of launches on one stream, and the SM clock meanwhile. Workers only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.capture import Capture
from fa4top.orders.commands import PRIMERS
from fa4top.orders.jobs import COLD
from fa4top.targets.cuda.compile import compile_kernel
from fa4top.targets.cuda.trace_buffer import NOBODY, TraceBuffer
from fa4top.targets.launcher import Burst, TargetError

SOURCE = "burst.cu"
STAMP_SLOTS = 512  # above every chip's number of SMs
FLUSH_TIMES = 2  # times the L2's size written between cold launches
PERSISTING_LIMIT = 6  # cudaLimitPersistingL2CacheSize


class BurstTimer:
    """Times bursts of one kernel's launches."""

    def __init__(
        self, cupy: Any, stream: Any, launch: Callable[[], None], arch: str, delay_percent: float | None = None
    ) -> None:
        """``delay_percent``: a delay kernel follows every launch, for so much of the launch's own time (0: for no time,
        the other arm of such a comparison); None: nothing follows."""
        self._cupy = cupy
        self._stream = stream
        self._launch = launch
        self._delay_percent = delay_percent
        self._delay_cycles: int | None = None
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self._sm_count = int(properties["multiProcessorCount"])
        self._l2_bytes = int(properties["l2CacheSize"])
        self._flush: Any = None
        self._stamps = cupy.zeros((2, STAMP_SLOTS, 2), dtype=cupy.uint64)
        module = cupy.cuda.function.Module()
        module.load(compile_kernel(SOURCE, arch).data)
        self._module = module
        self._stamp = module.get_function("stamp")
        self._delay = module.get_function("delay")

    def burst(self, launches: int, l2: str, primers: int = PRIMERS) -> Burst:
        """``launches`` launches, microseconds each, after the primers, which take the ramp of the clock and the cold
        caches. Cold: twice the L2's size is written before each launch, outside its time.

        Raises:
            TargetError: cold was asked for, and part of the L2 is set aside, so that writing does not empty it.
        """
        if self._delay_percent is not None and self._delay_cycles is None:
            self._delay_cycles = 0
            if self._delay_percent:
                plain = self._timed(3, l2, 3)
                cycles = float(np.median(plain.times_us)) * (plain.sm_clock_mhz or 1000.0)
                self._delay_cycles = round(cycles * self._delay_percent / 100.0)
        return self._timed(launches, l2, primers)

    def _timed(self, launches: int, l2: str, primers: int) -> Burst:
        cold = l2 == COLD
        if cold:
            self._prepare_flush()
        events = [(self._cupy.cuda.Event(), self._cupy.cuda.Event()) for _ in range(launches)]
        with self._stream:
            self._stamps.fill(0)
        for _ in range(primers):
            self._one(cold, None)
        self._mark(0)
        host_s = 0.0
        for pair in events:
            host_s += self._one(cold, pair)
        self._mark(1)
        self._stream.synchronize()
        elapsed = self._cupy.cuda.get_elapsed_time
        times_us = [elapsed(begin, end) * 1000.0 for begin, end in events]
        return Burst(times_us, mean_clock_mhz(self._cupy.asnumpy(self._stamps)), l2, host_s / launches * 1e6)

    def _one(self, cold: bool, events: tuple[Any, Any] | None) -> float:
        """One launch; seconds that the host needed to queue it."""
        if cold:
            self._flush.memset_async(0, self._l2_bytes * FLUSH_TIMES, self._stream)
        if events:
            events[0].record(self._stream)
        began = time.perf_counter()
        self._launch()
        host_s = time.perf_counter() - began
        if self._delay_cycles is not None:
            with self._stream:
                self._delay((1,), (1,), (np.uint64(self._delay_cycles),))
        if events:
            events[1].record(self._stream)
        return host_s

    def _mark(self, which: int) -> None:
        with self._stream:
            self._stamp((self._sm_count,), (32,), (self._stamps[which], np.uint32(STAMP_SLOTS)))

    def _prepare_flush(self) -> None:
        if self._flush is not None:
            return
        runtime = self._cupy.cuda.runtime
        if runtime.deviceGetLimit(PERSISTING_LIMIT):
            runtime.deviceSetLimit(PERSISTING_LIMIT, 0)  # of this process; some drivers start with a share
        if left := runtime.deviceGetLimit(PERSISTING_LIMIT):
            raise TargetError(
                "L2 set aside",
                f"{left} bytes of the L2 cache are set aside for persisting data: they can not be emptied",
                "reset cudaLimitPersistingL2CacheSize, or measure with --l2 warm",
            )
        self._flush = self._cupy.cuda.alloc(self._l2_bytes * FLUSH_TIMES)


def mean_clock_mhz(stamps: npt.NDArray[np.uint64]) -> float | None:
    """SM clock between two stamps: median over the SMs that are in both.

    Args:
        stamps: (2, SMs, 2), global timer in ns and SM clock in cycles; zero where no CTA ran.
    """
    both = (stamps[:, :, 0] > 0).all(axis=0)
    if not both.any():
        return None
    spans = stamps[1, both].astype(np.int64) - stamps[0, both].astype(np.int64)
    if (spans <= 0).any():
        return None
    return float(np.median(spans[:, 1] / spans[:, 0]) * 1000.0)


def traced_launch(
    cupy: Any, stream: Any, launch: Callable[[], None], buffer: TraceBuffer, cta: int, generation: int
) -> Capture:
    """Primers that record nothing, so that the clock is where the clean twin's bursts have it, then one launch that
    records this CTA."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    buffer.record_async(0, NOBODY, generation)
    for _ in range(PRIMERS):
        launch()
    buffer.record_async(1, cta, generation)
    begin.record(stream)
    launch()
    end.record(stream)
    recorded = buffer.capture()
    time_us = cupy.cuda.get_elapsed_time(begin, end) * 1000.0
    return Capture(recorded=recorded, generation=generation, cta=cta, time_us=time_us)
