"""A sweep's statistics: orders, verdicts that hold together, the plateau, and the null arm."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from fa4top.analysis.compare.evidence import e_bh
from fa4top.analysis.compare.sweep_evidence import Shuffle, SweepEvidence, best_first, block_levels

NAMES = ["base", "same", "worse", "better", "null"]
TRUTH = {"base": 0.0, "same": 0.0, "worse": 0.05, "better": -0.02, "null": 0.0}
SD = 0.004


def test_every_order_is_a_palindrome_and_all_places_are_equally_likely() -> None:
    shuffle = Shuffle(3)
    orders = [shuffle.palindrome(NAMES) for _ in range(500)]
    assert all(order == order[::-1] and sorted(order[:5]) == sorted(NAMES) for order in orders)
    first = [sum(order[0] == name for order in orders) for name in NAMES]
    assert min(first) > 60, "each comes first in about a fifth"
    assert [Shuffle(3).palindrome(NAMES)] == orders[:1], "replayable from its seed"


def test_a_palindrome_cancels_a_linear_drift() -> None:
    order = ["a", "b", "c", "c", "b", "a"]
    slices = [[exp(0.01 * place)] for place in range(6)]
    levels = block_levels(order, slices)
    assert levels["a"] == pytest.approx(levels["b"]) == pytest.approx(levels["c"]) == pytest.approx(0.025)


def run(truth: dict[str, float], blocks: int, seed: int, margin: float = 0.01) -> SweepEvidence:
    random = np.random.default_rng(seed)
    evidence = SweepEvidence(list(truth), "base", "null", margin, len(truth) - 2, seed)
    for _ in range(blocks + 4):
        drift = float(random.normal(0.0, 0.02))  # common to the block: it must not matter
        evidence.add({name: 7.0 + drift + level + float(random.normal(0.0, SD)) for name, level in truth.items()})
    return evidence


def test_every_setting_gets_its_verdict() -> None:
    evidence = run(TRUTH, 60, 1)
    standings = evidence.standings()
    words = {name: s.verdict.word if s.verdict else None for name, s in standings.items()}
    assert words == {"base": None, "same": "equivalent", "worse": "slower", "better": "faster", "null": "equivalent"}
    assert evidence.decided() and not evidence.contaminated()
    assert {n: s.plateau for n, s in standings.items() if n != "null"} == {
        "base": "out", "same": "out", "worse": "out", "better": "in"
    }  # fmt: skip
    assert best_first(evidence)[0] == "better" and evidence.leader == "better"
    assert "worse" in evidence.losers() and "better" not in evidence.losers() and "base" not in evidence.losers()
    assert evidence.estimate("worse") == pytest.approx(0.05, abs=0.003)


def test_what_is_dropped_leaves_the_blocks_and_keeps_its_verdict() -> None:
    evidence = run(TRUTH, 30, 2)
    evidence.forget("worse")
    evidence.add(dict.fromkeys(["base", "same", "better", "null"], 7.0))
    standing = evidence.standings()["worse"]
    assert standing.verdict is not None and standing.verdict.word == "slower" and standing.verdict.blocks == 30
    assert "worse" not in evidence.live


def test_a_null_arm_that_differs_spoils_the_sweep() -> None:
    evidence = run({**TRUTH, "null": 0.03}, 40, 3)
    assert "came out slower by 3." in evidence.contaminated()


def test_many_settings_that_do_nothing_are_rarely_called_different() -> None:
    truth = {"base": 0.0, **{f"s{i}": 0.0 for i in range(6)}, "null": 0.0}
    wrong = 0
    for seed in range(30):
        evidence = run(truth, 16, 100 + seed)
        words = [s.verdict.word for n, s in evidence.standings().items() if s.verdict and n != "null"]
        wrong += any(word in ("faster", "slower") for word in words)
    assert wrong <= 4, "at most 5% of sweeps, and here with room for chance"


def test_pilot_blocks_are_no_evidence() -> None:
    evidence = run(TRUTH, 0, 4)
    assert not evidence.pilot and evidence.blocks == 0 and not evidence.decided()
    assert all(s.verdict is None or s.verdict.blocks == 0 for s in evidence.standings().values())


def test_e_bh_is_the_stated_rule() -> None:
    # m = 4, alpha = 0.05: the k-th largest must reach 80 / k
    assert e_bh({"a": log(90.0), "b": log(41.0), "c": log(26.0), "d": 0.0}) == ["a", "b"]
    assert e_bh({"a": log(90.0), "b": log(41.0), "c": log(27.0), "d": 0.0}) == ["a", "b", "c"]
    assert e_bh({"a": log(79.0), "b": 0.0, "c": 0.0, "d": 0.0}) == []
