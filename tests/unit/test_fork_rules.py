"""The fork's knobs and rules against its contract, row by row (section 1.1 of it for the handoff)."""

from __future__ import annotations

import pytest

from fa4top.targets.fork.knobs import BY_NAME, KNOBS, emulates_exp2
from fa4top.targets.fork.modes import SM100, SM103, Case
from fa4top.targets.fork.rules import DANGER, NOTE, REFUSED, judge
from fa4top.targets.fork.split import handoff, split_of

FP8, FP4, MX = Case("fp8"), Case("fp4"), Case("mxfp8")


def split(kind: str, fraction: str, **more: str) -> dict[str, str]:
    numerator, denominator = fraction.split("/")
    return {f"FA4_{kind}_PV_P_SPLIT_NUM": numerator, f"FA4_{kind}_PV_P_SPLIT_DEN": denominator, **more}


def rep(value: int, kind: str = "FP8") -> dict[str, str]:
    return {f"FA4_{kind}_PV_TMEM_STORE_REP": str(value)}


def levels(case: Case, chosen: dict[str, str]) -> set[str]:
    return {finding.level for finding in judge(case, chosen)}


def says(case: Case, chosen: dict[str, str]) -> str:
    return " | ".join(finding.text for finding in judge(case, chosen))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case("bf16"), (4, 3, 8, 6)),
        (FP8, (4, 3, 4, 3)),
        (MX, (4, 3, 4, 3)),
        (FP4, (2, 1, 2, 1)),
        (Case("fp8", head_dim=64), (8, 6, 4, 3)),
    ],
)
def test_default_handoffs(case: Case, expected: tuple[int, int, int, int]) -> None:
    found = handoff(case, {})
    assert (found.chunks, found.producer, found.tiles, found.consumer) == expected
    assert found.safe and judge(case, {}) == []


@pytest.mark.parametrize(
    ("fraction", "consumer"),
    [("1/2", 2), ("5/8", 2), ("3/4", 3), ("7/8", 3), ("1/1", 3), ("1/8", 1), ("1/4", 1), ("3/8", 1)],
)
def test_the_fp8_table(fraction: str, consumer: int) -> None:
    assert handoff(FP8, split("FP8", fraction)).consumer == consumer
    assert handoff(MX, split("FP8", fraction)).consumer == consumer
    dangerous = DANGER in levels(FP8, split("FP8", fraction))
    assert dangerous == (consumer == 1), "one tile leaves plain fp8's descriptor register unset"
    assert "descriptor" in says(FP8, split("FP8", fraction)) or not dangerous
    assert "descriptor" not in says(MX, split("FP8", fraction)), "the other GEMM has absolute offsets"


@pytest.mark.parametrize(
    ("fraction", "columns", "violated"),
    [
        ("3/4", 16, True), ("7/8", 16, True), ("1/2", 16, False),
        ("1/8", 1, True), ("1/8", 2, True), ("1/8", 4, True),
        ("3/4", 32, False), ("1/2", 32, False),
        ("3/4", 8, False), ("3/4", 4, False), ("3/4", 2, False), ("1/2", 1, False),
    ],
)  # fmt: skip
def test_reads_of_unwritten_p_with_fp8(fraction: str, columns: int, violated: bool) -> None:
    chosen = split("FP8", fraction, **rep(columns))
    assert handoff(FP8, chosen).safe == (not violated)
    assert ("nobody wrote" in says(FP8, chosen)) == violated


@pytest.mark.parametrize(
    ("fraction", "columns", "violated"),
    [("1/4", 4, True), ("1/4", 2, True), ("1/4", 1, True), ("1/8", 4, True), ("1/8", 2, True), ("1/8", 1, True),
     ("1/4", 8, False), ("1/2", 8, False), ("1/2", 1, False), ("3/4", 2, False)],
)  # fmt: skip
def test_reads_of_unwritten_p_with_fp4(fraction: str, columns: int, violated: bool) -> None:
    chosen = split("FP4", fraction, **rep(columns, "FP4"))
    assert handoff(FP4, chosen).consumer == 1
    assert ("nobody wrote" in says(FP4, chosen)) == violated


def test_mxfp8_takes_its_fraction_from_fp8_and_its_chunks_from_fp4() -> None:
    assert "1/2 < 3/4" in says(MX, rep(16, "FP4"))
    assert "no effect" in says(MX, rep(16))
    assert handoff(MX, split("FP4", "1/4")).producer == 3


def test_head_dim_64_has_its_fraction_fixed() -> None:
    case = Case("fp8", head_dim=64)
    assert handoff(case, split("FP8", "1/2")) == handoff(case, {})
    assert "no effect" in says(case, split("FP8", "1/2"))


