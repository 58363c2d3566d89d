"""The sweep job: all values of a series resident at once, compared in blocks; then the best again in fresh
processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, replace

from fa4top.analysis.ab_verdict import resolution
from fa4top.analysis.evidence import ALPHA
from fa4top.analysis.sweep_evidence import Shuffle, Standing, SweepEvidence, best_first, block_levels
from fa4top.analysis.sweeps import sweep_verdict
from fa4top.engine.arms import BURST, Arm, Blocks, Slices, bitwise_knobs, start_arms, verify
from fa4top.engine.jobs import JobHost, SweepJob, changed_order
from fa4top.engine.order import Order
from fa4top.engine.tasks import end_task
from fa4top.engine.workers import WorkerGone
from fa4top.records import SweepBlock, SweepPoint, SweepState

NULL = "null arm"
REPORT_EVERY = 5
FRESH_BLOCKS = 24  # at most, after its pilot
MEASURE, FRESH = "measure", "fresh"


@dataclass(frozen=True)
class Setting:
    """One place of the sweep, with the order that launches it."""

    series: str
    value: str
    order: Order
    problem: str | None


def settings_of(order: Order, job: SweepJob) -> list[Setting]:
    """All settings in the order of running, each with why it can not be launched, if so."""
    result = []
    for series in job.series or [""]:
        for value in job.values:
            changes = {job.knob: value, **({job.series_knob: series} if job.series_knob else {})}
            changed, problems = changed_order(order, changes)
            result.append(Setting(series, value, changed, "; ".join(problems) or None))
    return result


def with_present_value(order: Order, job: SweepJob) -> SweepJob:
    """The job with the knob's present value among those swept: it is what the others are compared with."""
    present = order.knobs.get(job.knob)
    if present is None or present in job.values:
        return job
    return replace(job, values=[present, *job.values])


def baselines_of(order: Order, settings: Iterable[Setting], knob: str) -> dict[str, str]:
    """By series: the value that the others are compared with, the present one where it can run, else the first."""
    found: dict[str, str] = {}
    for setting in settings:
        if setting.problem is None and (setting.series not in found or setting.value == order.knobs.get(knob)):
            found[setting.series] = setting.value
    return found


async def run_sweep(host: JobHost, job: SweepJob) -> None:
    """Until the last series is measured. A setting that fails is recorded as failed; the sweep goes on."""
    sweep = _Sweep(host, with_present_value(host.order, job))
    try:
        await sweep.run()
    except asyncio.CancelledError:
        sweep.state("stopped", "cut short. So far: " + (sweep.sentence() or "nothing"))
        raise


class _Sweep:
    def __init__(self, host: JobHost, job: SweepJob) -> None:
        self._host, self._job = host, job
        self._settings = settings_of(host.order, job)
        self._todo = [setting for setting in self._settings if setting.problem is None]
        self._baselines = baselines_of(host.order, self._settings, job.knob)
        self.comparisons = max(1, len(self._todo) - len(self._baselines))
        self.id = host.next_plan_id()
        self._points: dict[tuple[str, str], SweepPoint] = {}
        self.contaminated = ""

    def state(self, word: str, text: str = "") -> None:
        order, job = self._host.order, self._job
        refused = {f"{s.series}/{s.value}": s.problem for s in self._settings if s.problem}
        self._host.append(
            SweepState(
                self.id,
                order.target,
                order.gpu_name,
                order.arch,
                order.shape,
                order.knobs,
                job.knob,
                job.values,
                job.series_knob,
                job.series or [""],
                word,
                refused,
                text,
                job.margin,
                ALPHA,
                self.comparisons,
                self._baselines,
                self.contaminated,
                order.unsafe,
            )
        )

    def sentence(self) -> str:
        text = sweep_verdict(self._job.knob, list(self._points.values()), self._baselines, self._job.margin)
        return (
            f"CONTAMINATED: {self.contaminated}; nothing of this may be believed. {text}" if self.contaminated else text
        )

    def put(self, point: SweepPoint) -> None:
        if point.status != "null":
            self._points[point.series, point.value] = point
        self._host.append(point)

    async def run(self) -> None:
        self.state("running", "compiling")
        for setting in self._settings:
            if setting.problem:
                self.put(SweepPoint(self.id, 0, setting.series, setting.value, "refused", setting.problem))
        ahead: asyncio.Task[dict[str, Arm | BaseException]] | None = None
        try:
            names = list(self._baselines)
            for index, series in enumerate(names):
                starting = ahead or self._start(series)
                ahead = None
                arms = await starting
                if index + 1 < len(names):
                    ahead = self._start(names[index + 1])
                await _Series(self._host, self._job, self, series, self._baselines[series]).run(arms)
        finally:
            if ahead is not None:
                await end_task(ahead)
        self.state("done", self.sentence())

    def _start(self, series: str) -> asyncio.Task[dict[str, Arm | BaseException]]:
        orders = self.orders(series)
        return asyncio.create_task(start_arms(self._host, {**orders, NULL: orders[self._baselines[series]]}))

    def orders(self, series: str) -> dict[str, Order]:
        """By value: what launches it."""
        return {setting.value: setting.order for setting in self._todo if setting.series == series}

    def known(self, series: str, value: str) -> SweepPoint | None:
        return self._points.get((series, value))

    @property
    def budget_s(self) -> float:
        """Of one series."""
        return self._job.budget_s / max(1, len(self._baselines))


