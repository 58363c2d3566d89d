"""The simulated device around the pipeline: SMs, clock, power, noise. Seeded, and the same for the same commands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np

from fa4top.records import Geometry, Shape
from fa4top.targets.base import attention_flops
from fa4top.targets.sim.chips import Chip, Mode
from fa4top.targets.sim.pipeline import Job, simulate_blackwell, simulate_hopper
from fa4top.targets.sim.trace import RoleLog

KEYS_PER_STEP = 128
SLOW_SM, SLOW_FACTOR = 17, 1.15
SLOW_LOAD = 20  # times as long for K and V
DROOP_FLOOR = 1580 / 1965  # B200 under back-to-back launches: reference ab_design, section 1


def tile_steps(chip: Chip, shape: Shape) -> list[int]:
    """Steps of every tile of one head, in row order (256 rows a tile on Blackwell, 128 on Hopper)."""
    rows = 128 if chip.hopper else 256
    steps = []
    for tile in range(ceil(shape.seqlen_q / rows)):
        last = min((tile + 1) * rows, shape.seqlen_q)
        keys = shape.seqlen_k - shape.seqlen_q + last if shape.causal else shape.seqlen_k
        steps.append(max(2, ceil(keys / KEYS_PER_STEP)))
    return steps


def geometry(chip: Chip, shape: Shape) -> Geometry:
    """Persistent CTAs on Blackwell, one tile a CTA on Hopper."""
    steps = tile_steps(chip, shape)
    tiles = len(steps) * shape.batch * shape.heads
    total = sum(steps) * shape.batch * shape.heads
    persistent = not chip.hopper
    longest = ceil(total / min(tiles, chip.sm_count)) if shape.causal else ceil(tiles / chip.sm_count) * steps[0]
    return Geometry(
        grid_ctas=min(tiles, chip.sm_count) if persistent else tiles,
        sm_count=chip.sm_count,
        ctas_per_sm=1,
        tiles=tiles,
        steps_per_tile=round(total / tiles),
        steps_longest=longest,
        persistent=persistent,
        flops=attention_flops(shape),
    )


@dataclass
class Clock:
    """SM clock with a droop that grows with busy time and heals with rest. Times in simulated seconds."""

    chip: Chip
    droops: bool
    heat: float = 0.0

    def mhz(self) -> float:
        """The present clock."""
        floor = self.chip.clock_mhz * DROOP_FLOOR
        return self.chip.clock_mhz - (self.chip.clock_mhz - floor) * min(1.0, self.heat) * self.droops

    def run(self, busy_s: float) -> None:
        """A launch heats; full droop after about 100 ms of work."""
        self.heat = min(1.5, self.heat + busy_s * 10.0)

    def rest(self, idle_s: float) -> None:
        """A pause cools."""
        self.heat = max(0.0, self.heat - idle_s * 0.5)


class Device:
    """Runs launches of one setting."""

    def __init__(
        self, chip: Chip, mode: Mode, shape: Shape, split: Fraction, seed: int, faults: frozenset[str]
    ) -> None:
        if "slow-load" in faults:
            slow = replace(chip.common, kv_bytes_cycles=chip.common.kv_bytes_cycles * SLOW_LOAD)
            chip = replace(chip, common=slow)
        self.chip = chip
        self.mode = mode
        self.shape = shape
        self.geometry = geometry(chip, shape)
        self.clock = Clock(chip, "droop" in faults)
        self._split = split
        self._faults = faults
        self._random = np.random.default_rng(seed)
        self._simulate = simulate_hopper if chip.hopper else simulate_blackwell
        self._quiet: dict[float, float] = {}

    def _tiles_of(self, cta: int) -> tuple[int, ...]:
        """Steps of a CTA's tiles: persistent CTAs take every grid_ctas-th tile, long ones of a causal head first."""
        steps = tile_steps(self.chip, self.shape)
        if self.shape.causal:
            steps = steps[::-1]
        if not self.geometry.persistent:
            return (steps[cta % len(steps)],)
        return tuple(steps[t % len(steps)] for t in range(cta, self.geometry.tiles, self.geometry.grid_ctas))

    def _kernel_cycles(self, slowdown: float) -> float:
        """Noise-free cycles of the busiest SM."""
        if slowdown not in self._quiet:
            if self.geometry.persistent:
                tiles = self._tiles_of(0)
                if self.shape.causal:  # an even share: the scheduler balances causal tiles
                    share = self.geometry.steps_longest / max(1, sum(tiles))
                    cycles, _ = self._simulate(self.chip, self.mode, self._job(tiles, slowdown), _one, False)
                    self._quiet[slowdown] = cycles * share
                else:
                    self._quiet[slowdown], _ = self._simulate(
                        self.chip, self.mode, self._job(tiles, slowdown), _one, False
                    )
            else:
                cycles, _ = self._simulate(
                    self.chip, self.mode, self._job((self.geometry.steps_per_tile,), slowdown), _one, False
                )
                waves = self.geometry.tiles / self.geometry.sm_count
                self._quiet[slowdown] = cycles * (waves if self.shape.causal else ceil(waves))
        cycles = self._quiet[slowdown]
        return cycles * SLOW_FACTOR if "slow-sm" in self._faults else cycles

    def _job(self, tiles: tuple[int, ...], slowdown: float) -> Job:
        return Job(tiles, self._split, slowdown)

    def launch_us(self, slowdown: float = 1.0) -> tuple[float, float]:
        """(time in microseconds, SM clock in MHz) of one launch."""
        mhz = self.clock.mhz()
        scale = 10.0 if "noise" in self._faults else 1.0
        noise = float(np.exp(self._random.normal(0.0, self.chip.common.launch_noise * scale)))
        time_us = self._kernel_cycles(slowdown) / mhz * noise + self.chip.common.launch_us
        self.clock.run(time_us / 1e6)
        return time_us, mhz

    def trace(self, cta: int, slowdown: float, hang_at: int | None = None) -> tuple[dict[str, RoleLog], int]:
        """The recording CTA's logs, and the SM that it ran on."""
        scale = 10.0 if "noise" in self._faults else 1.0
        sd = self.chip.common.step_noise * scale
        draws = np.exp(self._random.normal(0.0, sd, 4096))
        sm = cta % self.chip.sm_count if self.geometry.persistent else int(self._random.integers(self.chip.sm_count))
        if "slow-sm" in self._faults and sm == SLOW_SM:
            slowdown *= SLOW_FACTOR * 1.1
        position = 0

        def noise() -> float:
            nonlocal position
            position = (position + 1) & 4095
            return float(draws[position])

        job = replace(self._job(self._tiles_of(cta), slowdown), stop_after_steps=hang_at)
        _, logs = self._simulate(self.chip, self.mode, job, noise, True)
        return logs, sm


def _one() -> float:
    return 1.0