def test_the_split_of_one_part_is_one() -> None:
    assert split_of(1, 8, 128, (3, 4), (1, 2)) == 1 and split_of(1, 4, 128, (3, 4), (1, 2)) == 1


@pytest.mark.parametrize(
    ("case", "chosen", "level", "text"),
    [
        (Case("fp8", arch=SM100), {"FA4_LDRED_ROWMAX": "1"}, REFUSED, "sm_100a does not have"),
        (MX, {"FA4_FP4_PV_LOG2_QUANT": "0"}, REFUSED, "asserts FA4_FP4_PV_LOG2_QUANT=1"),
        (MX, {"FA4_FP4_PV_QUANT_STORE_PIPELINE": "1"}, REFUSED, "asserts"),
        (MX, {"FA4_FORCE_E2E": "1"}, DANGER, "E2M1 only"),
        (Case("mxfp8", arch=SM100), {}, DANGER, "on by default on sm_100a"),
        (FP8, {"FA4_SFQK_TMEM_SLOT": "o"}, DANGER, "collide"),
        (FP8, {"FA4_DEBUG_SKIP_SFQ_S2T": "1", "FA4_DEBUG_SKIP_SFK_S2T": "1"}, DANGER, "SFQ_S2T, FA4_DEBUG_SKIP_SFK"),
        (FP8, {"FA4_FP8_PV_ZERO_FILL_REGS": "0"}, DANGER, "stale"),
        (FP8, {"FA4_FP8_PV_RANGE_UNROLL": "4"}, NOTE, "227"),
        (FP8, {"FA4_FP8_PV_P_LOG2_OFFSET": "0.0"}, NOTE, "compare errors against FP32"),
        (FP4, {"FA4_FP8_PV_KV_STAGE_CAP": "2"}, NOTE, "no effect here"),
        (FP8, {"FA4_FORCE_E2E": "1", "FA4_FP8_PV_PACK_STORE_PIPELINE": "1"}, NOTE, "PIPELINE: no effect"),
        (FP4, {"FA4_FP4_PV_QUANT_STORE_PIPELINE": "1", **split("FP4", "1/2")}, NOTE, "P_SPLIT_DEN: no effect"),
        (FP8, rep(5), REFUSED, "legal: 1, 2, 4, 8, 16, 32"),
        (FP4, rep(32, "FP4"), REFUSED, "16 columns"),
        (FP8, {"FA4_LDRED_ROWMAX": "true"}, REFUSED, "only the exact text 1"),
        (FP8, {"FA4_SFQK_TMEM_SLOT": "x"}, REFUSED, "taken for s"),
        (FP8, {"FA4_FP8_PV_P_SPLIT_NUM": "three"}, REFUSED, "no whole number"),
        (FP8, {"FA4_FP8_PV_P_SPLIT_DEN": "0"}, REFUSED, "at least 1"),
        (FP8, {"FA4_FP8_P_SPLIT": "1"}, REFUSED, "no knob FA4_FP8_P_SPLIT"),
        (Case("fp4", "mxfp8"), {}, REFUSED, "with QK in nvfp4 only"),
        (Case("fp4", head_dim=64), {}, REFUSED, "needs head dim 128"),
        (Case("fp8", "mxfp8", 64), {}, REFUSED, "QK in nvfp4 only"),
        (Case("int8"), {}, REFUSED, "no PV mode int8"),
    ],
)  # fmt: skip
def test_every_rule_says_why(case: Case, chosen: dict[str, str], level: str, text: str) -> None:
    found = [finding for finding in judge(case, chosen) if text in finding.text]
    assert found and found[0].level == level, judge(case, chosen)


def test_emulation_by_table_needs_scales_of_16_values() -> None:
    assert emulates_exp2(Case("fp8", "nvfp4", arch=SM100), {})
    assert not emulates_exp2(Case("fp8", "mxfp8", arch=SM100), {})
    assert not emulates_exp2(Case("fp8", arch=SM103), {}) and emulates_exp2(FP8, {"FA4_FORCE_E2E": "1"})
    assert not emulates_exp2(Case("fp8", arch=SM100), {"FA4_FORCE_E2E": "0"})


def test_the_table_of_knobs_is_whole() -> None:
    assert len(KNOBS) == len(BY_NAME) == 30
    for knob in KNOBS:
        assert knob.text and knob.default and (knob.kind != "choice" or knob.values)
        if knob.kind in ("switch", "int") and knob.default.lstrip("-").isdigit():
            assert knob.problem(knob.default) is None
