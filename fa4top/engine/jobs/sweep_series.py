"""One series of a sweep: its arms resident at once, their blocks, its best again in fresh processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Protocol

from fa4top.analysis.compare.sweep_evidence import Shuffle, Standing, SweepEvidence, best_first, block_levels
from fa4top.analysis.compare.sweeps import measured_point
from fa4top.analysis.compare.verdict import resolution
from fa4top.engine.host import Host
from fa4top.engine.jobs.arms import Arm, Blocks, Slices, start_arms, verify
from fa4top.engine.workers import WorkerGone
from fa4top.orders.jobs import BURST, SweepJob
from fa4top.orders.order import Order
from fa4top.records import SweepBlock, SweepPoint
from fa4top.targets.legal import bitwise_knobs, plan_record

NULL = "null arm"
REPORT_EVERY = 5
FRESH_BLOCKS = 24  # at most, after its pilot
MEASURE, FRESH = "measure", "fresh"


class Whole(Protocol):
    """The sweep that a series belongs to."""

    id: int
    comparisons: int
    contaminated: str

    @property
    def budget_s(self) -> float:
        """Of one series."""
        ...

    def state(self, word: str, text: str = "") -> None:
        """Record how far it is."""
        ...

    def put(self, point: SweepPoint) -> None:
        """Record a setting's figures."""
        ...

    def known(self, series: str, value: str) -> SweepPoint | None:
        """What was recorded of a setting."""
        ...

    def orders(self, series: str) -> dict[str, Order]:
        """By value: what launches it."""
        ...


