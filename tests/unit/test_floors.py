"""Floors of a step: from shape and rates, from SASS, and against what was measured and published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fa4top.analysis.chip.floors import Floors, chip_rates, floor_sentence, plan_floors, ratio, sass_floors
from fa4top.analysis.view.fold import Fold
from fa4top.records import BenchResult, Geometry, Plan, Shape
from fa4top.session.reading import read_log
from fa4top.targets.base import attention_flops
from fa4top.targets.catalog import describe
from tests.conftest import ROOT

SHAPE = Shape(batch=1, seqlen_q=8192, seqlen_k=8192, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)


def plan(target: str = "fa4", arch: str = "sm_103a", shape: Shape = SHAPE, **knobs: str) -> Plan:
    return Plan(
        plan_id=1,
        target=target,
        device="NVIDIA",
        gpu_uuid="GPU",
        arch=arch,
        shape=shape,
        knobs=knobs,
        seed=0,
        simulated=False,
    )


def geometry(rows: int, shape: Shape = SHAPE, keys: int = 128) -> Geometry:
    tiles = shape.batch * shape.heads * shape.seqlen_q // rows
    steps = shape.seqlen_k // keys
    return Geometry(
        grid_ctas=148,
        sm_count=148,
        ctas_per_sm=1,
        tiles=tiles,
        steps_per_tile=steps,
        steps_longest=10 * steps,
        persistent=True,
        flops=attention_flops(shape),
    )


def floors_of(plan: Plan, geometry: Geometry, bench: Sequence[BenchResult] = ()) -> Floors | None:
    """With the work that the plan's target says."""
    target = describe(plan.target)
    assert target.work is not None
    knobs = target.setting(plan.knobs)[0]
    return plan_floors(plan, replace(geometry, work=target.work(plan.shape, plan.arch, knobs)), bench)


def test_a_blackwell_step_by_hand() -> None:
    found = floors_of(plan(), geometry(256))
    assert found is not None
    # 256 x 128 elements; 4 x 128 FLOP each at 8192; 129 of 128 exponentials at 32
    assert found.of("tensor") == pytest.approx(4 * 128 * 32768 / 8192)
    assert found.of("exp2") == pytest.approx(32768 * 129 / 128 / 32)
    assert found.unit == "tensor" and found.floor == pytest.approx(2048.0)
    older = floors_of(plan(arch="sm_100a"), geometry(256))
    assert older is not None and older.of("exp2") == pytest.approx(32768 * 105 / 128 / 16)
    fp8 = floors_of(plan(shape=replace(SHAPE, dtype="fp8")), geometry(256))
    assert fp8 is not None and fp8.unit == "exp2" and fp8.floor == pytest.approx(1032.0)


def test_the_forks_modes_have_a_format_for_each_product() -> None:
    found = floors_of(plan("fa4-fork", qk_mode="nvfp4", pv_mode="fp8"), geometry(256))
    assert found is not None and found.of("tensor") == pytest.approx(2 * 128 * 32768 * (1 / 32768 + 1 / 16384))


def test_what_is_not_known_is_left_out() -> None:
    emulated = floors_of(plan(ex2_emu_freq="10"), geometry(256))
    assert emulated is not None and emulated.of("exp2") is None and emulated.of("tensor") is not None
    assert floors_of(plan(arch="sm_80"), geometry(256)) is None
    half = floors_of(plan("builtin", "sm_90a", exp2_emulation="1/2"), geometry(128))
    whole = floors_of(plan("builtin", "sm_90a", exp2_emulation="0"), geometry(128))
    assert half is not None and whole is not None
    assert whole.of("exp2") == pytest.approx(16384 * 66 / 64 / 16) and half.of("exp2") == pytest.approx(
        16384 * 34 / 64 / 16
    )


def test_a_causal_shape_counts_what_is_computed() -> None:
    shape = replace(SHAPE, causal=True)
    found = floors_of(plan(shape=shape), replace(geometry(256, shape), steps_per_tile=33))
    assert found is not None and 1900 < found.floor < 2048  # half of the diagonal blocks is masked


def test_floors_of_sass_count_every_warp_of_both_warpgroups() -> None:
    found = sass_floors({"MUFU": 129, "FMA": 135, "ALU": 20, "convert": 64, "other": 52}, 129, "sm_103a")
    assert found is not None
    assert found.of("exp2") == pytest.approx(129 * 256 / 32) and found.of("fma") == pytest.approx(270)
    assert found.of("alu") == pytest.approx(84 * 4) and found.of("issue") == pytest.approx(400 * 8 / 4)


def test_the_sentence() -> None:
    floors = Floors((("tensor", 2048.0), ("exp2", 1032.0)), "x")
    assert floor_sentence(2355.2, floors).endswith("the clean period is 1.15 times that")
    assert floor_sentence(None, floors) == "2048 cycles a step (tensor; tensor 2048, exp2 1032)"
    assert floor_sentence(1.0, None) == "" and ratio(None, floors) is None


@pytest.mark.parametrize("name", ["h200-live", "h200-fa4", "h200-builtin"])
def test_no_recorded_kernel_is_faster_than_its_floor(name: str) -> None:
    fold = Fold()
    seen = 0
    for record in read_log(ROOT / "examples" / f"{name}.jsonl.gz"):
        fold.feed(record)
        if record.kind != "trace" or record.seq % 5:
            continue
        snapshot = fold.snapshot()
        multiple = ratio(snapshot.clean_period_cycles, snapshot.floors)
        if multiple is not None and snapshot.clean_launches > 20:
            seen += 1
            assert 1.0 <= multiple < 4.0, (snapshot.plan, multiple)
    assert seen


def test_what_this_chip_measured_takes_the_place_of_what_was_published() -> None:
    def measured(name: str, value: float, arch: str = "sm_103a", status: str = "measured") -> BenchResult:
        return BenchResult(
            worker="w",
            plan_id=1,
            arch=arch,
            device="GB300",
            name=name,
            group="throughput",
            unit="instructions/clk",
            status=status,
            index=0,
            total=1,
            value=value,
        )

    bench = [
        measured("ex2.approx.ftz.f32", 30.0),
        measured("max.f32", 60.0, "sm_90a"),
        measured("fma.rn.f32", 1.0, status="refused"),
    ]
    found = floors_of(plan(), geometry(256), bench)
    assert found is not None and found.of("exp2") == pytest.approx(32768 * 129 / 128 / 30)
    assert found.source == "exp2 measured in this session"
    rates = chip_rates("sm_103a", bench)
    assert rates is not None and rates.alu == 64.0 and rates.fma == 128.0
    assert chip_rates("sm_103a", []) is not None and chip_rates("sm_75", bench) is None
