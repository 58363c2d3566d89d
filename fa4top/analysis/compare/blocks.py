"""Blocks of an A/B: their order, their ratio, and which of them count. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

ORDERS = ("ABBA", "BAAB")
# Slices of one arm within a block whose SM clocks differ by more: the clock moved. Between arms it may differ: what
# clock a chip gives a kernel depends on the kernel's power, in bursts of 5 ms and with no throttle reason too (an H200:
# docs/measurements.md), and the verdict says what the ratio is in cycles.
CLOCK_SPREAD = 0.01
MOST_REJECTED = 0.5
LEAST_FOR_REJECTION = 10


def block_order(random: np.random.Generator) -> str:
    """ABBA or BAAB by a fair coin, drawn before the block starts: what makes the verdict's error rate hold."""
    return ORDERS[int(random.integers(2))]


class Coin:
    """A seeded fair coin: a run's orders can be drawn again from its log."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def heads(self) -> bool:
        """One throw."""
        return bool(self._random.integers(2))

    def block_order(self) -> str:
        """The next block's order."""
        return block_order(self._random)


def slice_level(times_us: Sequence[float]) -> float:
    """A slice's value: median of the log times of its launches."""
    return float(np.median(np.log(np.asarray(times_us, dtype=np.float64))))


def block_ratio(
    order: str, slices_us: Sequence[Sequence[float]], clocks_mhz: Sequence[float | None]
) -> tuple[float, float | None]:
    """Mean log time of B less that of A; the same in cycles, where every slice's clock is known.

    ABBA and BAAB cancel a linear drift within the block.
    """
    times = np.array([slice_level(times) for times in slices_us])
    sign = np.array([1.0 if arm == "B" else -1.0 for arm in order]) / 2.0
    ratio = float(times @ sign)
    if any(clock is None for clock in clocks_mhz):
        return ratio, None
    cycles = times + np.log(np.array([float(clock or 1.0) for clock in clocks_mhz]))
    return ratio, float(cycles @ sign)


@dataclass(frozen=True)
class Gate:
    """May this block count? ``tripped`` is the arm that did it, '' when neither or both."""

    accepted: bool
    reason: str = ""
    tripped: str = ""


def moved(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Reasons whose counter moved between two readings."""
    return [reason for reason, count in after.items() if count > before.get(reason, count)]


def gate(
    order: Sequence[str],
    clocks_mhz: Sequence[float | None],
    throttle: Sequence[str],
    foreign: Sequence[int],
    sustained: bool = False,
) -> Gate:
    """Whole blocks are rejected, never one arm's slice. Sustained: a clock that is held back is part of the effect."""
    if foreign:
        return Gate(False, f"another process computes on this GPU (pid {', '.join(map(str, foreign))})")
    if sustained:
        return Gate(True)
    if throttle:
        return Gate(False, f"clock held back: {', '.join(throttle)}")
    by_arm: dict[str, list[float]] = {}
    for clock, arm in zip(clocks_mhz, order, strict=True):
        if clock:
            by_arm.setdefault(arm, []).append(clock)
    spreads = {arm: max(clocks) / min(clocks) - 1.0 for arm, clocks in by_arm.items()}
    if trippers := [arm for arm, spread in spreads.items() if spread > CLOCK_SPREAD]:
        worst = max(trippers, key=lambda arm: spreads[arm])
        reason = f"SM clock of {worst} moved by {spreads[worst]:.1%} within the block"
        return Gate(False, reason, worst if len(trippers) == 1 else "")
    return Gate(True)


def unfair_gate(tripped: Sequence[str]) -> str:
    """Why rejections may not be ignored: they fall on one arm, so the kept blocks are a biased choice; '' when not.

    Binomial, two-sided, at one percent, of those that an arm can be named for.
    """
    named = [arm for arm in tripped if arm]
    n, b = len(named), sum(arm == "B" for arm in named)
    if n < LEAST_FOR_REJECTION:
        return ""
    from math import comb

    extreme = max(b, n - b)
    chance = 2.0 * sum(comb(n, k) for k in range(extreme, n + 1)) / 2.0**n
    if chance >= 0.01:
        return ""
    arm = "B" if b > n - b else "A"
    return f"the clock of arm {arm} moves more often ({extreme} of {n} rejections): compare in sustained mode"
