"""The statistics of A/B: the stated formulas, their error rates under peeking, and the words made of them."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4top.analysis.compare.evidence import (
    ALPHA,
    EVERYTHING,
    F64,
    Evidence,
    Interval,
    confidence_interval,
    fewest_blocks,
    first_calls,
    hodges_lehmann,
    log_e,
    log_e_paths,
    mixture_scale,
    redrawn_error_rate,
)
from fa4top.analysis.compare.verdict import (
    EQUIVALENT,
    SLOWER,
    blocks_for,
    clock_sentence,
    detectable,
    resolution,
    verdict,
)

Draw = Callable[[np.random.Generator, int], F64]
RUNS, BLOCKS = 300, 80


def at_zero(blocks: F64, rho: float) -> float:
    return float(log_e(blocks, rho, np.zeros(1))[0])


def test_e_is_the_mean_of_both_stated_formulas() -> None:
    blocks, rho = np.array([0.3, -0.1, 0.2, 0.25]), 0.05
    total, square = 0.65, 0.09 + 0.01 + 0.04 + 0.0625
    symmetric = sqrt(rho / (square + rho)) * exp(total**2 / (2 * (square + rho)))
    signs = 2**4 * (6 * 1 / 120)  # B(4, 2) = 3! 1! / 5!
    assert exp(at_zero(blocks, rho)) == pytest.approx((symmetric + signs) / 2)


def test_nine_unanimous_blocks_are_the_floor() -> None:
    assert fewest_blocks(0.05) == 9
    tiny = np.full(9, 1e-12)  # signs alone: nothing for the mixture
    assert at_zero(tiny, 1.0) >= log(1 / ALPHA) > at_zero(tiny[:8], 1.0)


def test_the_scale_of_the_mixture_is_the_stated_one() -> None:
    level = log(1 / 0.05)
    assert mixture_scale(np.array([0.01, -0.03])) == pytest.approx(20 * 5e-4 / (2 * level + log(1 + 2 * level)))
    assert mixture_scale(np.zeros(0)) > 0


def test_hodges_lehmann_is_the_median_of_pairwise_means() -> None:
    assert hodges_lehmann(np.array([1.0, 2.0, 9.0])) == pytest.approx(np.median([1, 1.5, 5, 2, 5.5, 9]))
    assert hodges_lehmann(np.zeros(0)) == 0.0


@given(st.lists(st.floats(-0.1, 0.1), min_size=9, max_size=30))
@settings(max_examples=60, deadline=None)
def test_the_interval_holds_what_is_not_contradicted(values: list[float]) -> None:
    blocks = np.array(values)
    rho = mixture_scale(blocks[:4]) if np.any(blocks[:4]) else 1e-4
    interval = confidence_interval(blocks, rho)
    outside = [interval.low - 1e-3, interval.high + 1e-3] if not interval.empty else []
    for theta in outside:
        if abs(theta) < log(2):
            assert log_e(blocks, rho, np.array([theta]))[0] >= log(1 / ALPHA) - 1e-9


def test_with_few_blocks_nothing_is_known() -> None:
    assert confidence_interval(np.array([0.1, 0.1]), 1e-3) == EVERYTHING
    assert confidence_interval(np.zeros(0), 1e-3) == EVERYTHING


def watch(draw: Draw, effect: float = 0.0) -> tuple[float, list[int]]:
    """Share of runs that ever call a difference with a look after each block, and when they did."""
    random = np.random.default_rng(7)
    called, when = 0, []
    for _ in range(RUNS):
        blocks = draw(random, BLOCKS + 4) + effect
        rho = mixture_scale(blocks[:4])
        for n in range(1, BLOCKS + 1):
            if at_zero(blocks[4 : 4 + n], rho) >= log(1 / ALPHA):
                called += 1
                when.append(n)
                break
    return called / RUNS, when


def normal(random: np.random.Generator, n: int) -> F64:
    return random.normal(size=n)


def heavy(random: np.random.Generator, n: int) -> F64:
    return random.standard_t(3, size=n)


def outliers(random: np.random.Generator, n: int) -> F64:
    return random.normal(size=n) * np.where(random.random(n) < 0.05, 10.0, 1.0)


def drifting(random: np.random.Generator, n: int) -> F64:
    """Autocorrelated, with the block's order from a fair coin: what the design relies on."""
    noise = random.normal(size=n)
    for i in range(1, n):
        noise[i] += 0.5 * noise[i - 1]
    return noise * np.where(random.random(n) < 0.5, 1.0, -1.0)


@pytest.mark.parametrize("draw", [normal, heavy, outliers, drifting])
def test_peeking_at_every_block_does_not_break_the_error_rate(draw: Draw) -> None:
    share, _ = watch(draw)
    assert share <= 0.05, f"A/A called different in {share:.1%} of {RUNS} runs"


def test_without_the_coin_the_rate_would_break() -> None:
    """The coin, not the formula, buys validity: the same drift without it is called all the time."""

    def no_coin(random: np.random.Generator, n: int) -> F64:
        noise = random.normal(size=n)
        for i in range(1, n):
            noise[i] += 0.7 * noise[i - 1]
        return noise

    assert watch(no_coin)[0] > 0.1


