"""The sim target's launcher: the same buffers, checks and faults as a real device. NumPy and the standard library."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.capture import Capture
from fa4top.analysis.trace.layout import BufferLayout, Recorded, next_generation
from fa4top.orders.commands import PRIMERS, LaunchRequest
from fa4top.orders.jobs import WARM
from fa4top.records import Geometry, GpuSample
from fa4top.targets import reference
from fa4top.targets.fa4.family import SM90, SM100
from fa4top.targets.launcher import Burst, CheckResult, TargetError
from fa4top.targets.sim.chips import load_chip
from fa4top.targets.sim.device import Device
from fa4top.targets.sim.trace import LaunchFacts, write_buffer

CHECK_ROWS = 2
COMPILE_STEP_S = 0.05
REST_S = 0.1  # simulated pause between bursts
DRIFT_PER_S, DRIFT_WRAP_S = 0.0005, 600.0
SLOW_HOST_US = 10_000.0
HOST_US = 6.0  # as measured for flash-attn-4 on an H200
AT_ONCE_S = 0.009
HANG_STEP = 36
FAULT_AFTER = 6  # traced launches before a worker crashes, hangs or fails

LAYOUTS = {
    SM100.name: BufferLayout(roles=SM100.roles, capacity=131072, stride=8),
    SM90.name: BufferLayout(roles=SM90.roles[:2], capacity=4096, stride=16),  # the model has two MMA warpgroups
}


def make_launcher(request: LaunchRequest) -> SimLauncher:
    """Entry point named by the target's description."""
    return SimLauncher(request)


def import_ahead(knobs: dict[str, str]) -> None:
    """For a worker that stands by: importing this module is all there is to do."""
    load_chip(knobs["chip"])


