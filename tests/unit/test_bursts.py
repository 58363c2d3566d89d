"""Timed bursts: what is launched in which order, and the SM clock between two stamps. CuPy is a stand-in here."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fa4top.orders.commands import LaunchRequest
from fa4top.records import Shape
from fa4top.targets.cuda import bursts, launching
from fa4top.targets.cuda.bursts import BurstTimer, mean_clock_mhz
from fa4top.targets.cuda.launching import CudaLauncher
from fa4top.targets.launcher import TargetError

SHAPE = Shape(batch=1, seqlen_q=1024, seqlen_k=1024, heads=1, kv_heads=1, head_dim=128, head_dim_v=128)


class Log(list[Any]):
    """What was queued, in order."""


class Event:
    log: Log

    def record(self, stream: object) -> None:
        self.place = len(self.log)
        self.log.append("event")


class Stream:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def synchronize(self) -> None: ...


class Memory:
    def __init__(self, log: Log, size: int) -> None:
        self.log, self.size = log, size

    def memset_async(self, value: int, size: int, stream: object) -> None:
        assert size <= self.size
        self.log.append(("flush", size))


def stand_in(log: Log, persisting: int = 0) -> Any:
    class Function:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, grid: object, block: object, arguments: tuple[Any, ...]) -> None:
            if self.name == "stamp":
                place = sum(entry == "stamp" for entry in log)
                arguments[0][5] = (1_000_000 + place * 2_000_000, 700 + place * 3_000_000)  # 1 500 MHz on SM 5
                log.append("stamp")
            else:
                log.append(("delay", int(arguments[0])))

    class Module:
        def load(self, data: bytes) -> None: ...

        def get_function(self, name: str) -> Function:
            return Function(name)

    class function:
        pass

    function.Module = Module  # type: ignore[attr-defined]

    class Runtime:
        @staticmethod
        def getDeviceProperties(device: int) -> dict[str, int]:
            return {"multiProcessorCount": 132, "l2CacheSize": 1000}

        @staticmethod
        def deviceGetLimit(which: int) -> int:
            return persisting

        @staticmethod
        def deviceSetLimit(which: int, value: int) -> None:
            log.append(("limit", value))

    class Cuda:
        runtime = Runtime
        alloc = staticmethod(lambda size: Memory(log, size))
        get_elapsed_time = staticmethod(lambda a, b: float(b.place - a.place))

    Cuda.function = function  # type: ignore[attr-defined]
    Cuda.Event = type("Event", (Event,), {"log": log})  # type: ignore[attr-defined]

    class Cupy:
        cuda = Cuda
        uint64 = np.uint64
        zeros = staticmethod(np.zeros)
        asnumpy = staticmethod(np.array)

    return Cupy


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> Any:
    class Cubin:
        data = b""

    monkeypatch.setattr(bursts, "compile_kernel", lambda *_: Cubin)

    def make(delay: float | None = None, persisting: int = 0) -> tuple[BurstTimer, Log]:
        log = Log()
        return BurstTimer(
            stand_in(log, persisting), Stream(), lambda: log.append("launch"), "sm_90a", delay
        ), log  # fmt: skip

    return make


def test_a_warm_burst_is_primers_then_launches_between_events_and_stamps(timer: Any) -> None:
    made, log = timer()
    found = made.burst(2, "warm")
    assert log == ["launch", "launch", "stamp", "event", "launch", "event", "event", "launch", "event", "stamp"]
    assert found.times_us == [2000.0, 2000.0] and found.l2 == "warm"
    assert found.sm_clock_mhz == pytest.approx(1500.0)


def test_a_cold_burst_empties_the_cache_before_every_launch_outside_its_time(timer: Any) -> None:
    made, log = timer()
    made.burst(1, "cold", primers=1)
    assert log == [("flush", 2000), "launch", "stamp", ("flush", 2000), "event", "launch", "event", "stamp"]


def test_cold_is_refused_where_part_of_the_cache_is_set_aside(timer: Any) -> None:
    made, _ = timer(persisting=1 << 20)
    with pytest.raises(TargetError, match="set aside"):
        made.burst(1, "cold")
    assert made.burst(1, "warm").times_us


def test_a_handicap_is_a_share_of_the_launch_s_own_cycles(timer: Any) -> None:
    made, log = timer(1.0)
    made.burst(1, "warm", primers=0)
    delays = [entry[1] for entry in log if entry[0] == "delay"]
    # calibrated on launches that took 3 events' distance = 3000 us at 1500 MHz: 1% of 4.5 million cycles
    assert delays[-1] == 45_000 and set(delays[:-1]) == {0}
    none, log = timer(0.0)
    none.burst(1, "warm", primers=0)
    assert [entry for entry in log if entry[0] == "delay"] == [("delay", 0)]


@pytest.mark.parametrize(("handicap", "percent"), [("off", None), ("0", 0.0), ("0.25", 0.25)])
def test_launchers_of_real_kernels_share_bursts_and_hang_reports(
    monkeypatch: pytest.MonkeyPatch, handicap: str, percent: float | None
) -> None:
    made: list[tuple[object, ...]] = []

    class Timer:
        def __init__(self, *arguments: object) -> None:
            made.append(arguments[2:])

        def burst(self, *arguments: object) -> object:
            return arguments

    class Buffer:
        def record_async(self, *arguments: object) -> None:
            made.append(arguments)

        def peek(self, cupy: object) -> bytes:
            return b"so far"

    class Launcher(CudaLauncher):
        arch = "sm_90a"
        _buffer: Any = Buffer()

        def _launch(self) -> None: ...

    class Cupy:
        class cuda:
            Stream = staticmethod(lambda non_blocking: Stream())

            class Device:
                def __init__(self, number: int) -> None: ...

                def use(self) -> None: ...

    monkeypatch.setattr(launching, "BurstTimer", Timer)
    request = LaunchRequest(
        target="builtin", shape=SHAPE, knobs={"handicap": handicap}, twin="traced", seed=0, gpu_uuid=""
    )
    launcher = Launcher(request, Cupy)
    for _ in range(2):
        asked: Any = launcher.clean_burst(3, "cold")
        assert asked == (3, "cold", 2)
    assert made == [(launcher._launch, "sm_90a", percent)], "one timer, whatever is asked of it"
    launcher._record_first(launcher._buffer)
    hung = launcher.hung_capture()
    assert made[-1] == (0, 0, 1) and hung is not None and (hung.generation, hung.cta) == (1, 0)
    clean = Launcher(dataclasses.replace(request, twin="clean"), Cupy)
    assert clean.hung_capture() is None


def test_only_stamps_of_the_same_sm_are_subtracted() -> None:
    stamps = np.zeros((2, 8, 2), dtype=np.uint64)
    assert mean_clock_mhz(stamps) is None
    stamps[0, 1] = (1000, 50)
    stamps[1, 2] = (9000, 99)
    assert mean_clock_mhz(stamps) is None, "no SM has both"
    stamps[0, 3], stamps[1, 3] = (1000, 10**15), (2_001_000, 10**15 + 3_960_000)
    stamps[0, 4], stamps[1, 4] = (1000, 77), (2_001_000, 77 + 3_960_400)
    assert mean_clock_mhz(stamps) == pytest.approx(1980.1)
    stamps[1, 4] = (900, 80)
    assert mean_clock_mhz(stamps) is None, "a clock that runs backwards is no clock"
