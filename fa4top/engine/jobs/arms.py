"""Settings side by side: their resident twins, and slices of theirs that can be compared. For A/B and sweeps."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from fa4top.analysis.compare.blocks import MOST_REJECTED, Gate, gate, moved
from fa4top.analysis.compare.sweeps import Figures, figures
from fa4top.engine.host import Host
from fa4top.engine.pace import burst_launches
from fa4top.engine.twins import CLEAN, FIRST_LAUNCHES, Twins
from fa4top.orders.commands import PRIMERS
from fa4top.orders.jobs import COLD, SUSTAINED, WARM
from fa4top.orders.order import Order
from fa4top.records import AbArm, CleanBurst, TraceSample

WARM_UP_S, WARM_SLICES, WARM_SPREAD = 5.0, 3, 0.01
SUSTAINED_WARM_UP_S = 15.0
LEAST_GAP_S, MOST_GAP_S = 0.004, 0.16
SETTLE_US, TIMED_US = 100_000.0, 150_000.0  # of a sustained slice: power settles in tens of milliseconds
LOOSEN_AFTER, LOOSEN_SHARE = 10, 0.2  # above this share of rejected blocks the slices rest longer
LEAST_FOR_HOPELESS = 10
KEPT = 64


@dataclass
class Arm:
    """One setting: its twins, and what was measured of it."""

    name: str
    twins: Twins
    launches: int = FIRST_LAUNCHES
    primers: int = PRIMERS
    rejected: int = 0
    output_text: str = ""
    bursts: list[CleanBurst] = field(default_factory=list)
    samples: list[TraceSample] = field(default_factory=list)

    @property
    def order(self) -> Order:
        """What launches it."""
        return self.twins.order

    @property
    def output(self) -> str:
        """Hash of its checked output; '' before the check."""
        return self.twins.checks[CLEAN].output_hash if CLEAN in self.twins.checks else ""

    @property
    def rms_error(self) -> float:
        """Of its checked output, against FP32."""
        return self.twins.checks[CLEAN].rms_error if CLEAN in self.twins.checks else 0.0

    def keep(self, burst: CleanBurst) -> None:
        """A slice of a block that counts."""
        self.bursts = [*self.bursts[-KEPT:], burst]

    @property
    def time_us(self) -> float | None:
        """Median launch of the last slice that counted."""
        return statistics.median(self.bursts[-1].times_us) if self.bursts else None

    def figures(self) -> Figures | None:
        """What was measured so far; None while there is nothing."""
        state = self.twins.clean.state
        if not self.bursts or not self.samples or state is None or state.geometry is None:
            return None
        return figures(self.bursts, self.samples, state.geometry, state.roles)


async def start_arm(host: Host, name: str, order: Order) -> Arm:
    """Both twins compiled. Nothing has run on the GPU yet.

    Raises:
        WorkerGone: one of them could not.
    """
    twins = Twins(order, host.next_plan_id())
    await twins.start(host)
    return Arm(name, twins)


async def start_arms(host: Host, orders: Mapping[str, Order]) -> dict[str, Arm | BaseException]:
    """Many arms, as many at a time as the host has cores for; one that fails does not stop the others."""
    slots = asyncio.Semaphore(max(1, (os.cpu_count() or 2) // 2))

    async def one(name: str, order: Order) -> Arm:
        async with slots:
            return await start_arm(host, name, order)

    found = await asyncio.gather(*(one(name, order) for name, order in orders.items()), return_exceptions=True)
    return dict(zip(orders, found, strict=True))


async def verify(arm: Arm) -> str:
    """Check both twins, at the same time: nothing is timed here. Why the arm may not be measured, '' when it may.

    Raises:
        WorkerGone: one did not answer.
    """
    return await arm.twins.verify(side_by_side=True)


def arm_record(ab_id: int, arm: Arm, power_w: Sequence[float]) -> AbArm | None:
    """What an A/B's arm is now; None while nothing is known."""
    found = arm.figures()
    if found is None:
        return None
    clocks = [burst.sm_clock_mhz for burst in arm.bursts if burst.sm_clock_mhz]
    return AbArm(
        ab_id=ab_id,
        arm=arm.name,
        knobs=arm.order.knobs,
        time_us=found.time_us,
        tflops=found.tflops,
        period_cycles=found.period_cycles,
        period_p95_cycles=found.period_p95_cycles,
        waits_cycles=found.waits_cycles,
        step_cycles=found.step_cycles,
        sm_clock_mhz=statistics.median(clocks) if clocks else found.sm_clock_mhz,
        probe_effect=found.probe_effect,
        output=arm.output,
        output_text=arm.output_text,
        rejected=arm.rejected,
        power_w=statistics.median(power_w) if power_w else None,
    )


