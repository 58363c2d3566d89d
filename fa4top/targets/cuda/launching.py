"""What all launchers of real kernels share once the kernel is compiled and bound: bursts, traced launches, hangs."""

from __future__ import annotations

from typing import Any

from fa4top.analysis.trace.capture import Capture
from fa4top.analysis.trace.layout import next_generation
from fa4top.orders.commands import PRIMERS, LaunchRequest
from fa4top.orders.jobs import WARM
from fa4top.records import GpuSample
from fa4top.targets.base import handicap_percent
from fa4top.targets.cuda.bursts import BurstTimer, traced_launch
from fa4top.targets.cuda.trace_buffer import TraceBuffer
from fa4top.targets.launcher import Burst


class CudaLauncher:
    """A launcher's second half. Subclasses set ``arch`` and ``_buffer`` and say how one launch is queued."""

    arch: str
    _buffer: TraceBuffer | None

    def __init__(self, request: LaunchRequest, cupy: Any) -> None:
        self._request = request
        self._cupy = cupy
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._generation = 0
        self._cta = 0
        self._timer: BurstTimer | None = None

    def _launch(self) -> None:
        raise NotImplementedError

    def _record_first(self, buffer: TraceBuffer) -> None:
        """One CTA records in the first launch too, so that a hang of it can be explained."""
        self._generation, self._cta = next_generation(self._generation), 0
        buffer.record_async(0, self._cta, self._generation)

    def clean_burst(self, launches: int, l2: str = WARM, primers: int = PRIMERS) -> Burst:
        """Time ``launches`` launches after the primers."""
        if self._timer is None:
            delay = handicap_percent(self._request.knobs)
            self._timer = BurstTimer(self._cupy, self._stream, self._launch, self.arch, delay)
        return self._timer.burst(launches, l2, primers)

    def traced_launch(self, cta: int) -> Capture:
        """Launch once with probes, recording this CTA."""
        assert self._buffer is not None
        self._generation = next_generation(self._generation)
        self._cta = cta
        return traced_launch(self._cupy, self._stream, self._launch, self._buffer, cta, self._generation)

    def hung_capture(self) -> Capture | None:
        """What a launch that does not end has recorded so far."""
        if self._buffer is None or self._request.twin != "traced":
            return None
        self._cupy.cuda.Device(0).use()  # this thread has no context yet
        recorded = self._buffer.peek(self._cupy)
        return Capture(recorded=recorded, generation=self._generation, cta=self._cta, time_us=0.0, hung=True)

    def telemetry(self) -> GpuSample | None:
        """NVML is the engine's business."""
        return None

    def close(self) -> None:
        """Wait for the stream; the process's end frees the rest."""
        self._stream.synchronize()
