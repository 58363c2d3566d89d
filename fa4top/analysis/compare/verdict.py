"""From an interval to words: faster, slower, equivalent, undecided, and what would decide it. Pure rules.

All verdicts are read off one confidence sequence, so the chance that any of them is ever wrong is at most alpha. The
margin is set before the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, expm1, log, log1p, sqrt

import numpy as np

from fa4top.analysis.compare.evidence import Evidence, Interval, fewest_blocks

FASTER, SLOWER, EQUIVALENT, UNDECIDED, INVALID = "faster", "slower", "equivalent", "undecided", "invalid"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What can be said of B against A. ``word`` is the strongest of it; ``equivalent`` and ``material`` may hold beside
    faster or slower. Percent are changes of time: negative is faster."""

    word: str
    text: str
    estimate_percent: float
    low_percent: float
    high_percent: float
    equivalent: bool
    material: bool
    blocks: int
    decided: bool


def verdict(
    evidence: Evidence,
    margin: float,
    seconds_per_block: float = 0.0,
    invalid: str = "",
    unit: str = "blocks",
    least: float = 0.0,
    who: str = "B is ",
) -> Verdict:
    """The verdict now.

    Args:
        margin: relative; 0.01 is one percent.
        seconds_per_block: for the sentence that says how long a decision would take.
        invalid: why nothing may be said, if so.
        unit: what is counted: blocks, or pairs of processes.
        who: how the sentence begins; a sweep's table names the setting itself.
        least: log ratio that must be exceeded for certain before a difference is called (``resolution``).
    """
    interval, n = evidence.interval, len(evidence.blocks)
    estimate = 100.0 * expm1(evidence.estimate)
    low, high = interval.percent()

    def made(word: str, text: str, equivalent: bool = False, material: bool = False) -> Verdict:
        decided = word in (FASTER, SLOWER, EQUIVALENT)
        return Verdict(
            word=word,
            text=text,
            estimate_percent=estimate,
            low_percent=low,
            high_percent=high,
            equivalent=equivalent,
            material=material,
            blocks=n,
            decided=decided,
        )

    if not invalid and interval.empty:
        invalid = "no single ratio fits all blocks: something changed during the run"
    if invalid:
        return made(INVALID, invalid)
    inside = interval.low > log1p(-margin) and interval.high < log1p(margin)
    beyond = interval.high < log1p(-margin) or interval.low > log1p(margin)
    within = f"equivalent within {100 * margin:g}%"
    if interval.high < -least:
        text = f"{who}FASTER by {-estimate:.2f}% ({-high:.2f} to {-low:.2f})"
        return made(FASTER, text + (f", though {within}" if inside else ""), inside, beyond)
    if interval.low > least:
        text = f"{who}SLOWER by {estimate:.2f}% ({low:.2f} to {high:.2f})"
        return made(SLOWER, text + (f", though {within}" if inside else ""), inside, beyond)
    if inside:
        return made(EQUIVALENT, f"{who}{within.upper()} ({low:+.2f} to {high:+.2f}%)", True)
    return made(UNDECIDED, _undecided(interval, n, margin, seconds_per_block, unit, fewest_blocks(evidence.alpha)))


def clock_sentence(time: float, cycles: float | None, half_width: float) -> str:
    """What the ratio is in cycles, and whether a difference is the kernel's or the clock's. Log ratios.

    nvbench's rule (its robust comparison confirms in cycles), with the interval's half-width as the tolerance.
    """
    if cycles is None:
        return ""
    text = f"in cycles {100.0 * expm1(cycles):+.2f}%"
    if abs(time - cycles) <= half_width:
        return text
    if abs(cycles) <= half_width < abs(time):
        return f"{text}: the difference is the clock's, not the kernel's"
    return f"{text}; the clock, {100.0 * expm1(cycles - time):+.2f}% in B, makes up for the rest"


# What two processes with the same setting differ by, for as long as they live: on an H200 up to 0.13 us at 27 us a
# launch and 0.02% at 1.56 ms (docs/measurements.md). Less than this one pair of processes can not tell.
PAIR_OFFSET_US, PAIR_OFFSET_SHARE = 0.15, 0.0002


def resolution(time_us: float | None) -> float:
    """Log ratio below which a difference may be that of two processes, not of their settings."""
    return log1p(PAIR_OFFSET_SHARE + (PAIR_OFFSET_US / time_us if time_us else 0.0))


def _undecided(interval: Interval, n: int, margin: float, seconds_per_block: float, unit: str, floor: int) -> str:
    if n < floor:
        return f"UNDECIDED: {n} of at least {floor} {unit}"
    half = 100.0 * expm1(interval.half_width)
    more = blocks_for(interval.half_width, n, log1p(margin))
    seconds = f", {more * seconds_per_block:.0f} s" if seconds_per_block else ""
    return f"UNDECIDED: half-width {half:.2f}%; about {more} more {unit}{seconds} would tell within {100 * margin:g}%"


def blocks_for(half_width: float, n: int, wanted: float) -> int:
    """More blocks until the half-width shrinks to ``wanted``, by the square-root law."""
    if half_width <= wanted:
        return 1
    return max(1, ceil(n * (half_width / wanted) ** 2) - n)


# effect, in standard deviations of a block, that 80% of runs call within so many blocks (benchmarks/ab_power.py)
DETECTABLE_SD = ((12, 1.74), (20, 1.09), (40, 0.68), (100, 0.40), (200, 0.29))


def detectable(standard_deviation: float, blocks: int) -> float | None:
    """Log ratio that four of five runs detect within so many blocks; None below the table's first row."""
    if blocks < DETECTABLE_SD[0][0]:
        return None
    counts, effects = zip(*DETECTABLE_SD, strict=True)
    if blocks >= counts[-1]:
        return standard_deviation * effects[-1] * sqrt(counts[-1] / blocks)
    return standard_deviation * float(exp(np.interp(log(blocks), np.log(counts), np.log(effects))))