class Slices:
    """Makes slices: bursts of at most 5 ms with a rest after each, or long ones at power equilibrium."""

    def __init__(self, host: Host, mode: str, l2: str) -> None:
        self._host = host
        self.sustained = mode == SUSTAINED
        self._l2 = l2
        self.gap_s = LEAST_GAP_S

    async def slice(self, arm: Arm, l2: str = "") -> CleanBurst:
        """One slice of an arm, then the rest."""
        await self._host.unpaused()
        burst = await arm.twins.burst(arm.launches, l2 or self._l2, arm.primers)
        if not self.sustained:
            await asyncio.sleep(self.gap_s)
        return burst

    def fit(self, arm: Arm, burst: CleanBurst) -> None:
        """Set the slice's length from a burst's times."""
        median_us = statistics.median(burst.times_us)
        if self.sustained:
            arm.primers, arm.launches = ceil(SETTLE_US / median_us), ceil(TIMED_US / median_us)
            return
        arm.launches = burst_launches(median_us)
        self.gap_s = max(self.gap_s, median_us * 1e-6)

    async def warm_up(self, arms: Sequence[Arm]) -> None:
        """Full-size slices of all arms until each one's SM clock holds still, as far as it is known, and the rest is
        long enough that NVML's counters of clocks held back do not move."""
        end = time.monotonic() + (SUSTAINED_WARM_UP_S if self.sustained else WARM_UP_S)
        clocks: dict[str, list[float]] = {arm.name: [] for arm in arms}
        before = self._host.held_back()
        while True:
            for arm in arms:
                burst = await self.slice(arm)
                self.fit(arm, burst)
                if burst.sm_clock_mhz:
                    clocks[arm.name].append(burst.sm_clock_mhz)
            now = self._host.held_back()
            held, before = moved(before, now), now
            still = all(holds_still(own) for own in clocks.values())
            if self.sustained:
                held = []
            if still and not held:
                return
            if held:
                self.rest_longer()
            if time.monotonic() > end:
                why = f"the clock is held back ({', '.join(held)})" if held else "the SM clock does not hold still"
                self._host.say("warning", f"{why}, also with {self.gap_s * 1e3:.0f} ms of rest between slices")
                return

    def rest_longer(self) -> bool:
        """Twice the rest between slices, up to a limit; was there still room?"""
        if self.sustained or self.gap_s >= MOST_GAP_S:
            return False
        self.gap_s = min(MOST_GAP_S, 2.0 * self.gap_s)
        return True

    async def l2_gap(self, arm: Arm) -> float:
        """How much slower a launch with a cold L2 is than one with a warm one, percent: shows that flushing works."""
        cold, warm = [await self.slice(arm, l2) for l2 in (COLD, WARM)]
        return 100.0 * (statistics.median(cold.times_us) / statistics.median(warm.times_us) - 1.0)

    async def trace(self, arm: Arm, timeline: bool) -> None:
        """One traced launch, outside the blocks."""
        sample = await arm.twins.trace(timeline)
        arm.samples = [*arm.samples[-KEPT:], sample]
        if not self.sustained:
            await asyncio.sleep(self.gap_s)


@dataclass(frozen=True)
class Block:
    """One block's slices in their order, and whether it counts."""

    order: Sequence[str]
    bursts: list[CleanBurst]
    gate: Gate

    @property
    def slices_us(self) -> list[list[float]]:
        """Times of every launch, slice by slice."""
        return [burst.times_us for burst in self.bursts]

    @property
    def clocks_mhz(self) -> list[float | None]:
        """SM clock of every slice, where it is known."""
        return [burst.sm_clock_mhz for burst in self.bursts]


class Blocks:
    """Measures blocks and counts those that do not count; when too many do not, the slices rest longer."""

    def __init__(self, host: Host, slices: Slices) -> None:
        self._host, self._slices = host, slices
        self.number = self.rejected = self._loosened = 0

    async def measure(self, order: Sequence[str], one: Callable[[str], Awaitable[CleanBurst]]) -> Block:
        """One block; ``one`` makes a slice of the named arm."""
        before = self._host.held_back()
        bursts = [await one(name) for name in order]
        reading = self._host.gpu_now()
        self.number += 1
        throttle = [*reading.throttle, *moved(before, reading.held_back)] if reading else []
        foreign = reading.foreign_pids if reading else []
        clocks = [burst.sm_clock_mhz for burst in bursts]
        passed = gate(order, clocks, list(dict.fromkeys(throttle)), foreign, self._slices.sustained)
        self.rejected += not passed.accepted
        return Block(order, bursts, passed)

    def loosen(self) -> bool:
        """After a rejected block: rest longer if there are many; was that done?"""
        many = self.number - self._loosened >= LOOSEN_AFTER and self.rejected > LOOSEN_SHARE * self.number
        if not many or not self._slices.rest_longer():
            return False
        self._loosened = self.number
        return True

    def unmet(self) -> str:
        """In words, how many do not count."""
        return f"the gate can not be met: {self.rejected} of {self.number} blocks rejected"

    @property
    def hopeless(self) -> bool:
        """Do most blocks not count?"""
        return self.number >= LEAST_FOR_HOPELESS and self.rejected > MOST_REJECTED * self.number


def holds_still(clocks_mhz: Sequence[float]) -> bool:
    """Are the last clocks within one percent of one another? True where none is known."""
    last = clocks_mhz[-WARM_SLICES:]
    return not last or (len(last) == WARM_SLICES and max(last) <= (1.0 + WARM_SPREAD) * min(last))