def test_a_difference_of_a_standard_deviation_is_found() -> None:
    share, when = watch(normal, 1.09)
    assert share > 0.97 and 12 <= float(np.median(when)) <= 20


def test_paths_of_many_runs_are_those_of_one() -> None:
    blocks = np.random.default_rng(2).normal(size=(3, 12))
    paths = log_e_paths(blocks, np.full((3, 1), 0.7))
    for run, n in ((0, 1), (1, 7), (2, 12)):
        assert paths[run, n - 1] == pytest.approx(at_zero(blocks[run, :n], 0.7))


def test_redrawn_coins_give_the_rule_s_own_error_rate() -> None:
    random = np.random.default_rng(8)
    # a position effect and heavy tails: whatever the noise, its signs are the coin's
    noise = 3e-4 + 2e-4 * random.standard_t(3, size=104)
    assert redrawn_error_rate(noise, 4) <= 0.05
    assert redrawn_error_rate(noise, 4) > 0.0, "the rule is not idle"
    assert (first_calls(np.full((1, 20), 0.01), 4) == 9).all(), "without the coin, nine blocks of one sign decide"


def test_the_running_interval_covers_the_truth_at_all_times() -> None:
    random = np.random.default_rng(3)
    missed = 0
    for _ in range(60):
        blocks = 0.002 + 0.001 * random.standard_t(4, size=44)
        evidence = Evidence(mixture_scale(blocks[:4]))
        for block in blocks[4:]:
            evidence.add(float(block))
        missed += not evidence.interval.low <= 0.002 <= evidence.interval.high
    assert missed <= 3


def made(blocks: F64, rho: float = 1e-5) -> Evidence:
    evidence = Evidence(rho)
    for block in blocks:
        evidence.add(float(block))
    return evidence


NOISE = 2e-4 * np.random.default_rng(5).normal(size=40)


@pytest.mark.parametrize(
    ("shift", "word", "says"),
    [
        (-0.02, "faster", "B is FASTER by 1.9"),
        (0.03, "slower", "B is SLOWER by 3.0"),
        (0.0, "equivalent", "EQUIVALENT WITHIN 1%"),
        (-0.003, "faster", "though equivalent within 1%"),
    ],
)
def test_the_words(shift: float, word: str, says: str) -> None:
    found = verdict(made(NOISE + shift), 0.01)
    assert found.word == word and says in found.text and found.decided
    assert found.low_percent < found.estimate_percent < found.high_percent
    assert found.material == (abs(shift) > 0.01) and found.equivalent == (abs(shift) < 0.01)


def test_what_is_not_decided_says_what_it_would_take() -> None:
    early = verdict(made(NOISE[:5]), 0.01)
    assert early.word == "undecided" and "5 of at least 9 blocks" in early.text
    wide = verdict(made(100 * NOISE[:12], 1e-2), 0.001, seconds_per_block=0.5)
    assert wide.word == "undecided" and "more blocks" in wide.text and " s would tell within 0.1%" in wide.text
    assert blocks_for(0.02, 10, 0.01) == 30 and blocks_for(0.005, 10, 0.01) == 1


def test_a_ratio_that_changes_during_the_run_is_no_verdict() -> None:
    jumps = made(np.concatenate([np.full(30, -0.05), np.full(60, 0.05)]) + np.tile(NOISE, 3)[:90])
    found = verdict(jumps, 0.01)
    assert found.word == "invalid" and "changed during the run" in found.text
    assert verdict(made(NOISE), 0.01, invalid="the output is wrong").text == "the output is wrong"


def test_blocks_must_be_numbers() -> None:
    with pytest.raises(ValueError, match="finite"):
        Evidence(1e-4).add(float("nan"))


def test_what_can_be_seen_in_so_many_blocks() -> None:
    assert detectable(0.001, 5) is None
    assert detectable(0.001, 40) == pytest.approx(0.00068)
    assert detectable(0.001, 800) == pytest.approx(0.000145)
    between = detectable(0.001, 28)
    assert between is not None and 0.00068 < between < 0.00109


def test_intervals_meet() -> None:
    both = Interval(-1.0, 2.0).meet(Interval(0.0, 3.0))
    assert both == Interval(0.0, 2.0) and both.half_width == 1.0 and Interval(1.0, 0.0).empty


@pytest.mark.parametrize(
    ("time", "cycles", "says"),
    [
        (0.05, None, ""),
        (0.05, 0.0501, "in cycles +5.14%"),
        (0.03, 0.0002, "in cycles +0.02%: the difference is the clock's, not the kernel's"),
        (0.0478, 0.0572, "in cycles +5.89%; the clock, +0.94% in B, makes up for the rest"),
    ],
)
def test_cycles_tell_the_kernel_s_share_from_the_clock_s(time: float, cycles: float | None, says: str) -> None:
    assert clock_sentence(time, cycles, 0.001) == says


def test_what_two_processes_may_differ_by_is_not_called() -> None:
    assert resolution(27.0) > 0.005 > resolution(1560.0) > 0.00025 and resolution(None) < 0.00025
    found = Evidence(1e-7)
    for _ in range(30):
        found.add(0.004)
    assert verdict(found, 0.01).word == SLOWER
    assert verdict(found, 0.01, least=resolution(27.0)).word == EQUIVALENT
    assert verdict(found, 0.01, least=resolution(1560.0)).word == SLOWER
