"""The simulated device against published figures (reference/published.json), and its own promises."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fa4top.orders.commands import LaunchRequest
from fa4top.records import Shape
from fa4top.targets.launcher import TargetError
from fa4top.targets.sim.chips import load_chip
from fa4top.targets.sim.description import DESCRIPTION as SIM
from fa4top.targets.sim.device import SLOW_SM, Device
from fa4top.targets.sim.launch import SimLauncher
from tests.traces import sampled

LONG = Shape(batch=1, seqlen_q=32768, seqlen_k=32768, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)
# TFLOP/s, GB300, NVFP4 QK, b1 s32768 h24 d128 (published.json, gb300_tflops, 2026-07)
PUBLISHED = {"bf16": 2235, "fp8": 2677, "nvfp4": 1725, "mxfp8": 1809}


def tflops(mode: str, split: str, chip: str = "gb300", shape: Shape = LONG) -> float:
    data = load_chip(chip)
    device = Device(data, data.modes[mode], shape, Fraction(split), 0, frozenset())
    time_us, _ = device.launch_us()
    return device.geometry.flops / time_us / 1e6


def launcher(twin: str = "traced", fault: str = "", shape: Shape = SIM.default_shape, **knobs: str) -> SimLauncher:
    setting, problems = SIM.setting(knobs)
    assert not problems
    request = LaunchRequest(target="sim", shape=shape, knobs=setting, twin=twin, seed=0, gpu_uuid="SIM", fault=fault)
    made = SimLauncher(request)
    made.compile(lambda text, progress: None)
    return made


def test_calibration_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{'mode':8}{'published':>10}{'simulated':>10}{'1/2':>8}{'3/4':>8}"]
    for mode, published in PUBLISHED.items():
        simulated, half = tflops(mode, "3/4"), tflops(mode, "1/2")
        lines.append(f"{mode:8}{published:10.0f}{simulated:10.0f}{half:8.0f}{simulated:8.0f}")
        assert simulated == pytest.approx(published, rel=0.10), mode
    with capsys.disabled():
        print("\nTFLOP/s, GB300, b1 s32768 h24 d128\n" + "\n".join(lines))


def test_fp8_gains_from_a_later_hand_over_and_nvfp4_does_not() -> None:
    gain = tflops("fp8", "3/4") / tflops("fp8", "1/2") - 1  # published: 1909 to 2366, +24%
    assert 0.14 <= gain <= 0.34
    assert len({round(tflops("nvfp4", split)) for split in ("1/2", "3/4", "7/8")}) == 1


@pytest.mark.parametrize(("chip", "mode"), [("gb300", "fp8"), ("b200", "bf16"), ("h200", "bf16")])
def test_the_same_commands_give_the_same_numbers(chip: str, mode: str) -> None:
    def run() -> list[object]:
        made = launcher(chip=chip, pv_mode=mode)
        burst = made.clean_burst(3)
        captures = [made.traced_launch(cta) for cta in (0, 7)]
        buffers = [[words.tobytes() for words in (c.recorded.headers, *c.recorded.slots)] for c in captures]
        return [burst.times_us, [c.time_us for c in captures], buffers]

    assert run() == run()


@pytest.mark.parametrize(("chip", "mode"), [("gb300", "fp8"), ("h200", "bf16")])
@pytest.mark.parametrize("causal", [False, True])
def test_its_buffers_decode_without_loss(chip: str, mode: str, causal: bool) -> None:
    made = launcher(shape=replace(SIM.default_shape, causal=causal), chip=chip, pv_mode=mode)
    for cta in (0, 5, 31):
        capture = made.traced_launch(cta)
        result = sampled(capture, made.layout, made.family, timeline=True)
        assert (result.losses.dropped, result.losses.unmatched, result.losses.stale) == (0, 0, 0)
        assert len(result.roles) == len(made.layout.roles)
        assert result.sm_clock_mhz == pytest.approx(load_chip(chip).clock_mhz, rel=2e-3)
        for role in result.roles:
            assert role.period_median_cycles and role.busy_cycles and role.busy_cycles > 0
            assert sum(role.waits_cycles.values()) < role.period_p95_cycles * 1.2  # type: ignore[operator]


def test_a_long_sequence_has_room_in_the_buffer() -> None:
    made = launcher(shape=LONG)
    capture = made.traced_launch(0)
    losses = sampled(capture, made.layout, made.family).losses
    assert losses.dropped == 0 and losses.recorded > 50_000


def test_the_traced_twin_pays_for_its_probes_and_the_output_is_the_same() -> None:
    clean, traced = launcher("clean"), launcher("traced")
    ratio = np.median(traced.clean_burst(5).times_us) / np.median(clean.clean_burst(5).times_us)
    assert 1.001 < ratio < 1.03
    assert clean.check() == traced.check() and clean.check().rms_error < clean.check().limit


def test_the_wait_inside_pv_shrinks_with_a_later_hand_over() -> None:
    def second_wait(split: str) -> float:
        made = launcher(p_split=split)
        capture = made.traced_launch(1)
        mma = sampled(capture, made.layout, made.family).roles[0]
        return mma.waits_cycles["wait P 2nd"]

    assert second_wait("1/2") > 1.3 * second_wait("3/4")


def test_droop_under_load_shows_in_the_kernels_own_clock() -> None:
    made = launcher(fault="droop")
    for _ in range(40):
        made.clean_burst(20)
    capture = made.traced_launch(0)
    clock = sampled(capture, made.layout, made.family).sm_clock_mhz
    assert clock is not None and clock < 0.95 * load_chip("gb300").clock_mhz
    reading = made.telemetry()
    assert reading is not None and reading.throttle and reading.sm_clock_mhz == pytest.approx(clock, rel=0.03)


def test_a_slow_sm_can_be_found() -> None:
    made = launcher(fault="slow-sm")
    periods = {}
    for cta in (SLOW_SM - 1, SLOW_SM, SLOW_SM + 1):
        capture = made.traced_launch(cta)
        result = sampled(capture, made.layout, made.family)
        periods[result.sm] = result.roles[1].period_median_cycles
    slow, usual = periods[SLOW_SM], periods[SLOW_SM - 1]
    assert slow is not None and usual is not None and slow > 1.1 * usual


def test_dropped_and_stale_events_are_counted() -> None:
    made = launcher(fault="drop-events")
    capture = made.traced_launch(0)
    assert sampled(capture, made.layout, made.family).losses.dropped > 1000
    made = launcher(fault="stale")
    stale = []
    for cta in range(6):
        capture = made.traced_launch(cta)
        stale.append(sampled(capture, made.layout, made.family).losses.stale)
    assert stale[0] == 0 and stale[2] > 0


def test_faults_at_compile_and_check() -> None:
    with pytest.raises(TargetError, match="registers"):
        launcher(fault="compile")
    with pytest.raises(MemoryError):
        launcher(fault="oom")
    wrong = launcher(fault="check").check()
    assert wrong.rms_error > wrong.limit
