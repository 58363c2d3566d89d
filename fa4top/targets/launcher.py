"""The worker's side of a target: what a launcher takes and offers. Standard library and NumPy only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.capture import Capture
from fa4top.analysis.trace.family import Family
from fa4top.analysis.trace.layout import BufferLayout
from fa4top.orders.commands import PRIMERS
from fa4top.orders.jobs import WARM
from fa4top.records import Geometry, GpuSample


@dataclass(frozen=True)
class Burst:
    """Launches of the clean twin: time of each, microseconds; SM clock over all of them; state of the L2; what the
    host needs to queue one."""

    times_us: list[float]
    sm_clock_mhz: float | None
    l2: str = WARM
    host_us: float | None = None


@dataclass(frozen=True)
class CheckResult:
    """Sampled rows of the output against an FP32 reference; errors relative to the reference's RMS."""

    rows: int
    max_error: float
    rms_error: float
    limit: float
    output_hash: str


class Launcher(Protocol):
    """What the worker loop calls, in this order: compile, check, then bursts until close."""

    layout: BufferLayout
    probe_set: str
    probe_sets: list[str]
    family: Family
    arch: str
    versions: dict[str, str]

    def compile(self, progress: Callable[[str, float | None], None]) -> Geometry:
        """Build the kernel; no launch that counts."""
        ...

    def check(self) -> CheckResult:
        """Launch once and compare with the reference."""
        ...

    def inputs_digest(self) -> str:
        """A hash of the input tensors' bytes: outputs may be compared only where it is the same."""
        ...

    def output(self) -> npt.NDArray[np.float32]:
        """One launch into a buffer full of NaN: (batch, queries, heads, head_dim_v), widened to FP32, on the host."""
        ...

    def clean_burst(self, launches: int, l2: str = WARM, primers: int = PRIMERS) -> Burst:
        """Time ``launches`` launches after the primers."""
        ...

    def traced_launch(self, cta: int) -> Capture:
        """Launch once with probes, recording this CTA."""
        ...

    def hung_capture(self) -> Capture | None:
        """What a launch that does not end has recorded so far, from another thread; None where nothing can be read."""
        ...

    def telemetry(self) -> GpuSample | None:
        """A simulated device's own readings; None where NVML is asked by the engine."""
        ...

    def close(self) -> None:
        """Give the device back."""
        ...


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A kernel that was compiled without a GPU: its cubin and PTX ('' where there is none), the versions that made it,
    how it lays the problem out, and, with probes, their counts by role and what the injector noted."""

    cubin: bytes
    ptx: str
    versions: dict[str, str]
    geometry: Geometry | None = None
    probe_counts: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class TargetError(RuntimeError):
    """A fault with a reason that the person can act on."""

    def __init__(self, reason: str, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text
        self.hint = hint