class Series:
    """One series: its arms, their blocks, its best again."""

    def __init__(self, host: Host, job: SweepJob, sweep: Whole, series: str, baseline: str) -> None:
        self._host, self._job, self._sweep = host, job, sweep
        self._series, self._baseline = series, baseline
        self._slices = Slices(host, BURST, job.l2)
        self._shuffle = Shuffle(job.seed)
        self._arms: dict[str, Arm] = {}
        self._evidence = SweepEvidence([baseline], baseline, NULL, job.margin, 1, job.seed)
        self._dropped: set[str] = set()
        self._blocks = Blocks(host, self._slices)
        self._turn = 0

    async def run(self, found: Mapping[str, Arm | BaseException]) -> None:
        """Until every verdict stands, or the budget is spent; then the best again."""
        self._sweep.state("running", f"{self._series} measuring".strip())
        try:
            await self._admit(found)
            if self._baseline in self._arms:
                await self._measure(self._sweep.budget_s)
            await self._enough_traces()
            self._report()
        finally:
            await self._end()
        if self._job.fresh and self._baseline in self._arms and not self._sweep.contaminated:
            await self._again()

    async def _admit(self, found: Mapping[str, Arm | BaseException]) -> None:
        """Arms that compiled, and whose output is right."""
        for name, arm in found.items():
            if isinstance(arm, Arm):
                self._arms[name] = arm
            elif isinstance(arm, WorkerGone):
                self._host.append(arm.fault)
                self._failed(name, f"{arm.fault.reason}: {arm.fault.text}")
            else:
                raise arm
        base = self._arms.get(self._baseline)
        if base is not None:
            self._host.append(plan_record(base.order, base.twins.plan_id))
        await self._verify()
        if self._baseline in self._arms:
            self._compare(self._arms[self._baseline])
        names = list(self._arms)
        self._evidence = SweepEvidence(
            names, self._baseline, NULL, self._job.margin, self._sweep.comparisons, self._job.seed
        )

    async def _verify(self) -> None:
        """All at the same time; what is recorded keeps the arms' order, whoever answers first."""
        names = list(self._arms)
        found = await asyncio.gather(*(verify(self._arms[name]) for name in names), return_exceptions=True)
        for name, problem in zip(names, found, strict=True):
            if isinstance(problem, WorkerGone):
                self._gone(problem, name)
            elif isinstance(problem, BaseException):
                raise problem
            elif problem:
                self._lose(name, problem)

    def _compare(self, base: Arm) -> None:
        for name, arm in list(self._arms.items()):
            knobs = bitwise_knobs(base.order, arm.order)
            if arm.output != base.output and knobs is not None:
                why = f"the output differs from {self._baseline}'s, though {knobs} should leave it equal bit for bit"
                self._lose(name, why)

    async def _guarded(self, name: str, doing: Awaitable[object]) -> bool:
        """Await something of this arm; if a worker is lost, the arm is out and the sweep goes on."""
        try:
            await doing
        except WorkerGone as gone:
            self._gone(gone, name)
            return False
        return True

    def _gone(self, gone: WorkerGone, otherwise: str) -> None:
        self._host.append(gone.fault)
        workers = {w.name: n for n, arm in self._arms.items() for w in arm.twins.workers.values()}
        self._lose(workers.get(gone.fault.worker, otherwise), f"{gone.fault.reason}: {gone.fault.text}")

    def _lose(self, name: str, why: str) -> None:
        self._arms.pop(name, None)
        self._evidence.forget(name)
        self._failed(name, why)

    def _failed(self, name: str, why: str) -> None:
        if name == NULL:
            self._host.say("warning", f"sweep: {name} failed: {why}")
            return
        self._sweep.put(
            SweepPoint(sweep_id=self._sweep.id, plan_id=0, series=self._series, value=name, status="failed", text=why)
        )

    async def _measure(self, budget_s: float) -> None:
        try:
            await self._slices.warm_up(list(self._arms.values()))
        except WorkerGone as gone:
            self._gone(gone, "")
        began = time.monotonic()
        while not self._spent(began, budget_s) and self._baseline in self._arms:
            await self._block(MEASURE)
            for name in self._evidence.losers():
                self._dropped.add(name)
                self._evidence.forget(name)
            if why := self._evidence.contaminated():
                self._sweep.contaminated = why
                return
            if self._blocks.hopeless:
                self._sweep.contaminated = self._blocks.unmet()
                return
            if self._blocks.number % REPORT_EVERY == 0:
                self._report()
            if self._evidence.decided():
                return

    def _spent(self, began: float, budget_s: float) -> bool:
        enough = self._job.most_blocks and self._blocks.number >= self._job.most_blocks
        return bool(enough) or time.monotonic() - began >= budget_s

    async def _block(self, phase: str) -> None:
        live = [name for name in self._evidence.live if name in self._arms]
        order = self._shuffle.palindrome(live)
        try:
            block = await self._blocks.measure(order, lambda name: self._slices.slice(self._arms[name]))
        except WorkerGone as gone:
            self._gone(gone, "")
            return
        pilot = self._evidence.pilot
        if block.gate.accepted:
            self._evidence.add(block_levels(order, block.slices_us))
            self._evidence.least = resolution(self._arms[self._baseline].time_us)
            for name, burst in zip(order, block.bursts, strict=True):
                self._arms[name].keep(burst)
        else:
            self._blocks.loosen()
        self._host.append(
            SweepBlock(
                sweep_id=self._sweep.id,
                series=self._series,
                phase=phase,
                number=self._blocks.number,
                order=order,
                slices_us=block.slices_us,
                clocks_mhz=block.clocks_mhz,
                pilot=pilot,
                accepted=block.gate.accepted,
                reason=block.gate.reason,
            )
        )
        if phase == MEASURE:
            await self._trace_one(live)

    async def _trace_one(self, live: list[str]) -> None:
        """A traced launch of one or two arms after each block, in turn."""
        for _ in range(2):
            name = live[self._turn % len(live)]
            self._turn += 1
            if name in self._arms and name != NULL:
                await self._guarded(name, self._slices.trace(self._arms[name], name == self._baseline))

    async def _enough_traces(self) -> None:
        for name in [name for name in self._arms if name != NULL]:
            while name in self._arms and len(self._arms[name].samples) < self._job.rounds:
                arm = self._arms[name]
                if not arm.bursts and not await self._guarded(name, self._one_slice(arm)):
                    break
                await self._guarded(name, self._slices.trace(arm, name == self._baseline))

    async def _one_slice(self, arm: Arm) -> None:
        """For an arm that was in no block: the baseline was lost."""
        burst = await self._slices.slice(arm)
        self._slices.fit(arm, burst)
        arm.keep(await self._slices.slice(arm))

    def _report(self) -> None:
        """Every arm's point as it is now."""
        standings = self._evidence.standings()
        for name, arm in self._arms.items():
            found, standing = arm.figures(), standings.get(name)
            blank = SweepPoint(
                sweep_id=self._sweep.id, plan_id=arm.twins.plan_id, series=self._series, value=name, status="measured"
            )
            if found is None or standing is None or name == NULL:
                if name == NULL and standing is not None and standing.verdict is not None:
                    self._sweep.put(judged(replace(blank, status="null"), standing, False))
                continue
            point = measured_point(blank, found, arm.output)
            self._sweep.put(judged(point, standing, name in self._dropped))

    async def _end(self) -> None:
        await self._host.end(*(w for arm in self._arms.values() for w in arm.twins.workers.values()))

    async def _again(self) -> None:
        """The best of this series against the baseline, in fresh processes and on fresh data: the winner of many is
        overrated by the data that made it win."""
        best = [name for name in best_first(self._evidence) if name in self._arms and name != self._baseline]
        orders = self._sweep.orders(self._series)
        chosen = [self._baseline, *best[: self._job.fresh]]
        if len(chosen) < 2:
            return
        self._sweep.state("running", f"{self._series} measuring the best again in fresh processes".strip())
        fresh = FreshSeries(self._host, self._job, self._sweep, self._series, self._baseline)
        found = await start_arms(self._host, {n: replace(orders[n], seed=orders[n].seed + 1) for n in chosen})
        try:
            await fresh.run(found)
        except WorkerGone as gone:
            self._host.append(gone.fault)
            self._host.say("warning", f"sweep: the best were not measured again: {gone.fault.text}")


