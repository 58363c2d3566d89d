"""Evidence that two settings differ, valid at any time: E-process, confidence sequence, point estimate.

Unit of everything here is the block: D = mean(log time of B) - mean(log time of A) over one ABBA or BAAB block whose
order a fair coin chose. The coin makes D symmetric about 0 when the labels do not matter, whatever the drift, so

    E_sym = sqrt(rho / (V + rho)) exp(S^2 / (2 (V + rho))),   S = sum D, V = sum D^2
    E_sgn = 2^n B(K + 1, n - K + 1),                          K = number of D > 0
    E     = (E_sym + E_sgn) / 2

have mean at most 1 under "no difference" at every n (E_sym: cosh(y) <= exp(y^2 / 2), de la Pena 1999, and the normal
mixture of Howard et al., Probability Surveys 17, 2020; E_sgn: Robbins' Beta mixture over signs), and by Ville's
inequality they ever reach 1 / alpha with probability at most alpha, however often one looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import lgamma, log

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

ALPHA = 0.05
WIDEST = log(2.0)  # log ratios beyond a factor of two are not looked for
GRID = 401
EDGE_PARTS = np.arange(1, 64) / 64.0
EDGE_ROUNDS = 7  # to 2^-42 of where the search began
PILOTS = 4  # blocks that set the scale and are discarded
PILOT_HORIZON = 20.0  # the scale rho is best for this many blocks like the pilot's


def mixture_scale(pilot: Sequence[float] | F64, alpha: float = ALPHA) -> float:
    """The scale rho for E_sym, from pilot blocks that are then discarded.

    rho = v / (2 ln(1/alpha) + ln(1 + 2 ln(1/alpha))) with v = 20 x the pilot's mean of D^2: best at that intrinsic time
    (Howard et al. 2021, "best rho"). Ten times too small or too large costs blocks, never validity.
    """
    level = log(1.0 / alpha)
    mean_square = float(np.mean(np.square(np.asarray(pilot)))) if len(pilot) else 0.0
    return max(PILOT_HORIZON * mean_square / (2.0 * level + log(1.0 + 2.0 * level)), 1e-16)


def log_e(blocks: F64, rho: float, shifts: F64, ties: F64 | None = None) -> F64:
    """Log E of the hypothesis "the true log ratio is theta", for each theta.

    Args:
        blocks: (n,) log ratios. rho: from ``mixture_scale``. shifts: (m,) thetas.
        ties: (n,) fair coins in {0, 1} for blocks that equal theta exactly; heads count as above.
    """
    n = len(blocks)
    if n == 0:
        return np.zeros(len(shifts))
    moved = blocks[None, :] - shifts[:, None]
    total = moved.sum(axis=1)
    square = np.square(moved).sum(axis=1)
    symmetric = 0.5 * np.log(rho / (square + rho)) + np.square(total) / (2.0 * (square + rho))
    coins = ties if ties is not None else np.zeros(n)
    above = (moved > 0).sum(axis=1) + ((moved == 0) * coins[None, :]).sum(axis=1)
    signs = n * log(2.0) + _log_beta(above, n)
    result: F64 = np.logaddexp(symmetric, signs) - log(2.0)
    return result


def _log_beta(above: F64, n: int) -> F64:
    """Log of B(k + 1, n - k + 1) for whole k."""
    values: F64 = _log_betas(n)[above.astype(np.int64)]
    return values


@lru_cache(maxsize=64)
def _log_betas(n: int) -> F64:
    """For all k from 0 to n."""
    return np.array([lgamma(k + 1) + lgamma(n - k + 1) - lgamma(n + 2) for k in range(n + 1)])


def log_e_paths(blocks: F64, rho: F64) -> F64:
    """Log E of "no difference" after every block, for many runs at once: (runs, n) from (runs, n) and (runs, 1)."""
    count = blocks.shape[1]
    n = np.arange(1, count + 1)
    total, square = np.cumsum(blocks, axis=1), np.cumsum(np.square(blocks), axis=1)
    above = np.cumsum(blocks > 0, axis=1)
    beta = np.zeros((count, count + 1))
    for row in range(count):
        beta[row, : row + 2] = _log_beta(np.arange(row + 2, dtype=np.float64), row + 1)
    symmetric = 0.5 * np.log(rho / (square + rho)) + np.square(total) / (2.0 * (square + rho))
    signs = n * log(2.0) + beta[(n - 1)[None, :], above]
    result: F64 = np.logaddexp(symmetric, signs) - log(2.0)
    return result


def first_calls(blocks: F64, pilots: int, alpha: float = ALPHA) -> npt.NDArray[np.int64]:
    """After how many blocks each run calls a difference, with a look after every one; 0: never.

    Args:
        blocks: (runs, pilots + n) log ratios; the first ``pilots`` set the scale and are discarded.
    """
    rho = np.array([[mixture_scale(pilot, alpha)] for pilot in blocks[:, :pilots]])
    hits = log_e_paths(blocks[:, pilots:], rho) >= log(1.0 / alpha)
    return np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, 0)


def redrawn_error_rate(blocks: F64, pilots: int, runs: int = 1000, seed: int = 0) -> float:
    """Share of runs that would call a difference had the coins of these very blocks fallen otherwise.

    A block's other order exchanges the labels, so its ratio changes sign. On blocks of A against A this is the rule's
    realised error rate on this machine's own noise, drift and position effects.
    """
    signs = np.where(np.random.default_rng(seed).random((runs, len(blocks))) < 0.5, 1.0, -1.0)
    return float(np.mean(first_calls(signs * blocks[None, :], pilots) > 0))


def hodges_lehmann(blocks: Sequence[float] | F64) -> float:
    """Median of the pairwise means (D_i + D_j) / 2, i <= j; 0 without blocks."""
    values = np.asarray(blocks, dtype=np.float64)
    if not len(values):
        return 0.0
    first, second = np.triu_indices(len(values))
    return float(np.median((values[first] + values[second]) / 2.0))


@dataclass(frozen=True)
class Interval:
    """Log ratios; closed."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of its length."""
        return (self.high - self.low) / 2.0

    @property
    def empty(self) -> bool:
        """Do its ends cross?"""
        return self.low > self.high

    def meet(self, other: Interval) -> Interval:
        """What is in both."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def percent(self) -> tuple[float, float]:
        """As changes of time in percent."""
        return 100.0 * float(np.expm1(self.low)), 100.0 * float(np.expm1(self.high))


EVERYTHING = Interval(-WIDEST, WIDEST)


def confidence_interval(blocks: F64, rho: float, alpha: float = ALPHA, ties: F64 | None = None) -> Interval:
    """All log ratios that the blocks do not contradict: {theta: E(theta) < 1 / alpha}, as its hull.

    The covering is simultaneous in time: the intersection over all n covers with probability 1 - alpha.
    """
    if not len(blocks):
        return EVERYTHING
    bound = log(1.0 / alpha)
    centre = hodges_lehmann(blocks)
    spread = max(float(np.abs(blocks - centre).max()), 1e-9)
    near = centre + spread * np.linspace(-3.0, 3.0, GRID)
    places = np.concatenate([np.linspace(-WIDEST, WIDEST, GRID), near, blocks, [centre]])
    grid = np.unique(np.clip(places, -WIDEST, WIDEST))
    kept = np.flatnonzero(log_e(blocks, rho, grid, ties) < bound)
    if not len(kept):
        return Interval(1.0, -1.0)
    low, high = int(kept[0]), int(kept[-1])

    def edge(inside: float, outside: float) -> float:
        # many places at a time: a call costs more than a place
        for _ in range(EDGE_ROUNDS):
            places = np.append(inside + (outside - inside) * EDGE_PARTS, outside)
            first = int(np.argmax(log_e(blocks, rho, places, ties) >= bound))
            inside, outside = (float(places[first - 1]) if first else inside), float(places[first])
        return outside

    left = edge(float(grid[low]), float(grid[low - 1])) if low else -WIDEST
    right = edge(float(grid[high]), float(grid[high + 1])) if high + 1 < len(grid) else WIDEST
    return Interval(left, right)


def fewest_blocks(alpha: float = ALPHA) -> int:
    """Unanimous blocks that E_sgn alone needs: below this no data can decide. 9 at alpha = 0.05."""
    n = 1
    while 2.0**n / (n + 1) / 2.0 < 1.0 / alpha:
        n += 1
    return n


class Evidence:
    """Takes blocks one by one; keeps E, its highest value, and the running intersection of intervals."""

    def __init__(self, rho: float, alpha: float = ALPHA, seed: int = 0) -> None:
        self._rho = rho
        self.alpha = alpha
        self._coins = np.random.default_rng(seed)
        self._blocks: list[float] = []
        self._ties: list[float] = []
        self.interval = EVERYTHING
        self.log_e = 0.0
        self.highest_log_e = 0.0

    @property
    def blocks(self) -> F64:
        """All blocks so far."""
        return np.array(self._blocks, dtype=np.float64)

    def add(self, block: float) -> None:
        """Take one block's log ratio in.

        Raises:
            ValueError: it is not finite.
        """
        if not np.isfinite(block):
            raise ValueError("a block's log ratio must be finite")
        self._blocks.append(block)
        self._ties.append(float(self._coins.integers(2)))
        blocks, ties = self.blocks, np.array(self._ties)
        self.log_e = float(log_e(blocks, self._rho, np.zeros(1), ties)[0])
        self.highest_log_e = max(self.highest_log_e, self.log_e)
        self.interval = self.interval.meet(confidence_interval(blocks, self._rho, self.alpha, ties))

    @property
    def differs(self) -> bool:
        """Was "no difference" ever contradicted?"""
        return self.highest_log_e >= log(1.0 / self.alpha)

    @property
    def estimate(self) -> float:
        """Hodges-Lehmann estimate of the log ratio."""
        return hodges_lehmann(self.blocks)


def e_bh(log_e: Mapping[str, float], alpha: float = ALPHA) -> list[str]:
    """Settings that differ, with a false discovery rate of at most alpha under any dependence.

    e-BH (Wang and Ramdas 2022): the largest k for which the k-th largest E is at least m / (alpha k).
    """
    ranked = sorted(log_e, key=lambda name: -log_e[name])
    m = len(ranked)
    for k in range(m, 0, -1):
        if log_e[ranked[k - 1]] >= log(m / (alpha * k)):
            return ranked[:k]
    return []