class SimLauncher:
    """One setting on the simulated device."""

    def __init__(self, request: LaunchRequest) -> None:
        self._request = request
        self._faults = frozenset(filter(None, request.fault.split(",")))
        chip = load_chip(request.knobs["chip"])
        self._chip = chip
        self._device = Device(
            chip,
            chip.modes[request.knobs["pv_mode"]],
            request.shape,
            Fraction(request.knobs["p_split"]),
            # every process has noise of its own
            request.seed + (request.twin == "traced") + 1000 * int(request.options.get("stream", "0")),
            self._faults,
        )
        self.family, self.arch = chip.family, chip.arch
        self.layout = LAYOUTS[self.family.name]
        self.probe_set = ("detail" if request.detail else "coarse") if request.twin == "traced" else ""
        self.probe_sets = ["coarse", "detail"]
        self.versions = {"sim": "1", "chip data": chip.key}
        self._buffer = np.zeros(self.layout.total_bytes, dtype=np.uint8)
        self._generation = 0
        self._traced = 0
        self._hung: Capture | None = None
        self._bursts = 0
        self._outputs = 0
        self._last_burst_s = 0.0
        self._ns = 1_000_000_000
        common = chip.common
        share = common.detail_share if request.detail else common.probe_share
        self._slowdown = 1.0 + share if request.twin == "traced" else 1.0
        self._handicap = 1.0 + float(request.knobs["handicap"]) / 100.0

    def compile(self, progress: Callable[[str, float | None], None]) -> Geometry:
        """Nothing to compile; takes a moment so that progress can be seen."""
        for step in range(3):
            progress("building the simulated kernel", step / 3)
            time.sleep(COMPILE_STEP_S)
        if "compile" in self._faults:
            raise TargetError("compile error", "ptxas: simulated: too many registers", "another setting may compile")
        if "oom" in self._faults:
            raise MemoryError("simulated: out of memory")
        progress("compiled", 1.0)
        return self._device.geometry

    def check(self) -> CheckResult:
        """Attention in reduced precision on a few rows, against FP32: the same comparison as on a real device."""
        shape, seed = self._request.shape, self._request.seed
        rows = reference.sample_rows(shape, CHECK_ROWS, seed)
        outputs, references = [], []
        ratio = shape.heads // shape.kv_heads
        for batch, head, row in rows:
            kv = np.random.default_rng((seed, batch, head // ratio))
            k, v = (_rounded(kv.standard_normal((shape.seqlen_k, shape.head_dim), dtype=np.float32)) for _ in "kv")
            q = _rounded(
                np.random.default_rng((seed, batch, head, row)).standard_normal(shape.head_dim, dtype=np.float32)
            )
            exact = reference.reference_row(q, k, v, row, shape)
            outputs.append(_rounded(exact))
            references.append(exact)
        output = np.stack(outputs)
        if "check" in self._faults:
            output = output + 0.1 * np.abs(output).max()
        if "probes" in self._faults and self._request.twin == "traced":
            output = output * np.float32(1.0 + 2.0**-8)
        if "not-bitwise" in self._faults and self._request.knobs["p_split"] != "3/4":
            output = output * np.float32(1.0 + 2.0**-8)
        worst, rms = reference.relative_errors(output, np.stack(references))
        digest = hashlib.sha256(output.tobytes()).hexdigest()[:16]
        return CheckResult(len(rows), worst, rms, reference.RMS_LIMITS["bf16"], digest)

    def inputs_digest(self) -> str:
        """Of the seed: the simulated tensors follow from it."""
        other = "inputs" in self._faults and self._request.knobs["p_split"] != "3/4"
        return reference.digest_of([np.array([self._request.seed + other])])

    def output(self) -> npt.NDArray[np.float32]:
        """A made-up output of a few rows, the same every time; with the fault "flake" not quite."""
        shape = self._request.shape
        random = np.random.default_rng(self._request.seed)
        values = _rounded(random.standard_normal((1, min(shape.seqlen_q, 512), 2, 64), dtype=np.float32))
        self._outputs += 1
        if "flake" in self._faults and self._outputs % 7 == 0:
            values[0, 300:302, 1] += np.float32(0.5)
        if "not-bitwise" in self._faults and self._request.knobs["p_split"] != "3/4":
            values[0, 5] *= np.float32(1.0 + 2.0**-6)
        return values

    def clean_burst(self, launches: int, l2: str = WARM, primers: int = PRIMERS) -> Burst:
        """Simulated times; no real time passes."""
        self._device.clock.rest(REST_S)
        readings = [self._device.launch_us(self._slowdown) for _ in range(launches)]
        self._fault_now()
        factor, clock_factor = self._disturbed()
        times_us = [time_us * self._handicap * factor / clock_factor for time_us, _ in readings]
        return Burst(
            times_us,
            clock_factor * float(np.mean([mhz for _, mhz in readings])),
            l2,
            SLOW_HOST_US if "slow-host" in self._faults else HOST_US,
        )

    def _disturbed(self) -> tuple[float, float]:
        """Factors on times and on the clock, of what disturbs a comparison."""
        factor, clock_factor = 1.0, 1.0
        now = time.monotonic()
        if "drift" in self._faults:
            factor *= 1.0 + DRIFT_PER_S * (now % DRIFT_WRAP_S)
        if "position" in self._faults and now - self._last_burst_s < AT_ONCE_S:
            factor *= 0.98
        self._bursts += 1
        if "throttled" in self._faults:
            clock_factor = 0.85
        if "hungry" in self._faults and self._handicap == 1.0 and self._bursts % 2:
            clock_factor = 0.975
        self._last_burst_s = time.monotonic()
        return factor, clock_factor

    def traced_launch(self, cta: int) -> Capture:
        """Simulate the recording CTA and write its buffer."""
        self._device.clock.rest(REST_S)
        self._traced += 1
        if "hang" in self._faults and self._traced >= FAULT_AFTER:
            self._hang(cta)
        self._fault_now()
        time_us, mhz = self._device.launch_us(self._slowdown)
        self._generation = next_generation(self._generation)
        logs, sm = self._device.trace(cta, self._slowdown)
        self._ns += 10_000_000
        clock_base = int(self._ns * mhz / 1000.0) + sm * 977_001
        facts = LaunchFacts(self._generation, cta, sm, clock_base, self._ns // 32 * 32, mhz)
        capacity = 300 if "drop-events" in self._faults else self.layout.capacity
        if "stale" in self._faults and self._traced % 3 == 0:
            logs.pop(self.layout.roles[-1])  # this role's slots and header stay those of the launch before
        write_buffer(self._buffer, self.layout, logs, facts, capacity)
        return self._captured(cta, time_us * self._handicap)

    def _captured(self, cta: int, time_us: float) -> Capture:
        """As a device's buffer is copied: headers, then what was written."""
        whole = self.layout.views(self._buffer)
        slots = tuple(
            own[: self.layout.bytes_recorded(header) // self.layout.stride].copy()
            for header, own in zip(whole.headers, whole.slots, strict=True)
        )
        recorded = Recorded(whole.headers.copy(), slots)
        return Capture(recorded=recorded, generation=self._generation, cta=cta, time_us=time_us)

    def _hang(self, cta: int) -> None:
        """A launch whose second signal of P is lost: it leaves what was recorded until then, and does not end."""
        self._generation = next_generation(self._generation)
        logs, sm = self._device.trace(cta, self._slowdown, hang_at=HANG_STEP)
        facts = LaunchFacts(self._generation, cta, sm, 12_345_678, self._ns, self._chip.clock_mhz)
        self._buffer[:] = 0
        write_buffer(self._buffer, self.layout, logs, facts, self.layout.capacity)
        self._hung = replace(self._captured(cta, 0.0), hung=True)
        time.sleep(3600)

    def hung_capture(self) -> Capture | None:
        """What a launch that does not end has recorded so far."""
        return self._hung

    def _fault_now(self) -> None:
        if self._traced < FAULT_AFTER:
            return
        if "crash" in self._faults:
            os.kill(os.getpid(), signal.SIGKILL)
        if "hang" in self._faults:
            time.sleep(3600)
        if "error" in self._faults:
            raise TargetError(
                "CUDA error",
                "cudaErrorIllegalAddress: simulated: an illegal memory access was encountered",
                "CUDA errors are sticky: the process is replaced; run compute-sanitizer if it comes back",
            )

    def telemetry(self) -> GpuSample | None:
        """What NVML would say."""
        mhz = self._device.clock.mhz()
        load = mhz / self._chip.clock_mhz
        throttled = load < 0.97 or "throttled" in self._faults
        return GpuSample(
            gpu_uuid=self._request.gpu_uuid,
            name=self._chip.name,
            sm_clock_mhz=round(mhz),
            mem_clock_mhz=None,
            power_w=round(self._chip.power_limit_w * min(0.99, 0.55 + 0.3 * self._device.clock.heat), 1),
            power_limit_w=self._chip.power_limit_w,
            temperature_c=round(44.0 + 12.0 * self._device.clock.heat, 1),
            memory_used_mib=None,
            memory_total_mib=self._chip.memory_mib,
            throttle=["SW power cap"] if throttled else [],
            foreign_pids=[4242] if "foreign" in self._faults else [],
        )

    def close(self) -> None:
        """Nothing to give back."""


def _rounded(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return reference.bf16_to_float(reference.float_to_bf16(values))
