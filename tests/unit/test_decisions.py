"""What jobs decide, on cases where a decision that is dropped or turned round shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from math import expm1, log1p
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from fa4top.analysis.chip.floors import Floors
from fa4top.analysis.compare.blocks import block_ratio, gate, slice_level
from fa4top.analysis.compare.evidence import (
    ALPHA,
    PILOTS,
    Evidence,
    Interval,
    first_calls,
    mixture_scale,
    redrawn_error_rate,
)
from fa4top.analysis.compare.sweep_evidence import INSIDE, OPEN, OUTSIDE, SweepEvidence, block_levels
from fa4top.analysis.compare.verdict import DETECTABLE_SD, blocks_for, detectable, resolution, verdict
from fa4top.analysis.view.limits import live_sentence, slow_sm
from fa4top.engine.jobs.arms import Slices, holds_still
from fa4top.engine.jobs.check import ERROR_SLACK, changes, judge, sentence
from fa4top.engine.pace import burst_launches, launch_deadline_s, recording_cta
from fa4top.engine.twins import verdict as twins_verdict
from fa4top.orders.jobs import COLD, WARM, AbJob, CheckJob, SweepJob
from fa4top.orders.order import Order
from fa4top.records import AbBlock, AbState, Check, Repeats, SweepPoint, SweepState
from tests.inline import run_inline
from tests.unit.test_triage import FLAKY, GEOMETRY, HEALTHY, evidence, kernel, keys, role

Make = Callable[..., Order]


# ------------------------------------------------------------------ A/B


@pytest.mark.parametrize("tier", [1, 2])
def test_probes_that_change_the_output_are_no_verdict(sim_order: Make, tier: int) -> None:
    found = run_inline(sim_order(sim_fault="probes"), AbJob(b={"handicap": "3"}, tier=tier, pairs=2)).snapshot
    assert found.ab is not None and (found.ab.state, found.ab.word) == ("done", "invalid")
    assert "arm A: probes change the output" in found.ab.text


def test_outputs_of_arms_whose_knobs_are_bitwise_must_be_equal(sim_order: Make) -> None:
    done = run_inline(sim_order(sim_fault="not-bitwise"), AbJob(b={"p_split": "1/2"}, most_blocks=20, budget_s=600.0))
    found = done.snapshot
    assert found.ab is not None and found.ab.word == "invalid"
    assert "outputs differ, though p_split should leave them equal bit for bit" in found.ab.text
    texts = {arm.arm: arm.output_text for arm in found.ab_arms}
    assert not texts or texts["B"].startswith("differs from A")
    may = run_inline(sim_order(sim_fault="not-bitwise"), AbJob(b={"pv_mode": "bf16"}, most_blocks=14, budget_s=600.0))
    assert may.snapshot.ab is not None and may.snapshot.ab.word in ("faster", "slower"), "pv_mode may change bits"


def test_a_budget_of_blocks_ends_an_a_b_and_is_said(sim_order: Make) -> None:
    found = run_inline(sim_order(sim_fault="noise"), AbJob(most_blocks=6, budget_s=600.0, margin=0.001)).snapshot
    assert len(found.ab_blocks) == 6 and found.ab is not None and found.ab.word == "undecided"
    assert found.ab.text.endswith("(budget of 6 blocks spent)") and "2 of at least 9 blocks" in found.ab.text
    assert [block.pilot for block in found.ab_blocks] == [True] * PILOTS + [False] * 2
    spent = run_inline(sim_order(), AbJob(budget_s=1e-9)).snapshot
    assert spent.ab is not None and "(budget of 1e-09 s spent)" in spent.ab.text and not spent.ab_blocks


def test_the_records_of_an_a_b_say_what_was_known_when(sim_order: Make) -> None:
    done = run_inline(sim_order(), AbJob(b={"handicap": "3"}, budget_s=600.0))
    blocks = [record.body for record in done.records if isinstance(record.body, AbBlock)]
    ratios: list[float] = []
    pilots = [block.log_ratio for block in blocks[:PILOTS]]
    scale = mixture_scale(pilots)
    held: Evidence | None = None
    for block in blocks:
        assert block.log_ratio == pytest.approx(block_ratio(block.order, block.slices_us, block.clocks_mhz)[0])
        if block.pilot:
            assert (block.estimate, block.low, block.high, block.log_e, block.word) == (None, None, None, None, "")
            continue
        ratios.append(block.log_ratio)
        held = Evidence(scale, ALPHA, 0)
        for ratio in ratios:
            held.add(ratio)
        assert block.estimate == pytest.approx(held.estimate) and block.low == pytest.approx(held.interval.low)
        assert block.high == pytest.approx(held.interval.high) and block.log_e == pytest.approx(held.log_e)
    assert held is not None and len(ratios) == 9 and blocks[-1].word == "slower", "nine unanimous blocks decide"
    assert [block.word for block in blocks[PILOTS:-1]] == ["undecided"] * 8
    states = [record.body for record in done.records if isinstance(record.body, AbState)]
    assert states[-1].rho == pytest.approx(scale) and states[-1].seed == 0 and not states[-1].equivalent
    assert [block.number for block in blocks] == list(range(1, 14))
    traced = [record.source for record in done.records if record.kind == "trace"]
    assert len(traced) == 2 * 7, "one traced launch an arm after every second block"


def test_rejected_blocks_are_counted_against_the_arm_that_tripped(sim_order: Make) -> None:
    found = run_inline(sim_order(sim_fault="hungry"), AbJob(b={"handicap": "3"}, budget_s=600.0)).snapshot
    assert found.ab is not None and found.ab.word == "invalid"
    rejected = [block for block in found.ab_blocks if not block.accepted]
    assert rejected and all(block.tripped == "A" and "SM clock of A" in block.reason for block in rejected)


# ------------------------------------------------------------------ gate


@pytest.mark.parametrize(("spread", "passes"), [(0.009, True), (0.021, False)])
def test_the_gate_compares_each_arm_with_itself(spread: float, passes: bool) -> None:
    moving = [2000.0, 2000.0 * (1 - spread), 2000.0, 2000.0]
    assert gate("ABBA", moving, [], []).accepted is passes
    apart = [2000.0, 1500.0, 1500.0, 2000.0]
    assert gate("ABBA", apart, [], []).accepted, "arms may differ: that is part of the effect"


def test_a_slice_is_its_median_in_log() -> None:
    assert slice_level([1.0, 100.0, 100.0]) == pytest.approx(np.log(100.0))
    ratio, cycles = block_ratio("BAAB", [[110.0], [100.0], [100.0], [110.0]], [2000.0, 1000.0, 1000.0, 2000.0])
    assert ratio == pytest.approx(np.log(1.1)) and cycles == pytest.approx(np.log(2.2))
    assert block_ratio("ABBA", [[1.0]] * 4, [1.0, None, 1.0, 1.0])[1] is None


# ------------------------------------------------------------------ verdict


def held(low: float, high: float, estimate: float = 0.0, n: int = 20) -> Any:
    class Held:
        interval = Interval(low, high)
        blocks = (0.0,) * n
        alpha = ALPHA

    made: Any = Held()
    made.estimate = estimate
    return made


@pytest.mark.parametrize(
    ("low", "high", "least", "word", "equivalent", "material"),
    [
        (-0.003, 0.004, 0.0, "equivalent", True, False),
        (-0.003, -0.001, 0.0, "faster", True, False),
        (0.001, 0.003, 0.0, "slower", True, False),
        (0.001, 0.003, 0.0015, "equivalent", True, False),
        (-0.003, -0.001, 0.0015, "equivalent", True, False),
        (0.02, 0.04, 0.0, "slower", False, True),
        (-0.04, -0.02, 0.0, "faster", False, True),
        (0.005, 0.03, 0.0, "slower", False, False),
        (-0.03, -0.005, 0.0, "faster", False, False),
        (-0.02, 0.004, 0.0, "undecided", False, False),
        (-0.004, 0.02, 0.0, "undecided", False, False),
    ],
)
def test_words_are_read_off_the_interval(
    low: float, high: float, least: float, word: str, equivalent: bool, material: bool
) -> None:
    found = verdict(held(low, high, (low + high) / 2), 0.01, least=least)
    assert (found.word, found.equivalent, found.material) == (word, equivalent, material)
    assert found.decided is (word in ("faster", "slower", "equivalent")) and found.blocks == 20
    assert found.low_percent == pytest.approx(100 * expm1(low)) and found.high_percent == pytest.approx(
        100 * expm1(high)
    )
    assert found.estimate_percent == pytest.approx(100 * expm1((low + high) / 2))
    assert ("though equivalent within 1%" in found.text) is (equivalent and word != "equivalent")


def test_sentences_have_sizes_and_what_would_decide() -> None:
    assert verdict(held(0.02, 0.04, 0.03), 0.01).text == "B is SLOWER by 3.05% (2.02 to 4.08)"
    assert verdict(held(-0.04, -0.02, -0.03), 0.01).text == "B is FASTER by 2.96% (1.98 to 3.92)"
    assert verdict(held(-0.003, 0.004), 0.01).text == "B is EQUIVALENT WITHIN 1% (-0.30 to +0.40%)"
    early = verdict(held(-0.5, 0.5, n=3), 0.01)
    assert early.text == "UNDECIDED: 3 of at least 9 blocks"
    late = verdict(held(-0.02, 0.02, n=25), 0.01, seconds_per_block=2.0)
    more = blocks_for(0.02, 25, log1p(0.01))
    assert late.text == f"UNDECIDED: half-width 2.02%; about {more} more blocks, {2 * more} s would tell within 1%"
    assert more == pytest.approx(25 * (0.02 / log1p(0.01)) ** 2 - 25, abs=1.0)
    assert blocks_for(0.004, 25, 0.01) == 1
    pairs = verdict(held(-0.5, 0.5, n=3), 0.01, unit="pairs").text
    assert pairs.endswith("pairs")
    assert verdict(held(0.02, 0.04, 0.03), 0.01, invalid="no").word == "invalid"
    assert verdict(held(0.04, 0.02, 0.03), 0.01).word == "invalid", "an empty interval: something changed"


def test_what_a_pair_of_processes_can_not_tell() -> None:
    assert resolution(None) == pytest.approx(log1p(0.0002))
    assert resolution(30.0) == pytest.approx(log1p(0.0002 + 0.005))


def test_what_could_be_seen_falls_with_blocks() -> None:
    assert detectable(0.01, 11) is None
    for blocks, effect in DETECTABLE_SD:
        assert detectable(0.01, blocks) == pytest.approx(0.01 * effect)
    between = detectable(0.01, 28)
    assert between is not None and 0.0068 < between < 0.0109
    assert detectable(0.01, 800) == pytest.approx(0.01 * 0.29 / 2)


def test_blocks_that_would_tell_are_counted_from_the_half_width() -> None:
    assert blocks_for(0.01, 25, 0.01) == 1, "one that is there already takes one more to say so"
    assert blocks_for(0.0101, 25, 0.01) == 1 and blocks_for(0.011, 25, 0.01) == 6
    assert blocks_for(0.02, 25, 0.01) == 75


# ------------------------------------------------------------------ evidence


def test_runs_are_judged_each_at_its_own_block_and_level() -> None:
    random = np.random.default_rng(4)
    quiet = np.full(24, 0.01) + 1e-5 * random.standard_normal(24)
    late = np.concatenate([0.01 * np.array([1, -1] * 4), np.full(16, 0.02)])
    never = 0.01 * np.array([1, -1] * 12)
    assert first_calls(np.array([never, quiet, late]), PILOTS).tolist() == [0, 9, first_calls(late[None, :], PILOTS)[0]]
    strict = first_calls(np.array([quiet]), PILOTS, alpha=0.001)[0]
    assert strict > 9 and first_calls(np.array([late]), PILOTS)[0] not in (0, 9)


def test_a_redrawn_rate_is_that_of_the_blocks_after_the_pilot() -> None:
    random = np.random.default_rng(8)
    blocks = np.concatenate([1e-3 * random.standard_normal(PILOTS), np.linspace(0.01, 0.03, 12)])
    rate = redrawn_error_rate(blocks, PILOTS, runs=400, seed=3)
    signs = np.where(np.random.default_rng(3).random((400, 16)) < 0.5, 1.0, -1.0)
    assert rate == pytest.approx(np.mean(first_calls(signs * blocks, PILOTS) > 0))
    assert 0.0 < rate < 0.05 and (redrawn_error_rate(blocks, PILOTS) * 1000) % 1 == pytest.approx(0.0, abs=1e-9)


def test_a_cold_cache_is_shown_to_cost() -> None:
    asked: list[str] = []

    class OneArm:
        name = "A"

    async def one(self: Slices, arm: Any, l2: str = "") -> Any:
        asked.append(l2)
        return SimpleNamespace(times_us=[110.0, 999.0, 1.0] if l2 == COLD else [100.0, 1.0, 999.0])

    with patch.object(Slices, "slice", one):
        slices = Slices(None, "burst", COLD)  # type: ignore[arg-type]
        assert asyncio.run(slices.l2_gap(OneArm())) == pytest.approx(10.0)  # type: ignore[arg-type]
    assert asked == [COLD, WARM]


# ------------------------------------------------------------------ sweep


def test_many_comparisons_are_paid_for() -> None:
    """Nine unanimous blocks are enough at 5%; among a hundred settings they are not."""
    found = {}
    for comparisons in (1, 100):
        evidence = SweepEvidence(["a", "b", "null"], "a", "null", 0.01, comparisons, 0)
        for number in range(PILOTS + 9):
            wobble = 1e-4 * (-1) ** number
            evidence.add({"a": 0.0, "b": 0.05 + wobble, "null": wobble})
        standing = evidence.standings()["b"]
        assert standing.verdict is not None
        found[comparisons] = standing.verdict
    assert found[1].word == "slower" and found[100].word == "undecided"


def test_the_null_arm_is_held_at_alpha_itself() -> None:
    evidence = SweepEvidence(["a", "b", "null"], "a", "null", 0.01, 40, 0)
    for number in range(PILOTS + 9):
        evidence.add({"a": 0.0, "b": 0.2, "null": 0.03 + 1e-9 * number})
    assert "the same setting again, came out slower by 3.0" in evidence.contaminated()


def test_a_sweep_is_decided_when_all_are_the_null_arm_too() -> None:
    evidence = SweepEvidence(["a", "b", "null"], "a", "null", 0.01, 1, 0)
    assert not evidence.decided()
    random = np.random.default_rng(1)
    for _ in range(PILOTS + 12):
        evidence.add({"a": 0.0, "b": 0.05 + 1e-4 * random.standard_normal(), "null": 0.02 * random.standard_normal()})
    standings = evidence.standings()
    assert standings["b"].plateau == OUTSIDE and standings["b"].verdict is not None and standings["b"].verdict.decided
    assert standings["null"].verdict is not None and not standings["null"].verdict.decided
    assert not evidence.decided(), "a null arm that is open leaves the sweep open"
    calm = SweepEvidence(["a", "b", "null"], "a", "null", 0.01, 1, 0)
    for _ in range(PILOTS + 12):
        calm.add({"a": 0.0, "b": 0.05 + 1e-4 * random.standard_normal(), "null": 1e-4 * random.standard_normal()})
    assert calm.decided() and calm.losers() == ["b"] and calm.leader == "a" and calm.blocks == 12


def test_plateaus_open_until_a_pair_is_told_apart() -> None:
    evidence = SweepEvidence(["a", "b", "c", "null"], "a", "null", 0.01, 2, 0)
    random = np.random.default_rng(2)
    for _ in range(PILOTS):
        evidence.add({"a": 0.0, "b": 1e-4, "c": 0.1 * random.standard_normal(), "null": 1e-5})
    assert evidence.pilot is False and evidence.blocks == 0
    assert {name: s.plateau for name, s in evidence.standings().items()}["b"] == OPEN
    for _ in range(20):
        evidence.add({"a": 0.0, "b": 1e-4, "c": 0.1 * random.standard_normal(), "null": 1e-5})
    found = {name: standing.plateau for name, standing in evidence.standings().items()}
    assert found["a"] == found["b"] == INSIDE and found["c"] == OPEN and found["null"] == OPEN
    assert evidence.estimate("a") == 0.0 and evidence.settings == ["a", "b", "c"]
    evidence.forget("c")
    assert evidence.live == ["a", "b", "null"] and evidence.decided(), "who is out keeps nothing open"


def test_levels_of_a_palindrome() -> None:
    levels = block_levels(["a", "b", "b", "a"], [[1.0], [4.0], [4.0], [9.0]])
    assert levels == {"a": pytest.approx(np.log(3.0)), "b": pytest.approx(np.log(4.0))}


@pytest.mark.parametrize(
    ("fault", "text"),
    [("probes", "probes change the output"), ("check", "the output is wrong"), ("not-bitwise", "bit for bit")],
)
def test_settings_that_may_not_be_measured_fail_in_a_sweep(sim_order: Make, fault: str, text: str) -> None:
    job = SweepJob(knob="p_split", values=["1/2", "3/4"], rounds=3, fresh=0, budget_s=600.0, most_blocks=14)
    found = run_inline(sim_order(sim_fault=fault), job).snapshot
    points = {point.value: point for point in found.sweep_points}
    assert points["1/2"].status == "failed" and text in points["1/2"].text
    if fault == "not-bitwise":
        assert points["3/4"].status == "measured"


def test_a_sweep_keeps_to_its_blocks_and_says_what_it_compared(sim_order: Make) -> None:
    job = SweepJob(
        knob="p_split",
        values=["1/2", "3/4"],
        series_knob="pv_mode",
        series=["fp8", "bf16"],
        rounds=3,
        fresh=1,
        budget_s=600.0,
        most_blocks=15,
    )
    done = run_inline(sim_order(), job)
    states = [record.body for record in done.records if isinstance(record.body, SweepState)]
    assert states[-1].comparisons == 2 and states[-1].baselines == {"fp8": "3/4", "bf16": "3/4"}
    points = {(p.series, p.value): p for p in done.snapshot.sweep_points if p.status == "measured"}
    assert len(points) == 4 and all(p.traces >= 3 for p in points.values())
    assert points["fp8", "1/2"].word == "slower" and points["fp8", "3/4"].word == ""
    assert points["fp8", "1/2"].fresh_word == "slower" and points["fp8", "1/2"].blocks == 11
    blocks = [record.body for record in done.records if record.kind == "sweep_block"]
    counts = {(b.series, b.phase): 0 for b in blocks}  # type: ignore[attr-defined]
    for b in blocks:
        counts[b.series, b.phase] += 1  # type: ignore[attr-defined]
    assert counts[("fp8", "measure")] <= 15 and counts["fp8", "fresh"] == PILOTS + 24
    assert any(isinstance(p, SweepPoint) and p.status == "null" for p in done.bodies("sweep_point"))


# ------------------------------------------------------------------ check


REPEATS = Repeats(
    worker="w",
    plan_id=1,
    setting="kv_stages=2",
    times=20,
    flaky_launches=0,
    flaky_elements=0,
    elements=1000,
    where="",
    against="differs",
    rms_error=3.45e-4,
    baseline_rms_error=2.61e-4,
)


def test_an_error_that_rose_by_a_third_does_not_pass() -> None:
    word, passed = judge(REPEATS, True, 3.45e-4, 2.61e-4, False)
    assert not passed and word == "less accurate than the baseline"
    within = 2.61e-4 * (ERROR_SLACK - 1e-6)
    assert judge(REPEATS, True, within, 2.61e-4, False) == ("differs in bits, as accurate as the baseline", True)
    assert judge(REPEATS, True, 2.61e-4 * (ERROR_SLACK + 1e-6), 2.61e-4, False)[1] is False
    assert judge(REPEATS, True, 1.0, None, False)[1] is True


def test_a_setting_in_words() -> None:
    told = replace(REPEATS, verdict="v", differing_elements=7, max_difference=0.012, differs_where="head 3")
    assert sentence(told) == (
        "kv_stages=2: v (7 of 1000 elements, at most 0.012 of the output's RMS: head 3), error against FP32 3.45e-04 "
        "(baseline 2.61e-04)"
    )
    flaky = replace(FLAKY, verdict="v")
    assert sentence(flaky) == "x: v (5 of 99 elements at most: head 3)"
    alone = replace(REPEATS, verdict="v", against="")
    assert sentence(alone) == "kv_stages=2: v, error against FP32 3.45e-04"


def test_what_b_sets_otherwise(sim_order: Make) -> None:
    assert changes(sim_order(), sim_order({"p_split": "1/2"})) == "p_split=1/2"
    assert changes(sim_order(), sim_order()) == "the same"


def test_other_inputs_are_not_compared(sim_order: Make) -> None:
    found = run_inline(sim_order(sim_fault="inputs"), CheckJob(b={"p_split": "1/2"}, times=2)).snapshot
    assert found.check_run is not None and found.check_run.passed is False
    assert "are not the baseline's" in found.check_run.text and found.repeats[-1].passed is False
    assert found.repeats[0].inputs and found.repeats[0].inputs != found.repeats[1].inputs


def test_a_wrong_kernel_fails_its_check_and_a_bisection_names_a_knob(sim_order: Make) -> None:
    wrong = run_inline(sim_order(sim_fault="check"), CheckJob(times=2)).snapshot
    assert wrong.check_run is not None and wrong.check_run.passed is False and wrong.check_run.state == "done"
    assert "wrong: its error against FP32 is above the limit" in wrong.check_run.text
    one = run_inline(sim_order(sim_fault="not-bitwise"), CheckJob(b={"p_split": "1/2"}, times=2)).snapshot
    assert one.check_run is not None and one.check_run.text.endswith("p_split changes the output")
    same = run_inline(sim_order(), CheckJob(b={"p_split": "1/2"}, times=2, bisect=True)).snapshot
    assert same.check_run is not None and same.check_run.passed and "first knob" not in same.check_run.text


# ------------------------------------------------------------------ twins, pace


def test_twins_may_be_measured_only_when_right_and_alike() -> None:
    good = HEALTHY.checks[0]
    bad = replace(good, passed=False, text="RMS 9")
    assert twins_verdict({"clean": good, "traced": good}) == "" == twins_verdict({})
    assert twins_verdict({"clean": good, "traced": replace(good, output_hash="b")}) == "probes change the output"
    assert twins_verdict({"clean": bad, "traced": bad}) == "the output is wrong (clean twin): RMS 9"
    assert twins_verdict({"traced": bad}) == "the output is wrong (traced twin): RMS 9"
    assert isinstance(good, Check)


@pytest.mark.parametrize(("us", "launches"), [(1.0, 20), (250.0, 20), (1000.0, 5), (5000.0, 1), (9000.0, 1)])
def test_a_burst_stays_under_five_milliseconds(us: float, launches: int) -> None:
    assert burst_launches(us) == launches


def test_deadlines_grow_with_the_work() -> None:
    assert launch_deadline_s(None, 3) == 30.0
    assert launch_deadline_s(1000.0, 5) == 2.0 and launch_deadline_s(1_000_000.0, 5) == pytest.approx(50.0)


def test_every_cta_records_in_its_turn() -> None:
    seen = [recording_cta(GEOMETRY, number) for number in range(148)]
    assert len(set(seen)) > 120 and min(seen) >= 0 and max(seen) < 148
    pairs = replace(GEOMETRY, cta_stride=2)
    assert all(recording_cta(pairs, number) % 2 == 0 for number in range(50))
    assert recording_cta(None, 7) == 0


def test_clocks_hold_still_within_one_percent_of_the_last_three() -> None:
    assert holds_still([]) and not holds_still([2000.0, 2000.0])
    assert holds_still([1500.0, 2000.0, 1990.0, 1985.0]) and not holds_still([2000.0, 1970.0, 1990.0])


# ------------------------------------------------------------------ triage and limits


def test_conversions_that_bind_are_named() -> None:
    code = kernel()
    softmax = next(r for r in code.roles if r.name == "softmax")
    heavy = replace(softmax, step_units={**softmax.step_units, "CONVERT": 100_000, "F2FP": 100_000, "XU": 1})
    found = evidence(replace(code, roles=tuple(heavy if r is softmax else r for r in code.roles)))
    floors = found.sass_floors
    assert floors is not None
    assert ("conversion" in keys(found)) is ((floors.of("convert") or 0.0) >= 2048.0)
    assert "conversion" not in keys(evidence(code))
    assert isinstance(floors, Floors)


@pytest.mark.parametrize(
    ("transitions", "longest", "headroom"), [(16, 47, False), (15, 10, True), (16, 48, True), (40, 10, False)]
)
def test_headroom_is_few_transitions_or_long_runs(transitions: int, longest: int, headroom: bool) -> None:
    code = kernel()
    softmax = next(r for r in code.roles if r.name == "softmax")
    mix = replace(softmax.step_mix, packs=32, transitions=transitions, runs=(1, longest, 2))
    e = evidence(replace(code, roles=tuple(replace(r, step_mix=mix) if r is softmax else r for r in code.roles)))
    assert ("scheduling" in keys(e)) is headroom


@pytest.mark.parametrize(
    ("worst", "second", "count", "slow"),
    [(109.0, 101.0, 24, True), (107.0, 101.0, 24, False), (109.0, 109.0, 24, False), (109.0, 101.0, 23, False)],
)
def test_one_slow_sm_is_named(worst: float, second: float, count: int, slow: bool) -> None:
    periods = [(number, 100.0) for number in range(count - 2)] + [(77, worst), (50, second)]
    snapshot = replace(HEALTHY, sm_periods=tuple(periods))
    text = slow_sm(snapshot)
    assert (text is not None) is slow and ("slow SM" in keys(evidence(sm_periods=tuple(periods)))) is slow
    if slow:
        assert text is not None and text.startswith("SM 77 is 9% slower than the others")
        assert live_sentence(snapshot).text == text


@pytest.mark.parametrize(
    ("changes_", "says", "bad"),
    [
        ({}, "softmax0 is busy 96% of a step", False),
        ({"plan": None}, "waiting for the engine", False),
        ({"checks": (replace(HEALTHY.checks[0], passed=False),)}, "output check FAILED (clean twin)", True),
        ({"traced_us": 410.2}, "probes cost +2.6%", False),
        ({"traced_us": 409.8}, "softmax0 is busy", False),
        ({"roles": ()}, "starting workers", False),
        ({"roles": (role("mma", wait_P_2nd=520.0), role("softmax0"))}, "handed over too early", False),
        ({"roles": (role("mma", wait_P_2nd=490.0), role("softmax0"))}, "softmax0 is busy 100% of a step", False),
        ({"roles": (role("mma", wait_P=300.0, wait_P_2nd=220.0), role("softmax0"))}, "softmax-bound: MMA waits", False),
        ({"roles": (role("mma"), role("softmax0", wait_S=260.0))}, "softmax0 spends 12% of a step in wait S", False),
        ({"roles": (role("mma"), role("softmax0", wait_S=250.0))}, "softmax0 is busy 88% of a step", False),
        ({"sm_clock_mhz": 1820.0}, "SM clock 1820 MHz inside the kernel, 1920 at rest", False),
        ({"sm_clock_mhz": 1830.0}, "softmax0 is busy", False),
    ],
)
def test_the_live_sentence_judges_by_its_thresholds(changes_: dict[str, Any], says: str, bad: bool) -> None:
    found = live_sentence(replace(HEALTHY, **changes_))
    assert says in found.text and found.bad is bad
