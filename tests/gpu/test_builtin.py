"""The builtin kernel and the bench on a Hopper GPU: correct, repeatable, unharmed by probes, safe in its faults."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import pytest

from fa4top.orders.commands import LaunchRequest
from fa4top.records import Shape
from fa4top.targets.builtin.description import DESCRIPTION, shape_problem
from fa4top.targets.builtin.family import BUILTIN
from tests.traces import sampled

pytestmark = pytest.mark.gpu

cupy = pytest.importorskip("cupy")

SHAPES = [
    Shape(batch=1, seqlen_q=128, seqlen_k=128, heads=1, kv_heads=1, head_dim=128, head_dim_v=128),
    Shape(batch=1, seqlen_q=128, seqlen_k=256, heads=1, kv_heads=1, head_dim=128, head_dim_v=128),
    Shape(batch=2, seqlen_q=640, seqlen_k=1152, heads=4, kv_heads=2, head_dim=128, head_dim_v=128),
    Shape(batch=1, seqlen_q=256, seqlen_k=128, heads=3, kv_heads=1, head_dim=128, head_dim_v=128),
    Shape(batch=1, seqlen_q=384, seqlen_k=2048, heads=3, kv_heads=3, head_dim=128, head_dim_v=128, causal=True),
    Shape(batch=2, seqlen_q=1024, seqlen_k=1024, heads=8, kv_heads=1, head_dim=128, head_dim_v=128, causal=True),
    Shape(batch=4, seqlen_q=4096, seqlen_k=4096, heads=6, kv_heads=2, head_dim=128, head_dim_v=128, causal=True),
]
MODES = [
    {"pv_mode": "bf16"},
    {"pv_mode": "fp8"},
    {"pv_mode": "fp8", "fp8_scale": "multiply"},
    {"exp2_emulation": "1/2"},
]
REORDERINGS = [
    {"p_split": "1/8"},
    {"p_split": "7/8"},
    {"p_split": "3/4", "consumer_split": "1/4"},
    {"p_chunks": "1"},
    {"p_chunks": "2"},
    {"kv_stages": "2"},
    {"s_handover": "early"},
    {"tile_order": "heads"},
    {"tile_order": "longest"},
]


def launcher(shape: Shape, chosen: dict[str, str], twin: str = "clean", seed: int = 0, detail: bool = False) -> object:
    from fa4top.targets.builtin.launch import BuiltinLauncher

    knobs, problems = DESCRIPTION.setting(chosen)
    assert not problems and shape_problem(shape, "sm_90a", knobs) is None
    made = BuiltinLauncher(
        LaunchRequest(target="builtin", shape=shape, knobs=knobs, twin=twin, seed=seed, gpu_uuid="", detail=detail)
    )
    made.compile(lambda text, progress: None)
    return made


@pytest.mark.inside
@pytest.mark.parametrize(("shape", "mode", "seed"), [*itertools.product(SHAPES, MODES, [1, 7])], ids=str)
def test_output_is_attention(shape: Shape, mode: dict[str, str], seed: int) -> None:
    result = launcher(shape, mode, seed=seed).check()  # type: ignore[attr-defined]
    print(f"RMS {result.rms_error:.2e} max {result.max_error:.2e} limit {result.limit:g} {mode} {shape}")
    assert result.rms_error <= result.limit


@pytest.mark.inside
@pytest.mark.parametrize("mode", MODES[:2], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_reorderings_are_bitwise_equal(mode: dict[str, str], causal: bool) -> None:
    shape = Shape(
        batch=1, seqlen_q=1024, seqlen_k=2048, heads=6, kv_heads=2, head_dim=128, head_dim_v=128, causal=causal
    )
    base = launcher(shape, mode).check().output_hash  # type: ignore[attr-defined]
    for change in REORDERINGS:
        assert launcher(shape, {**mode, **change}).check().output_hash == base, change  # type: ignore[attr-defined]


@pytest.mark.inside
@pytest.mark.parametrize("mode", MODES[:2], ids=str)
def test_twenty_repeats_are_bitwise_equal(mode: dict[str, str]) -> None:
    made = launcher(
        Shape(batch=2, seqlen_q=2048, seqlen_k=2048, heads=8, kv_heads=4, head_dim=128, head_dim_v=128, causal=True),
        mode,
    )
    assert len({made.check().output_hash for _ in range(20)}) == 1  # type: ignore[attr-defined]


@pytest.mark.inside
@pytest.mark.parametrize("mode", MODES[:2], ids=str)
@pytest.mark.parametrize("detail", [False, True])
def test_probes_change_nothing_and_lose_nothing(mode: dict[str, str], detail: bool) -> None:
    shape = Shape(batch=1, seqlen_q=2048, seqlen_k=4096, heads=8, kv_heads=8, head_dim=128, head_dim_v=128)
    base = launcher(shape, mode).check().output_hash  # type: ignore[attr-defined]
    traced: object = launcher(shape, mode, "traced", detail=detail)
    assert traced.check().output_hash == base  # type: ignore[attr-defined]
    for cta in (0, 5, 127):
        capture = traced.traced_launch(cta)  # type: ignore[attr-defined]
        found = sampled(capture, traced.layout, BUILTIN)  # type: ignore[attr-defined]
        assert (found.losses.dropped, found.losses.unmatched, found.losses.stale) == (0, 0, 0)
        roles = {role.role: role for role in found.roles}
        assert {name: role.steps for name, role in roles.items() if name != "load"} == {
            "mma": 32,
            "softmax0": 32,
            "softmax1": 32,
        }
        assert all(role.tiles == 1 for role in roles.values())


@pytest.mark.inside
def test_a_contract_violation_is_seen_by_the_check() -> None:
    """Reads of P before it is written: only --unsafe gets here; the check must not let its numbers through."""
    shape = Shape(batch=1, seqlen_q=2048, seqlen_k=2048, heads=8, kv_heads=8, head_dim=128, head_dim_v=128)
    result = launcher(shape, {"p_split": "1/8", "consumer_split": "7/8"}).check()  # type: ignore[attr-defined]
    assert not result.rms_error <= result.limit


def fa4top(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fa4top", *arguments], capture_output=True, text=True, timeout=200, check=False
    )


LOST = """
from tests.traces import sampled
from tests.gpu.test_builtin import SHAPES, launcher
launcher(SHAPES[5], {"lost_signal": "on"}).check()
"""


@pytest.mark.inside
def test_a_lost_signal_is_refused_and_with_unsafe_hangs_only_its_worker() -> None:
    refused = fa4top("live", "--target", "builtin", "--set", "lost_signal=on", "--no-record")
    assert refused.returncode == 2 and "never sent" in refused.stderr
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", LOST], timeout=15, check=False)  # killed at the end
    result = launcher(SHAPES[5], {}).check()  # type: ignore[attr-defined]
    assert result.rms_error <= result.limit, "the GPU is healthy afterwards"


def test_the_bench_believes_all_of_this_chip() -> None:
    done = fa4top("bench", "--no-record", "--json")
    assert done.returncode == 0, done.stderr
    results = [json.loads(line)["body"] for line in done.stdout.splitlines() if '"kind":"bench"' in line]
    status = {r["name"]: r["status"] for r in results}
    assert set(status.values()) == {"measured", "lacking"}, {
        k: v for k, v in status.items() if v not in ("measured", "lacking")
    }
    value = {r["name"]: r["value"] for r in results}
    assert value["ex2.approx.ftz.f32"] == pytest.approx(16.0, rel=0.02)
    assert value["wgmma bf16 64x128x128, A from shared memory"] == pytest.approx(512.0, rel=0.02)


def test_a_sweep_of_the_split() -> None:
    done = fa4top("sweep", "p_split=1/2,3/4", "--target", "builtin", "--shape", "b1,s4096,h24", "--no-record", "--json")
    assert done.returncode == 0, done.stderr
    points = [json.loads(line)["body"] for line in done.stdout.splitlines() if '"kind":"sweep_point"' in line]
    last = {point["value"]: point for point in points if point["status"] == "measured"}
    assert {"1/2", "3/4"} <= set(last), "the present value is swept too"
    assert len({point["output"] for point in last.values()}) == 1 and last["3/4"]["tflops"] > 300
