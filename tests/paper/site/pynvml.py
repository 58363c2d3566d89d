"""NVML on paper: a GB300 and an H200, MIG on the second; some fields raise NotSupported, as on real nodes."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    def __str__(self) -> str:
        return "Not Supported"


NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_FI_DEV_POWER_INSTANT = 1, 2, 0, 186

TAG = os.environ.get("PAPER_TAG", "0")  # tests run side by side, and a GPU is held by its UUID
GPUS: list[dict[str, Any]] = [
    {"uuid": f"GPU-aaaa-{TAG}", "name": "NVIDIA GB300", "capability": (10, 3), "migs": []},
    {"uuid": f"GPU-bbbb-{TAG}", "name": "NVIDIA H200", "capability": (9, 0), "migs": [f"MIG-bbbb-{TAG}"]},
]
ALL = [uuid for gpu in GPUS for uuid in (gpu["uuid"], *gpu["migs"])]


def nvmlInit() -> None:
    pass


def nvmlShutdown() -> None:
    pass


def nvmlSystemGetDriverVersion() -> str:
    return "580.00.01"


def nvmlSystemGetCudaDriverVersion_v2() -> int:
    return 13000


def nvmlDeviceGetCount() -> int:
    return len(GPUS)


def nvmlDeviceGetHandleByIndex(index: int) -> str:
    return str(GPUS[index]["uuid"])


def nvmlDeviceGetHandleByUUID(uuid: str) -> str:
    if uuid not in ALL:
        raise NVMLError("Not Found")
    return uuid


def _gpu(handle: str) -> dict[str, Any]:
    return next(gpu for gpu in GPUS if handle == gpu["uuid"] or handle in gpu["migs"])


def nvmlDeviceGetName(handle: str) -> bytes:
    return str(_gpu(handle)["name"]).encode()


def nvmlDeviceGetUUID(handle: str) -> str:
    return handle


def nvmlDeviceGetCudaComputeCapability(handle: str) -> tuple[int, int]:
    found: tuple[int, int] = _gpu(handle)["capability"]
    return found


def nvmlDeviceGetMigMode(handle: str) -> tuple[int, int]:
    if not _gpu(handle)["migs"]:
        raise NVMLError_NotSupported
    return 1, 1


def nvmlDeviceGetMaxMigDeviceCount(handle: str) -> int:
    return 7


def nvmlDeviceGetMigDeviceHandleByIndex(handle: str, number: int) -> str:
    migs: list[str] = _gpu(handle)["migs"]
    if number >= len(migs):
        raise NVMLError("Not Found")
    return migs[number]


def nvmlDeviceGetClockInfo(handle: str, kind: int) -> int:
    if kind == NVML_CLOCK_MEM:
        raise NVMLError_NotSupported
    return 1920


def nvmlDeviceGetTemperature(handle: str, sensor: int) -> int:
    return 41


def nvmlDeviceGetCurrentClocksEventReasons(handle: str) -> int:
    return 0


def nvmlDeviceGetComputeRunningProcesses(handle: str) -> list[SimpleNamespace]:
    return []


def _not_supported(*_: Any) -> Any:
    raise NVMLError_NotSupported


# unified memory and MIG: what a GB300 and an instance do not tell
nvmlDeviceGetMemoryInfo = nvmlDeviceGetEnforcedPowerLimit = nvmlDeviceGetFieldValues = _not_supported
nvmlDeviceGetPowerUsage = nvmlDeviceSetGpuLockedClocks = nvmlDeviceResetGpuLockedClocks = _not_supported
