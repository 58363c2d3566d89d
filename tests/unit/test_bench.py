"""The bench suite as data, what timings mean, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fa4top.analysis.chip.chips import ARCHITECTURES
from fa4top.analysis.chip.throughput import perfect_overlap, timed_cycles
from fa4top.analysis.view.tables import bench_row, bench_title, bench_verdict
from fa4top.records import BenchResult
from fa4top.targets.bench.instructions import BY_NAME, INSTRUCTIONS, MIXES
from fa4top.targets.bench.published import PUBLISHED, published
from fa4top.targets.bench.run import choose
from fa4top.targets.bench.suite import SUITE, Kernel

KERNELS = {kernel.name: kernel for kernel in SUITE}


def test_the_suite_has_what_attention_is_made_of() -> None:
    names = " ".join(KERNELS)
    for word in (
        "ex2",
        "rcp",
        "lg2",
        "rsqrt",
        "tanh",
        "fma.rn.f32x2",
        "mul",
        "add",
        "max.f32, three inputs",
        "bf16x2.f32",
        "f16x2.f32",
        "e4m3x2.f32",
        "e5m2x2.f32",
        "e2m1x2.f32",
        "ue8m0x2.f32",
        "f16x2.e4m3x2",
        "lop3",
        "shf",
        "prmt",
        "selp",
        "iadd3",
        "softmax step",
        "loads",
        "stores",
        "mbarrier",
        "named barrier",
        "wgmma bf16",
        "wgmma e4m3",
        "registers",
        "tcgen05.mma bf16",
        "tcgen05.mma nvfp4",
        "2 CTAs",
        "tcgen05.ld ",
        "ld.red",
        "tcgen05.st",
    ):
        assert word in names, word
    assert len(KERNELS) == len(SUITE), "names are unique"


@pytest.mark.parametrize("kernel", SUITE, ids=lambda kernel: kernel.name)
def test_every_kernel_says_what_its_loop_must_hold(kernel: Kernel) -> None:
    assert kernel.archs and set(kernel.archs) <= set(ARCHITECTURES)
    assert kernel.expected and all(want.count > 0 for want in kernel.expected)
    if kernel.group == "throughput":
        own = next(want for want in kernel.expected if want.pattern == BY_NAME[kernel.name].sass)
        assert own.count == kernel.amount, "what is counted in SASS is what the figure divides by"
        assert set(dict(kernel.limits)) == set(kernel.archs)


def test_figures_follow_from_cycles() -> None:
    ex2 = KERNELS["ex2.approx.ftz.f32"]
    instructions = ex2.amount * 1024 * ex2.iterations
    assert ex2.value(instructions / 16.0, 1024) == pytest.approx(16.0)
    assert ex2.share_of_limit(8.0, "sm_90a") == 0.5 and ex2.share_of_limit(16.0, "sm_103a") == 0.5
    wgmma = KERNELS["wgmma bf16 64x128x128, A from shared memory"]
    assert wgmma.value(512.0 * 64 * 2 * 4, 512) == pytest.approx(512.0), "four warpgroups share the tensor cores"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("rcp.approx.ftz.f32", 132104.0, "above what the unit can do (16)"),
        ("fma.rn.f32", 146.0, "above what the unit can do (128)"),
        ("ex2.approx.ftz.f32", 16.4, "above what the unit can do (16)"),
        ("wgmma bf16 64x128x128, A from registers", 400.0, "below what the unit can do (512)"),
        ("mbarrier, arrive to wake", 3.0, "below what the unit can do (8)"),
    ],
)
def test_impossible_figures_are_refused(name: str, value: float, says: str) -> None:
    assert says in str(KERNELS[name].problem(value, "sm_90a"))
    limit = KERNELS[name].limit_on("sm_90a")
    assert limit is not None and KERNELS[name].problem(limit, "sm_90a") is None


def test_cycles_are_from_the_earliest_begin_to_the_latest_end() -> None:
    clocks = np.array([[[100, 400], [90, 350]], [[1000, 1300], [1010, 1390]]], dtype=np.uint64)
    assert timed_cycles(clocks).tolist() == [310.0, 390.0]


def test_perfect_overlap_is_set_by_the_busiest_unit_or_the_issue_slots() -> None:
    units = {"ex2": "MUFU", "cvt": "ALU", "max": "ALU", "fma": "FMA"}
    rates = {"ex2": 16.0, "cvt": 64.0, "max": 64.0, "fma": 128.0}
    assert perfect_overlap([("ex2", 4), ("cvt", 4)], units, rates) == pytest.approx(32.0)
    assert perfect_overlap([("cvt", 4), ("max", 4)], units, rates) == pytest.approx(64.0), "one unit: no overlap"
    assert perfect_overlap([("fma", 8), ("max", 4)], units, rates) == pytest.approx(128.0), "issue slots"
    assert perfect_overlap([("ex2", 4), ("tanh", 4)], units, rates) is None


def test_mixes_bring_their_parts_along() -> None:
    chosen = [kernel.name for kernel in choose(["softmax step, bf16"])]
    assert chosen[-1] == "softmax step, bf16 P"
    assert set(chosen[:-1]) == {name for mix in MIXES if mix.name == chosen[-1] for name, _ in mix.parts}
    assert choose([]) == SUITE and [k.group for k in choose(["handoff"])] == ["handoff", "handoff"]


def test_published_figures_belong_to_a_chip() -> None:
    assert published("NVIDIA GB300", "ex2.approx.ftz.f32") == 32.0
    assert published("simulated B200", "ex2.approx.ftz.f32") == 16.0
    assert published("NVIDIA H200", "ex2.approx.ftz.f32") is None
    assert all(name in KERNELS for figures in PUBLISHED.values() for name in figures)


def result(**changes: object) -> BenchResult:
    base = BenchResult(
        worker="w",
        plan_id=1,
        arch="sm_90a",
        device="NVIDIA H200",
        name="ex2.approx.ftz.f32",
        group="throughput",
        unit="instructions/clk",
        status="measured",
        index=0,
        total=2,
        value=15.9,
        p5=15.8,
        p95=15.9,
        limit=16.0,
        limit_share=15.9 / 16.0,
        compiler="NVRTC 13.0",
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def test_rows_never_show_a_number_that_was_refused() -> None:
    row = bench_row(
        result(status="refused", value=None, p5=None, p95=None, limit_share=None, text="0 MUFU in the loop")
    )
    assert row.value == "" and "REFUSED: 0 MUFU in the loop" in row.note
    assert bench_row(result()).limit_share == pytest.approx(15.9 / 16.0)
    mix = bench_row(result(group="mix", value=54.0, perfect=60.0))
    assert mix.limit_share == pytest.approx(0.9) and mix.note == "of perfect overlap"
    compiled = result(status="compiled", value=None, device="sm_90a")
    assert "compiled, not run" in bench_title([compiled]) and bench_row(compiled).value == ""


def test_the_verdict_names_what_is_not_believed() -> None:
    assert "not believed: ex2" in bench_verdict([result(status="refused", value=None)])
    assert "515 cycles" in bench_verdict([result(value=15.9)])


def test_the_instruction_table_is_consistent() -> None:
    for instruction in INSTRUCTIONS:
        text = instruction.ptx.format(x="X", a="A", b="B")
        assert "X" in text and text.count("{") == text.count("}"), instruction.name
        assert instruction.limit_on("sm_103a") <= 128.0
    for mix in MIXES:
        assert all(name in BY_NAME for name, _ in mix.parts)
