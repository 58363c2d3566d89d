"""Shapes, knobs and what each target refuses, before anything is compiled."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from fa4top.orders.shapes import ShapeError, format_shape, parse_shape
from fa4top.records import Shape
from fa4top.targets.base import Knob, attention_flops
from fa4top.targets.catalog import TARGETS, UnknownTarget, describe
from fa4top.targets.fa4 import environment
from fa4top.targets.fa4.description import DESCRIPTION as FA4
from fa4top.targets.fa4.geometry import kernel_geometry
from fa4top.targets.fa4.probes import PROBES
from fa4top.targets.reference import bf16_to_float, float_to_bf16, reference_row, relative_errors, sample_rows
from fa4top.targets.sim.chips import load_chip, split_counts, split_hazard
from fa4top.targets.sim.description import DESCRIPTION as SIM

DEFAULT = Shape(batch=1, seqlen_q=8192, seqlen_k=8192, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", DEFAULT),
        ("s4096", replace(DEFAULT, seqlen_q=4096, seqlen_k=4096)),
        ("b2,sq128,sk=4096,h32,hk8", replace(DEFAULT, batch=2, seqlen_q=128, seqlen_k=4096, heads=32, kv_heads=8)),
        ("d192 dv128", replace(DEFAULT, head_dim=192, head_dim_v=128)),
        ("h8", replace(DEFAULT, heads=8, kv_heads=8)),
    ],
)
def test_shapes_are_read(text: str, expected: Shape) -> None:
    assert parse_shape(text, DEFAULT) == expected
    assert parse_shape(format_shape(expected), DEFAULT) == expected


@pytest.mark.parametrize("text", ["x4", "b", "b1;s2", "s-4", "b0", "s1.5"])
def test_bad_shapes_are_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ShapeError, match=r"shape|number"):
        parse_shape(text, DEFAULT)


def test_flops_follow_the_fields_convention() -> None:
    # 4 b h sq sk d: b1 s8192 h24 d128 is 0.8246 TFLOP; causal with equal lengths is half
    assert attention_flops(DEFAULT) == 4 * 24 * 8192 * 8192 * 128
    assert attention_flops(replace(DEFAULT, causal=True)) * 2 == attention_flops(DEFAULT)
    assert attention_flops(replace(DEFAULT, head_dim_v=64)) == attention_flops(DEFAULT) * 0.75


@pytest.mark.parametrize("name", TARGETS)
def test_every_knob_accepts_its_default_and_refuses_nonsense(name: str) -> None:
    description = describe(name)
    setting, problems = description.setting({})
    assert not problems and set(setting) == {knob.name for knob in description.knobs}
    for knob in description.knobs:
        assert knob.problem(knob.default) is None and knob.text and knob.numerics
        assert "nonsense" in (knob.problem("nonsense") or "")
    _, problems = description.setting({"no_such_knob": "1"})
    assert problems and "no_such_knob" in problems[0]


def test_number_knobs_have_bounds() -> None:
    knob = Knob("n", "4", "", low=1, high=8)
    assert knob.problem("8") is None and knob.problem("9") and knob.problem("0") and knob.problem("x")


def test_an_unknown_target_names_those_that_exist() -> None:
    with pytest.raises(UnknownTarget, match="fa4, fa4-fork, builtin, sim"):
        describe("fa5")


@pytest.mark.parametrize(
    ("shape", "arch", "knobs", "word"),
    [
        (replace(DEFAULT, kv_heads=5), "sm_90a", {}, "kv heads"),
        (replace(DEFAULT, dtype="fp8"), "sm_90a", {}, "Blackwell"),
        (replace(DEFAULT, dtype="int4"), "sm_90a", {}, "unknown"),
        (DEFAULT, "sm_80", {}, "sm_80"),
        (replace(DEFAULT, head_dim=130), "sm_90a", {}, "multiples of 8"),
        (replace(DEFAULT, head_dim=256, head_dim_v=256), "sm_103a", {}, "128"),
        (replace(DEFAULT, causal=True, seqlen_q=9000), "sm_90a", {}, "without keys"),
        (DEFAULT, "sm_90a", {"FA_CLC": "1"}, "FA_CLC"),
    ],
)
def test_fa4_refuses_what_can_not_run_in_one_sentence(
    shape: Shape, arch: str, knobs: dict[str, str], word: str
) -> None:
    message = FA4.shape_problem(shape, arch, knobs)
    assert message and word in message and "\n" not in message


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_103a"])
def test_fa4_takes_the_default_and_gqa(arch: str) -> None:
    assert FA4.shape_problem(DEFAULT, arch, {}) is None
    assert FA4.shape_problem(replace(DEFAULT, kv_heads=8, causal=True), arch, {}) is None


def test_the_callers_kernel_caches_are_switched_off_and_moved() -> None:
    env = {
        "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED": "1",
        "FLASH_ATTENTION_CUTE_DSL_CACHE_DIR": "/home/me/cache",
        "CUTE_DSL_CACHE_DIR": "/home/me/dsl",
    }
    environment.prepare({"FA_CLC": "1", "pack_gqa": "auto"}, "/private", env)
    assert env["FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED"] == "0" and env["CUTE_DSL_NO_CACHE"] == "1"
    assert env["CUTE_DSL_DISABLE_FILE_CACHING"] == "1" and env["FA_CLC"] == "1" and "pack_gqa" not in env
    assert "/home/me" not in " ".join(env.values())


class Sm90Kernel:
    tile_m, tile_n, pack_gqa = 128, 128, False


class Sm100Kernel:
    m_block_size, n_block_size, q_stage, is_static_persistent, pack_gqa = 128, 128, 2, True, False


def test_geometry_of_hopper_and_blackwell() -> None:
    hopper = kernel_geometry(Sm90Kernel(), DEFAULT, 132)
    assert (hopper.grid_ctas, hopper.tiles, hopper.steps_per_tile, hopper.steps_longest) == (1536, 1536, 64, 768)
    blackwell = kernel_geometry(Sm100Kernel(), DEFAULT, 148)
    assert (blackwell.grid_ctas, blackwell.tiles, blackwell.steps_longest) == (148, 768, 384)
    causal = kernel_geometry(Sm90Kernel(), replace(DEFAULT, causal=True), 132)
    assert causal.steps_per_tile in (32, 33) and causal.steps_longest == -(-24 * sum(range(1, 65)) // 132)


def test_probe_data_is_complete() -> None:
    for probes in PROBES.values():
        assert probes.sets[0].name == "coarse" and any(s.detail for s in probes.sets)
        assert {role for method in probes.roles for role in method.roles} == set(probes.layout.roles)
        assert len(probes.layout.roles) <= 4  # two bits of the state register


# reference fork_contract, section 1.1: fp8 d128 consumer splits, and which pairs are unsafe
@pytest.mark.parametrize(
    ("split", "chunks_tiles"),
    [
        ("1/8", (1, 1)),
        ("1/4", (1, 1)),
        ("3/8", (1, 1)),
        ("1/2", (2, 2)),
        ("5/8", (2, 2)),
        ("3/4", (3, 3)),
        ("7/8", (3, 3)),
    ],
)
def test_split_arithmetic_for_fp8(split: str, chunks_tiles: tuple[int, int]) -> None:
    mode = load_chip("gb300").modes["fp8"]
    assert split_counts(mode, Fraction(split)) == chunks_tiles
    assert (split_hazard(mode, Fraction(split)) is not None) == (chunks_tiles[1] < 2)


def test_other_modes_have_their_own_split_rules() -> None:
    modes = load_chip("gb300").modes
    assert split_counts(modes["bf16"], Fraction(1, 2)) == (3, 6)  # k // 4 x 3, whatever the knob says
    assert {split_counts(modes["nvfp4"], Fraction(s)) for s in ("1/2", "3/4", "7/8")} == {(1, 1)}
    assert split_hazard(modes["mxfp8"], Fraction(1, 4)) is None


def test_the_sim_refuses_what_it_can_not_model() -> None:
    setting, _ = SIM.setting({"chip": "h200"})
    assert "bf16" in (SIM.shape_problem(DEFAULT, "sm_90a", setting) or "")
    assert SIM.shape_problem(replace(DEFAULT, head_dim=64), "", SIM.setting({})[0])
    assert SIM.danger(SIM.default_shape, "sm_103a", SIM.setting({"p_split": "1/4"})[0])
    assert SIM.danger(SIM.default_shape, "sm_103a", SIM.setting({"p_split": "1/4", "pv_mode": "bf16"})[0]) is None


def test_reference_attention_and_rounding() -> None:
    import numpy as np

    random = np.random.default_rng(0)
    shape = Shape(batch=1, seqlen_q=16, seqlen_k=16, heads=1, kv_heads=1, head_dim=8, head_dim_v=8, causal=True)
    q, k, v = (random.standard_normal((16, 8)).astype(np.float32) for _ in "qkv")
    scores = (q.astype(np.float64) @ k.T) / np.sqrt(8)
    scores[np.triu_indices(16, 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    whole = weights @ v / weights.sum(1, keepdims=True)
    rows = np.stack([reference_row(q[r], k, v, r, shape) for r in range(16)])
    assert relative_errors(rows, whole.astype(np.float32))[0] < 1e-5
    assert relative_errors(np.array([[np.nan]], np.float32), np.ones((1, 1), np.float32))[0] == float("inf")
    bits = float_to_bf16(np.array([1.0, -2.5, 3.14159], np.float32))
    assert bf16_to_float(bits) == pytest.approx([1.0, -2.5, 3.140625])
    assert (0, 0, 0) in sample_rows(shape, 5, 1) and len(sample_rows(shape, 5, 1)) == 5