class FreshSeries(Series):
    """The best of a series again, in fresh processes and on fresh data; its figures go beside the first ones."""

    async def run(self, found: Mapping[str, Arm | BaseException]) -> None:
        """Measure these again."""
        try:
            await self._again_of(found)
        finally:
            await self._end()

    def _failed(self, name: str, why: str) -> None:
        self._host.say("warning", f"sweep: {name} failed in a fresh process: {why}")

    async def _again_of(self, found: Mapping[str, Arm | BaseException]) -> None:
        self._arms = {name: arm for name, arm in found.items() if isinstance(arm, Arm)}
        if self._baseline not in self._arms:
            self._host.say("warning", "sweep: the baseline failed in a fresh process; the best were not measured again")
            return
        problems = await asyncio.gather(*(verify(arm) for arm in self._arms.values()))
        for name, problem in zip(list(self._arms), problems, strict=True):
            if problem:
                self._host.say("warning", f"sweep: {name} in a fresh process: {problem}")
                del self._arms[name]
        names = list(self._arms)
        self._evidence = SweepEvidence(
            names, self._baseline, NULL, self._job.margin, len(names) - 1, self._job.seed + 1
        )
        await self._slices.warm_up(list(self._arms.values()))
        while self._blocks.number < 4 * FRESH_BLOCKS and not self._settled():
            await self._block(FRESH)
        for name, standing in self._evidence.standings().items():
            known = self._sweep.known(self._series, name)
            if known is not None and standing.verdict is not None and self._evidence.blocks:
                self._sweep.put(
                    replace(
                        known,
                        fresh_percent=standing.verdict.estimate_percent,
                        fresh_low_percent=standing.verdict.low_percent,
                        fresh_high_percent=standing.verdict.high_percent,
                        fresh_word=standing.verdict.word,
                    )
                )

    def _settled(self) -> bool:
        return self._evidence.blocks >= FRESH_BLOCKS or self._baseline not in self._arms


def judged(point: SweepPoint, standing: Standing, dropped: bool) -> SweepPoint:
    """The point with what the blocks say of it."""
    said = standing.verdict
    if said is None:
        return replace(point, plateau=standing.plateau)
    return replace(
        point,
        word=said.word,
        verdict=said.text,
        change_percent=said.estimate_percent,
        low_percent=said.low_percent,
        high_percent=said.high_percent,
        log_e=standing.log_e,
        blocks=said.blocks,
        plateau=standing.plateau,
        dropped=dropped,
    )
