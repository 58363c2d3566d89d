"""What a sweep's blocks say of every setting: verdicts against the baseline, who may be dropped, the plateau.

A block is all live settings in random order, then in reverse: ABBA for many. Every setting is compared with the
baseline at alpha / m (m comparisons), and pairs of settings at alpha / m^2. A null arm, the baseline again in processes
of its own, must not differ from it. Pure, but for the coins of ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np

from fa4top.analysis.compare.blocks import slice_level
from fa4top.analysis.compare.evidence import ALPHA, PILOTS, Evidence, Interval, confidence_interval, mixture_scale
from fa4top.analysis.compare.verdict import Verdict, verdict

INSIDE, OUTSIDE, OPEN = "in", "out", "open"


class Shuffle:
    """A seeded source of block orders: a run's orders can be drawn again from its log."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def palindrome(self, names: Sequence[str]) -> list[str]:
        """All names in random order, then in reverse: a linear drift cancels, and nobody's place is his own."""
        once = [names[place] for place in self._random.permutation(len(names))]
        return once + once[::-1]


def block_levels(order: Sequence[str], slices_us: Sequence[Sequence[float]]) -> dict[str, float]:
    """Mean log time of each setting over its two slices of a block."""
    levels: dict[str, list[float]] = {}
    for name, times in zip(order, slices_us, strict=True):
        levels.setdefault(name, []).append(slice_level(times))
    return {name: float(np.mean(values)) for name, values in levels.items()}


@dataclass(frozen=True)
class Standing:
    """One setting now. ``verdict`` is against the baseline, None for the baseline itself; ``plateau``: in (not worse
    than the best by more than the margin), out, or open; ``log_e`` against "no difference"."""

    verdict: Verdict | None
    plateau: str
    log_e: float


class SweepEvidence:
    """Takes blocks in; knows what they say."""

    def __init__(
        self, names: Sequence[str], baseline: str, null: str, margin: float, comparisons: int, seed: int
    ) -> None:
        """``names`` include the baseline and the null arm; ``comparisons`` counts those of the whole sweep, which may
        have other series."""
        self._names = list(names)
        self._baseline, self._null = baseline, null
        self._margin, self._m, self._seed = margin, max(1, comparisons), seed
        self._pilots: list[dict[str, float]] = []
        self._blocks: list[dict[str, float]] = []
        self._evidence: dict[str, Evidence] = {}
        self._pairs: dict[tuple[str, str], Interval] = {}
        self.live = list(names)
        self.least = 0.0  # log ratio that two processes alone may differ by

    @property
    def pilot(self) -> bool:
        """Is the next block still one of those that set the scale and are discarded?"""
        return len(self._pilots) < PILOTS

    @property
    def blocks(self) -> int:
        """Blocks that count, the pilot's not among them."""
        return len(self._blocks)

    @property
    def settings(self) -> list[str]:
        """All but the null arm."""
        return [name for name in self._names if name != self._null]

    def _alpha(self, name: str) -> float:
        return ALPHA if name == self._null else ALPHA / self._m

    def add(self, levels: dict[str, float]) -> None:
        """A block that counts: mean log time by setting."""
        if self.pilot:
            self._pilots.append(levels)
            if not self.pilot:
                for name in self._names:
                    if name != self._baseline:
                        rho = mixture_scale(self._differences(self._pilots, name, self._baseline), self._alpha(name))
                        self._evidence[name] = Evidence(rho, self._alpha(name), self._seed)
            return
        self._blocks.append(levels)
        self._pairs.clear()
        for name, evidence in self._evidence.items():
            if name in levels and self._baseline in levels:
                evidence.add(levels[name] - levels[self._baseline])

    @staticmethod
    def _differences(blocks: Sequence[dict[str, float]], a: str, b: str) -> list[float]:
        return [block[a] - block[b] for block in blocks if a in block and b in block]

    def forget(self, name: str) -> None:
        """A setting that failed, or that is dropped: it is in no block from here on."""
        self.live = [other for other in self.live if other != name]

    def _pair(self, name: str, leader: str) -> Interval:
        """Log ratio of a setting to the leader, at alpha / m^2; computed once a block."""
        if (name, leader) not in self._pairs:
            alpha = ALPHA / self._m**2
            rho = mixture_scale(self._differences(self._pilots, name, leader), alpha)
            blocks = np.array(self._differences(self._blocks, name, leader))
            self._pairs[name, leader] = confidence_interval(blocks, rho, alpha)
        return self._pairs[name, leader]

    def estimate(self, name: str) -> float:
        """Log ratio to the baseline."""
        evidence = self._evidence.get(name)
        return evidence.estimate if evidence else 0.0

    @property
    def leader(self) -> str:
        """The fastest live setting by its estimate."""
        return min((name for name in self.live if name != self._null), key=self.estimate, default=self._baseline)

    def standings(self) -> dict[str, Standing]:
        """Every setting's standing now, the null arm's too."""
        found = {}
        leader = self.leader
        for name in self._names:
            evidence = self._evidence.get(name)
            plateau = OPEN
            if name == leader:
                plateau = INSIDE
            elif self._blocks and name != self._null:
                pair = self._pair(name, leader)
                if pair.high < log1p(self._margin):
                    plateau = INSIDE
                elif pair.low > log1p(self._margin):
                    plateau = OUTSIDE
            said = verdict(evidence, self._margin, least=self.least, who="") if evidence else None
            found[name] = Standing(said, plateau, evidence.log_e if evidence else 0.0)
        return found

    def losers(self) -> list[str]:
        """Live settings that are worse than the leader for certain, and whose verdict stands: not worth more time."""
        leader = self.leader
        keep = {leader, self._baseline, self._null}
        result = []
        for name in self.live:
            if name in keep or not self._blocks or not self._evidence:
                continue
            if (
                self._pair(name, leader).low > 0.0
                and verdict(self._evidence[name], self._margin, least=self.least).decided
            ):
                result.append(name)
        return result

    def decided(self) -> bool:
        """Has every setting a verdict, and is everybody in or out of the plateau?"""
        if self.pilot:
            return False
        standings = self.standings()
        for name in self.settings:
            standing = standings[name]
            if name in self.live and standing.plateau == OPEN:
                return False
            if name in self.live and standing.verdict is not None and not standing.verdict.decided:
                return False
        null = standings[self._null].verdict if self._null in standings else None
        return null is None or null.decided

    def contaminated(self) -> str:
        """Why the whole sweep is not to be trusted: the null arm differs from the baseline; '' when it does not."""
        evidence = self._evidence.get(self._null)
        if evidence is None:
            return ""
        said = verdict(evidence, self._margin, least=self.least)
        if said.word in ("faster", "slower") and not said.equivalent:
            return f"the null arm, the same setting again, came out {said.word} by {abs(said.estimate_percent):.2f}%"
        return ""


def best_first(evidence: SweepEvidence) -> list[str]:
    """Settings by estimate, fastest first."""
    return sorted(evidence.settings, key=evidence.estimate)