class _Series:
    """One series: its arms, their blocks, its best again."""

    def __init__(self, host: JobHost, job: SweepJob, sweep: _Sweep, series: str, baseline: str) -> None:
        self._host, self._job, self._sweep = host, job, sweep
        self._series, self._baseline = series, baseline
        self._slices = Slices(host, BURST, job.l2)
        self._shuffle = Shuffle(job.seed)
        self._arms: dict[str, Arm] = {}
        self._evidence = SweepEvidence([baseline], baseline, NULL, job.margin, 1, job.seed)
        self._dropped: set[str] = set()
        self._fresh = False
        self._blocks = Blocks(host, self._slices)
        self._turn = 0

    async def run(self, found: Mapping[str, Arm | BaseException]) -> None:
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
            self._host.append(base.order.plan(base.plan_id))
        await asyncio.gather(*(self._guarded(name, self._verify(name)) for name in list(self._arms)))
        if self._baseline in self._arms:
            self._compare(self._arms[self._baseline])
        names = list(self._arms)
        self._evidence = SweepEvidence(
            names, self._baseline, NULL, self._job.margin, self._sweep.comparisons, self._job.seed
        )

    async def _verify(self, name: str) -> None:
        if problem := await verify(self._arms[name]):
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
        workers = {w.name: n for n, arm in self._arms.items() for w in (arm.clean, arm.traced)}
        self._lose(workers.get(gone.fault.worker, otherwise), f"{gone.fault.reason}: {gone.fault.text}")

    def _lose(self, name: str, why: str) -> None:
        self._arms.pop(name, None)
        self._evidence.forget(name)
        self._failed(name, why)

    def _failed(self, name: str, why: str) -> None:
        if name == NULL or self._fresh:
            self._host.say("warning", f"sweep: {name} failed{' in a fresh process' * self._fresh}: {why}")
            return
        self._sweep.put(SweepPoint(self._sweep.id, 0, self._series, name, "failed", why))

    async def _measure(self, budget_s: float) -> None:
        try:
            await self._slices.warm_up(list(self._arms.values()))
        except WorkerGone as gone:
            self._gone(gone, "")
        began = time.monotonic()
        while time.monotonic() - began < budget_s and self._baseline in self._arms:
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
                self._sweep.id,
                self._series,
                phase,
                self._blocks.number,
                order,
                block.slices_us,
                block.clocks_mhz,
                pilot,
                block.gate.accepted,
                block.gate.reason,
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
            point = arm.point(self._sweep.id, self._series, name)
            standing = standings.get(name)
            if point is None or standing is None:
                if name == NULL and standing is not None and standing.verdict is not None:
                    blank = SweepPoint(self._sweep.id, arm.plan_id, self._series, NULL, "null")
                    self._sweep.put(judged(blank, standing, False))
                continue
            self._sweep.put(judged(point, standing, name in self._dropped))

    async def _end(self) -> None:
        await asyncio.gather(
            *(self._host.end_worker(w) for arm in self._arms.values() for w in (arm.clean, arm.traced))
        )

    async def _again(self) -> None:
        """The best of this series against the baseline, in fresh processes and on fresh data: the winner of many is
        overrated by the data that made it win."""
        best = [name for name in best_first(self._evidence) if name in self._arms and name != self._baseline]
        orders = self._sweep.orders(self._series)
        chosen = [self._baseline, *best[: self._job.fresh]]
        if len(chosen) < 2:
            return
        self._sweep.state("running", f"{self._series} measuring the best again in fresh processes".strip())
        fresh = _Series(self._host, self._job, self._sweep, self._series, self._baseline)
        found = await start_arms(self._host, {n: replace(orders[n], seed=orders[n].seed + 1) for n in chosen})
        try:
            await fresh.take_fresh(found)
        except WorkerGone as gone:
            self._host.append(gone.fault)
            self._host.say("warning", f"sweep: the best were not measured again: {gone.fault.text}")
        finally:
            await fresh._end()

    async def take_fresh(self, found: Mapping[str, Arm | BaseException]) -> None:
        """Measure these again and put their figures beside the first ones."""
        self._fresh = True
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
