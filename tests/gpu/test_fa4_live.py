"""flash-attn-4 on a real GPU: run by hand on a GPU machine with `python -m pytest tests/gpu -m gpu`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fa4top.engine.client import start_engine
from fa4top.engine.gpus import choose_gpu, list_gpus
from fa4top.orders import exits
from fa4top.orders.order import Order
from fa4top.orders.shapes import parse_shape
from fa4top.records import Check, CleanBurst, Fault, GpuSample, Plan, Shape, TraceSample, WorkerState
from fa4top.targets.fa4.description import DESCRIPTION as FA4
from tests.conftest import run_cli
from tests.traces import role_of
from tests.unit.test_engine import Running

pytestmark = pytest.mark.gpu
pytest.importorskip("cupy")

Make = Callable[..., Order]


@pytest.fixture
def order(sim_order: Make) -> Make:
    gpus = list_gpus()
    if not gpus:
        pytest.skip("no GPU")
    gpu = choose_gpu("", gpus)

    def make(text: str = "s4096", **changes: object) -> Order:
        shape = replace(parse_shape(text, FA4.default_shape), **changes.pop("shape", {}))  # type: ignore[arg-type]
        base = sim_order()
        return replace(
            base, target="fa4", shape=shape, knobs=FA4.setting({})[0], gpu_uuid=gpu.uuid, gpu_name=gpu.name,
            arch=gpu.arch, simulated=False, python=sys.executable, **{"rounds_per_s": 8.0, **changes},  # type: ignore[arg-type]
        )  # fmt: skip

    return make


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("s4096", {}),
        ("s4096", {"causal": True}),
        ("s4096", {"dtype": "fp16"}),
        ("s4096,hk8", {"causal": True}),
        ("s4096,d64", {}),
        ("sq1000,sk3000", {}),
        ("b2,s2048,h16,d192,dv128", {"causal": True}),
    ],
)
def test_numbers_from_real_launches(order: Make, text: str, shape: dict[str, object]) -> None:
    running = Running(order(text, shape=shape))
    samples = running.until(TraceSample, 6)
    running.stop()
    checks = [r.body for r in running.records if isinstance(r.body, Check)]
    assert len(checks) == 2 and all(check.passed for check in checks)
    assert checks[0].output_hash == checks[1].output_hash  # probes change nothing
    for sample in samples[1:]:
        assert isinstance(sample, TraceSample)
        assert (sample.losses.dropped, sample.losses.unmatched, sample.losses.stale) == (0, 0, 0), sample.losses
        assert sample.roles and sample.sm >= 0
        assert any(role.period_median_cycles for role in sample.roles)
    clean = np.median([t for r in running.records if isinstance(r.body, CleanBurst) for t in r.body.times_us])
    traced = np.median([s.time_us for s in samples if isinstance(s, TraceSample)])
    print(f"\n{text} {shape}: clean {clean:.1f} us, traced {traced / clean - 1:+.2%}")
    assert any(isinstance(r.body, GpuSample) and r.body.sm_clock_mhz for r in running.records)


def test_rotation_sees_many_sms(order: Make) -> None:
    running = Running(order("s2048", rounds_per_s=60.0))
    running.until(TraceSample, 60)
    running.stop()
    assert len({r.body.sm for r in running.records if isinstance(r.body, TraceSample)}) > 30


@pytest.mark.inside
def test_in_flight_events_are_seen_while_the_kernel_runs() -> None:
    from fa4top.analysis.trace.layout import GENERATION_SHIFT
    from fa4top.orders.commands import LaunchRequest
    from fa4top.targets.fa4.launch import Fa4Launcher

    shape = Shape(batch=1, seqlen_q=131072, seqlen_k=131072, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)
    knobs = FA4.setting({})[0]
    launcher = Fa4Launcher(
        LaunchRequest(target="fa4", shape=shape, knobs=knobs, twin="traced", seed=0, gpu_uuid="", inflight=True)
    )
    launcher.compile(lambda text, progress: None)
    views = launcher._torch_views()
    launcher._buffer.record_async(0, 5, 7)
    launcher._stream.synchronize()
    launcher._kernels.forward(views["q"], views["k"], views["v"], out=views["out"])
    launcher._bind(views)
    launcher._cupy.cuda.runtime.deviceSynchronize()
    launcher._buffer.record_async(0, 5, 8)
    launcher._launch()
    tags = launcher.layout.slots(launcher._buffer.host_bytes, 0)[:, 0]
    counts = []
    while not launcher._stream.done:
        counts.append(int(np.count_nonzero(tags >> np.uint32(GENERATION_SHIFT) == 8)))
    growing = sorted(set(counts))
    print(f"\nin flight: {len(growing)} different counts, {growing[:8]} ... {growing[-1]}")
    assert len(growing) > 5  # the count grew while the kernel ran
    trace = role_of(launcher._buffer.host_bytes.copy(), launcher.layout, 0, 8)
    assert trace is not None and trace.header.finished and trace.stream.recorded == growing[-1]
    launcher.close()


def test_a_killed_worker_is_replaced(order: Make) -> None:
    running = Running(order())
    running.until(TraceSample, 2)
    pid = next(
        r.body.pid for r in reversed(running.look()) if isinstance(r.body, WorkerState) and r.body.twin == "traced"
    )
    os.kill(pid, signal.SIGKILL)
    fault = running.until(Fault)[0]
    assert isinstance(fault, Fault) and fault.reason == "killed"
    running.until(TraceSample, 2, after=len(running.records))
    assert running.stop() == 0


def test_a_second_engine_learns_who_holds_the_gpu(order: Make) -> None:
    running = Running(order())
    running.until(TraceSample, 1)
    second = start_engine(order())
    assert second.wait(30) == exits.NOTHING_TO_RUN_ON
    done = run_cli("live", "--target", "fa4", "--seconds", "1")
    assert done.returncode == 3 and f"pid {running.process.pid}" in done.stderr and "since" in done.stderr
    running.stop()


def test_no_memory_is_a_fault_with_advice(order: Make) -> None:
    running = Running(order("b64,s131072,h64"))
    assert running.process.wait(120) == 4
    faults = [r.body for r in running.look() if isinstance(r.body, Fault)]
    assert faults and faults[0].reason == "out of memory" and "smaller" in faults[0].hint


def test_another_plan_in_the_same_session(order: Make) -> None:
    running = Running(order())
    running.until(TraceSample, 1)
    assert running.control.ask({"do": "plan", "shape": "s2048", "causal": True})["ok"]
    running.until(Plan, 2)
    running.until(TraceSample, 2, after=len(running.records))
    running.stop()


def test_the_callers_caches_stay_untouched(order: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FLASH_ATTENTION_CUTE_DSL_CACHE_DIR", "CUTE_DSL_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED", "1")
    running = Running(order())
    running.until(TraceSample, 1)
    running.stop()
    assert list(tmp_path.iterdir()) == []
