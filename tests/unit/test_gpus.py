"""NVML through a stand-in: choosing a GPU, and readings where fields are missing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fa4top.engine import custody, gpus
from fa4top.engine.gpus import Gpu, GpuError, Telemetry, choose_gpu, list_gpus
from fa4top.orders.order import Order
from fa4top.records import Notice

GPUS = [
    Gpu(0, "GPU-aaaa-1", "NVIDIA GB300", "sm_103a"),
    Gpu(0, "MIG-aaaa-7", "NVIDIA GB300 MIG 0", "sm_103a", True),
    Gpu(1, "GPU-aabb-2", "NVIDIA H200", "sm_90a"),
]


class FakeNvml:
    """One GPU with MIG off, of which some fields are not supported."""

    class NVMLError(Exception):
        pass

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_FI_DEV_POWER_INSTANT = 1, 2, 0, 186

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.missing: set[str] = set()
        self.pids = [11, 22]

    def __getattr__(self, name: str) -> Any:
        values: dict[str, Any] = {
            "nvmlInit": None, "nvmlDeviceGetCount": 1, "nvmlDeviceGetHandleByIndex": "h",
            "nvmlDeviceGetHandleByUUID": "h", "nvmlDeviceGetCudaComputeCapability": (10, 3),
            "nvmlDeviceGetName": b"NVIDIA GB300", "nvmlDeviceGetUUID": "GPU-x", "nvmlDeviceGetMigMode": (0, 0),
            "nvmlDeviceGetTemperature": 54, "nvmlDeviceGetEnforcedPowerLimit": 1_400_000,
            "nvmlDeviceGetCurrentClocksEventReasons": 0x1 | 0x4, "nvmlDeviceGetPowerUsage": 512_000,
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=2 << 30, total=288 << 30),
            "nvmlDeviceGetFieldValues": [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=700_000))],
            "nvmlDeviceSetGpuLockedClocks": None, "nvmlDeviceResetGpuLockedClocks": None,
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=pid) for pid in self.pids],
        }  # fmt: skip
        if name not in values and name != "nvmlDeviceGetClockInfo":
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.asked.append(name)
            if name in self.missing:
                raise self.NVMLError("not supported")
            if name == "nvmlDeviceGetFieldValues" and len(arguments[1]) > 1:
                return [
                    SimpleNamespace(nvmlReturn=3 * (i == 271), value=SimpleNamespace(ullVal=i)) for i in arguments[1]
                ]
            if name == "nvmlDeviceGetClockInfo":
                return 1980 if arguments[1] == 1 else 3201
            return values[name]

        return call


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_gpus_are_named_by_uuid_and_architecture(nvml: FakeNvml) -> None:
    assert list_gpus() == [Gpu(0, "GPU-x", "NVIDIA GB300", "sm_103a")]


def test_no_driver_is_no_gpus_and_no_exception(nvml: FakeNvml) -> None:
    nvml.missing = {"nvmlInit"}
    assert list_gpus() == []
    with pytest.raises(GpuError, match="no NVIDIA GPU"):
        choose_gpu("", [])


@pytest.mark.parametrize(
    ("wanted", "environment", "uuid"),
    [
        ("", {}, "GPU-aaaa-1"),
        ("1", {}, "GPU-aabb-2"),
        ("GPU-aab", {}, "GPU-aabb-2"),
        ("MIG-aaaa-7", {}, "MIG-aaaa-7"),
        ("", {"CUDA_VISIBLE_DEVICES": "GPU-aabb-2,GPU-aaaa-1"}, "GPU-aabb-2"),
        ("", {"CUDA_VISIBLE_DEVICES": "1"}, "GPU-aabb-2"),
        ("0", {"CUDA_VISIBLE_DEVICES": "1"}, "GPU-aaaa-1"),
    ],
)
def test_choosing(wanted: str, environment: dict[str, str], uuid: str) -> None:
    assert choose_gpu(wanted, GPUS, environment).uuid == uuid


@pytest.mark.parametrize("wanted", ["7", "GPU-a", "GPU-zz"])
def test_a_choice_that_does_not_fit_lists_what_there_is(wanted: str) -> None:
    with pytest.raises(GpuError, match="GPU-aabb-2"):
        choose_gpu(wanted, GPUS, {})


def test_a_reading(nvml: FakeNvml) -> None:
    sample = Telemetry(GPUS[0]).read(frozenset({11}))
    assert (sample.sm_clock_mhz, sample.power_w, sample.power_limit_w, sample.temperature_c) == (1980, 700, 1400, 54)
    assert sample.throttle == ["SW power cap"]  # idle (0x1) is normal here
    assert sample.foreign_pids == [22] and sample.memory_total_mib == 288 * 1024


def test_missing_fields_are_none_and_not_asked_again(nvml: FakeNvml) -> None:
    nvml.missing = {"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetFieldValues", "nvmlDeviceGetTemperature"}
    telemetry = Telemetry(GPUS[0])
    for _ in range(3):
        sample = telemetry.read(frozenset())
    assert sample.memory_used_mib is None and sample.temperature_c is None
    assert sample.power_w == 512  # the averaged call stands in
    assert nvml.asked.count("nvmlDeviceGetMemoryInfo") == 1


def test_process_lists_are_dear_and_rare(nvml: FakeNvml) -> None:
    telemetry = Telemetry(GPUS[0])
    for _ in range(5):
        telemetry.read(frozenset())
    assert nvml.asked.count("nvmlDeviceGetComputeRunningProcesses") == 1


def test_reasons_have_names() -> None:
    assert set(gpus.THROTTLE_REASONS) == {0x4, 0x8, 0x10, 0x20, 0x40, 0x80}


def test_counters_of_clocks_held_back_by_reason(nvml: FakeNvml) -> None:
    telemetry = Telemetry(GPUS[0])
    assert telemetry.held_back() == {"SW power cap": 74, "SW thermal": 269, "HW thermal": 270}, "271 is not supported"
    assert telemetry.read(frozenset()).held_back == telemetry.held_back()
    nvml.missing = {"nvmlDeviceGetFieldValues"}
    assert Telemetry(GPUS[0]).held_back() == {}


class Log:
    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def append(self, body: Any) -> None:
        if isinstance(body, Notice):
            self.said.append((body.level, body.text))


@pytest.mark.parametrize("allowed", [True, False])
def test_a_locked_clock_is_released_at_the_end_and_a_refusal_is_said(
    nvml: FakeNvml, allowed: bool, sim_order: Callable[..., Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.missing = set() if allowed else {"nvmlDeviceSetGpuLockedClocks"}
    log = Log()
    monkeypatch.setattr(custody, "list_gpus", lambda: list(GPUS))
    order = replace(sim_order(lock_mhz=1500), simulated=False, gpu_uuid=GPUS[0].uuid)
    held = custody.Custody(order, log.append)
    asyncio.run(held.take(lambda *_: None))
    held.release()
    assert ("nvmlDeviceResetGpuLockedClocks" in nvml.asked) == allowed
    assert log.said == (
        [("info", "SM clock locked at 1500 MHz; if this engine is killed, nvidia-smi -rgc releases it")]
        if allowed
        else [("warning", "the SM clock could not be locked at 1500 MHz (not supported); it runs free")]
    )
