"""GPUs of this node through NVML, named by UUID. Every reading is optional: None where the GPU does not say."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fa4top.analysis.chip.chips import arch_of
from fa4top.records import GpuSample

THROTTLE_REASONS: dict[int, str] = {
    0x4: "SW power cap",
    0x8: "HW slowdown",
    0x10: "sync boost",
    0x20: "SW thermal",
    0x40: "HW thermal",
    0x80: "HW power brake",
}
# NVML's running counters (nvml.h, NVML_FI_DEV_...): what happens between two readings is not missed
HELD_BACK_COUNTERS: dict[str, int] = {"SW power cap": 74, "SW thermal": 269, "HW thermal": 270, "HW power brake": 271}


@dataclass(frozen=True)
class Gpu:
    """One GPU or MIG instance."""

    index: int
    uuid: str
    name: str
    arch: str
    is_mig: bool = False


class GpuError(RuntimeError):
    """No such GPU, or no NVML; the text says what to do."""


def _nvml() -> Any:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise GpuError(f"no NVIDIA driver answers here ({error})") from error
    return pynvml


def driver_versions() -> tuple[str, str]:
    """Versions of the driver and of the newest CUDA that it runs.

    Raises:
        GpuError: no driver answers.
    """
    nvml = _nvml()
    cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
    return _text(nvml.nvmlSystemGetDriverVersion()), f"{cuda // 1000}.{cuda % 1000 // 10}"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def list_gpus() -> list[Gpu]:
    """GPUs in NVML's order, each followed by its MIG instances; [] when there is no driver."""
    try:
        nvml = _nvml()
    except GpuError:
        return []
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        arch = arch_of((major, minor))
        name = _text(nvml.nvmlDeviceGetName(handle))
        found.append(Gpu(index, _text(nvml.nvmlDeviceGetUUID(handle)), name, arch))
        found += _mig_instances(nvml, handle, index, name, arch)
    return found


def _mig_instances(nvml: Any, handle: Any, index: int, name: str, arch: str) -> list[Gpu]:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
        if not current:
            return []
        count = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except nvml.NVMLError:
        return []
    found = []
    for number in range(count):
        try:
            mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            found.append(Gpu(index, _text(nvml.nvmlDeviceGetUUID(mig)), f"{name} MIG {number}", arch, True))
        except nvml.NVMLError:
            continue
    return found


def choose_gpu(wanted: str, gpus: list[Gpu], environment: Mapping[str, str] = os.environ) -> Gpu:
    """The GPU that ``--gpu`` means: NVML index, UUID or the start of one; without it the first visible to CUDA.

    Raises:
        GpuError: nothing fits.
    """
    if not gpus:
        raise GpuError("no NVIDIA GPU here")
    visible = environment.get("CUDA_VISIBLE_DEVICES", "")
    key = wanted or visible.split(",")[0].strip()
    if not key:
        return next(gpu for gpu in gpus if not gpu.is_mig)
    if key.isdigit():
        matches = [gpu for gpu in gpus if not gpu.is_mig and gpu.index == int(key)]
    else:
        matches = [gpu for gpu in gpus if gpu.uuid.startswith(key)]
    if len(matches) != 1:
        listing = "; ".join(f"{gpu.index}: {gpu.name} {gpu.uuid}" for gpu in gpus)
        raise GpuError(f"--gpu {key} fits {len(matches)} GPUs; there are {listing}")
    return matches[0]


class Telemetry:
    """Readings of one GPU between bursts. A field that fails once with 'not supported' is not asked for again."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._nvml = _nvml()
        self._handle = self._nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        self._unsupported: set[str] = set()
        self._foreign: list[int] = []
        self._foreign_due = 0.0

    def _ask(self, name: str, question: Callable[[], Any]) -> Any:
        if name in self._unsupported:
            return None
        try:
            return question()
        except (self._nvml.NVMLError, AttributeError):
            self._unsupported.add(name)
            return None

    def _power_w(self) -> float | None:
        """Power now (NVML_FI_DEV_POWER_INSTANT); the older call averages over a second."""
        nvml = self._nvml

        def instant() -> float | None:
            value = nvml.nvmlDeviceGetFieldValues(self._handle, [nvml.NVML_FI_DEV_POWER_INSTANT])[0]
            if value.nvmlReturn != 0:
                raise nvml.NVMLError(value.nvmlReturn)
            return float(value.value.uiVal) / 1000.0

        power: float | None = self._ask("power instant", instant)
        if power is None:
            milliwatts = self._ask("power", lambda: nvml.nvmlDeviceGetPowerUsage(self._handle))
            power = milliwatts / 1000.0 if milliwatts is not None else None
        return power

    def lock_clock(self, mhz: int) -> str:
        """Ask for a fixed SM clock; why it was refused, '' when it was not. A lock is a request: the gate stays."""
        try:
            self._nvml.nvmlDeviceSetGpuLockedClocks(self._handle, mhz, mhz)
        except (self._nvml.NVMLError, AttributeError) as error:
            return str(error) or type(error).__name__
        return ""

    def release_clock(self) -> str:
        """Undo ``lock_clock``; why it could not be done, '' when it was."""
        try:
            self._nvml.nvmlDeviceResetGpuLockedClocks(self._handle)
        except (self._nvml.NVMLError, AttributeError) as error:
            return str(error) or type(error).__name__
        return ""

    def held_back(self) -> dict[str, int]:
        """NVML's counters of clocks held back, by reason; {} where the driver has none."""
        nvml = self._nvml

        def counters() -> dict[str, int]:
            values = nvml.nvmlDeviceGetFieldValues(self._handle, list(HELD_BACK_COUNTERS.values()))
            return {
                name: int(value.value.ullVal)
                for name, value in zip(HELD_BACK_COUNTERS, values, strict=True)
                if value.nvmlReturn == 0
            }

        return self._ask("counters", counters) or {}

    def read(self, own_pids: frozenset[int]) -> GpuSample:
        """One reading; process lists, which are dear, every 5 s only."""
        nvml, handle = self._nvml, self._handle
        began = time.monotonic()
        sm = self._ask("sm clock", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        memory_clock = self._ask("mem clock", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))
        temperature = self._ask("temperature", lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        limit = self._ask("power limit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        reasons = self._ask("reasons", lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0
        memory = self._ask("memory", lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        power = self._power_w()
        if began >= self._foreign_due:
            self._foreign_due = began + 5.0
            running = self._ask("processes", lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle)) or []
            self._foreign = sorted(process.pid for process in running if process.pid not in own_pids)
        return GpuSample(
            gpu_uuid=self._gpu.uuid,
            name=self._gpu.name,
            sm_clock_mhz=sm,
            mem_clock_mhz=memory_clock,
            power_w=power,
            power_limit_w=limit / 1000.0 if limit is not None else None,
            temperature_c=temperature,
            memory_used_mib=memory.used / 2**20 if memory is not None else None,
            memory_total_mib=memory.total / 2**20 if memory is not None else None,
            throttle=[text for bit, text in THROTTLE_REASONS.items() if reasons & bit],
            foreign_pids=self._foreign,
            cost_ms=round((time.monotonic() - began) * 1000.0, 3),
            held_back=self.held_back(),
        )
