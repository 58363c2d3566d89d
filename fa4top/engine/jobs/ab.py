"""The A/B job: two resident pairs of workers, blocks in an order that a coin chooses, a verdict at any time."""

from __future__ import annotations

import asyncio
import statistics
import time

from fa4top.analysis.compare.blocks import Coin, block_ratio, unfair_gate
from fa4top.analysis.compare.evidence import ALPHA, PILOTS, Evidence, mixture_scale
from fa4top.analysis.compare.verdict import INVALID, Verdict, resolution, verdict
from fa4top.engine.host import Host, JobFailed
from fa4top.engine.jobs.arms import Arm, Blocks, Slices, arm_record, start_arm, verify
from fa4top.engine.tasks import end_task
from fa4top.engine.workers import WorkerGone
from fa4top.orders.jobs import AbJob
from fa4top.orders.order import Order
from fa4top.records import AbBlock, AbPair, AbState, CleanBurst
from fa4top.targets.legal import bitwise_knobs, changed_order, plan_record

TRACE_EVERY = 2
REPORT_EVERY = 4
PAIR_BLOCKS = 5  # of a pair of processes in tier 2


def arm_orders(order: Order, job: AbJob) -> tuple[dict[str, Order], list[str]]:
    """The orders of both arms, and what is wrong with them."""
    orders, problems = {}, []
    for name, changes in (("A", job.a), ("B", job.b)):
        orders[name], wrong = changed_order(order, changes)
        problems += [f"arm {name}: {text}" for text in wrong]
    return orders, problems


def ab_problems(order: Order, job: AbJob) -> list[str]:
    """Why these arms can not be compared."""
    return arm_orders(order, job)[1]


async def run_ab(host: Host, job: AbJob) -> None:
    """Until the verdict is decided (or, when watched, until the budget is spent).

    Raises:
        JobFailed: an arm can not be launched, or its worker is gone.
    """
    orders, problems = arm_orders(host.order, job)
    if problems:
        raise JobFailed("; ".join(problems))
    run = _Run(host, job, orders)
    try:
        await (run.replicate() if job.tier == 2 else run.run())
    except asyncio.CancelledError:
        run.state("stopped", "cut short")
        raise
    except WorkerGone as gone:
        host.append(gone.fault)
        run.state("failed", f"{gone.fault.worker}: {gone.fault.reason}: {gone.fault.text}")
        raise JobFailed(f"A/B: {gone.fault.reason}: {gone.fault.text}. {gone.fault.hint}") from gone


class _Run:
    def __init__(self, host: Host, job: AbJob, orders: dict[str, Order]) -> None:
        self._host, self._job, self._orders = host, job, orders
        self._id = host.next_plan_id()
        self._coin = Coin(job.seed)
        self._arms: dict[str, Arm] = {}
        self._slices = Slices(host, job.mode, job.l2)
        self._evidence: Evidence | None = None
        self._pilots: list[float] = []
        self._l2_gap: dict[str, float] = {}
        self._power: dict[str, list[float]] = {}
        self._blocks = Blocks(host, self._slices)
        self._tripped: list[str] = []
        self._invalid = ""
        self._seconds_per_block = 0.0
        self._last_verdict: Verdict | None = None

    def state(self, word: str, text: str = "", found: Verdict | None = None) -> None:
        order, job = self._host.order, self._job
        self._host.append(
            AbState(
                ab_id=self._id,
                target=order.target,
                device=order.gpu_name,
                arch=order.arch,
                shape=order.shape,
                a=self._orders["A"].knobs,
                b=self._orders["B"].knobs,
                margin=job.margin,
                alpha=ALPHA,
                mode=job.mode,
                tier=job.tier,
                seed=job.seed,
                state=word,
                text=text,
                rho=mixture_scale(self._pilots) if len(self._pilots) == PILOTS else None,
                word=found.word if found else "",
                l2=job.l2,
                l2_gap_percent=self._l2_gap,
                unsafe=order.unsafe,
                equivalent=found.equivalent if found else False,
            )
        )

    async def run(self) -> None:
        await self._ready()
        self.state("running")
        began = time.monotonic()
        found: Verdict | None = None
        while not self._invalid and not self._spent(began):
            await self._measure_block(began)
            found = self._last_verdict
            if found is not None and (found.word == INVALID or (found.decided and self._job.until_decided)):
                break
        if not self._invalid:
            await self._check_again()
        found = self._verdict()
        self._report()
        text = found.text
        if not found.decided and found.word != INVALID and self._spent(began):
            text += f" (budget of {self._budget()} spent)"
        self.state("done", text, found)

    def _spent(self, began: float) -> bool:
        """Is the budget of blocks or of time used up?"""
        if self._job.most_blocks and self._blocks.number >= self._job.most_blocks:
            return True
        return time.monotonic() - began >= self._job.seconds

    def _budget(self) -> str:
        enough = self._job.most_blocks and self._blocks.number >= self._job.most_blocks
        return f"{self._job.most_blocks} blocks" if enough else f"{self._job.seconds:g} s"

    async def replicate(self) -> None:
        """Tier 2: fresh pairs of processes, a pair's mean as the unit; the first sets the scale and is discarded."""
        pairs: Evidence | None = None
        found: Verdict | None = None
        spent = False
        began = time.monotonic()
        for number in range(1, self._job.pairs + 1):
            await self._ready()
            if number == 1:
                self.state("running")
            ratios = await self._pair_blocks(began) if not self._invalid else [0.0]
            if not self._invalid:
                await self._check_again()
            self._report()
            for arm in self._arms.values():
                await self._host.end(*arm.twins.workers.values())
            mean = statistics.fmean(ratios)
            known = pairs
            if pairs is None:
                self._pilots = ratios[:PILOTS]
                pairs = Evidence(mixture_scale(self._pilots), ALPHA, self._job.seed)
            else:
                pairs.add(mean)
            seconds = (time.monotonic() - began) / number
            found = verdict(pairs, self._job.margin, seconds, self._invalid or unfair_gate(self._tripped), "pairs")
            self._host.append(
                AbPair(
                    ab_id=self._id,
                    number=number,
                    log_ratio=mean,
                    blocks=len(ratios),
                    estimate=known.estimate if known else None,
                    low=known.interval.low if known else None,
                    high=known.interval.high if known else None,
                    log_e=known.log_e if known else None,
                    word=found.word if known else "",
                    text=found.text if known else "pilot pair: sets the scale",
                )
            )
            spent = self._spent(began)
            if found.word == INVALID or spent or (found.decided and self._job.until_decided):
                break
        assert found is not None
        text = found.text
        if not found.decided and found.word != INVALID:
            text += f" (budget of {self._budget() if spent else f'{self._job.pairs} pairs'} spent)"
        self.state("done", text, found)

    async def _pair_blocks(self, began: float) -> list[float]:
        """Ratios of the blocks of this pair that the gate lets through."""
        ratios: list[float] = []
        for _ in range(3 * PAIR_BLOCKS):
            ratio = await self._measure_block(began, pair=True)
            if ratio is not None:
                ratios.append(ratio)
            if len(ratios) == PAIR_BLOCKS:
                return ratios
        self._invalid = self._invalid or self._blocks.unmet()
        return ratios or [0.0]

    async def _ready(self) -> None:
        """Both arms compiled, checked and warm. In tier 1 the live plan's twins serve as arm A, and go on while B
        compiles."""
        host, job = self._host, self._job
        resident = host.resident(self._orders["A"]) if job.tier == 1 else None
        self.state("starting", "compiling B; A goes on" if resident else "compiling both arms")
        starting = {
            name: asyncio.create_task(start_arm(host, name, order))
            for name, order in self._orders.items()
            if name == "B" or resident is None
        }
        try:
            while resident is not None and not starting["B"].done():
                await host.live_round()
            for name, task in starting.items():
                self._arms[name] = await task
        finally:
            for task in starting.values():
                await end_task(task)
        if resident is not None:
            self._arms["A"] = Arm("A", resident)
        else:
            a = self._arms["A"]
            host.append(plan_record(a.order, a.twins.plan_id))
            await self._verify(a)
        self.state("starting", "checking B")
        await self._verify(self._arms["B"])
        self._compare()
        if self._invalid:
            return
        self.state("starting", "warming up")
        # whoever comes first in the warm-up must not be the same arm in every run
        both = sorted(self._arms.values(), key=lambda arm: arm.name, reverse=self._coin.heads())
        await self._slices.warm_up(both)
        if not self._l2_gap and not host.order.simulated:
            self._l2_gap = {arm.name: await self._slices.l2_gap(arm) for arm in both}

    async def _verify(self, arm: Arm) -> None:
        problem = await verify(arm)
        if problem:
            self._invalid = self._invalid or f"arm {arm.name}: {problem}"

    def _compare(self) -> None:
        a, b = self._arms["A"], self._arms["B"]
        a.output_text = f"baseline, error {a.rms_error:.1e}"
        b.output_text = "bitwise equal to A" if a.output == b.output else f"differs from A, error {b.rms_error:.1e}"
        names = bitwise_knobs(a.order, b.order)
        if a.output != b.output and names is not None and not self._invalid:
            self._invalid = f"outputs differ, though {names} should leave them equal bit for bit"

    async def _check_again(self) -> None:
        for arm in self._arms.values():
            before = arm.output
            await arm.twins.check(arm.twins.clean)
            if arm.output != before and not self._invalid:
                self._invalid = f"the output of arm {arm.name} changed during the run: a flake"

    async def _measure_block(self, began: float, pair: bool = False) -> float | None:
        """One block, recorded; its ratio when it counts. In a pair of tier 2 a block alone is no evidence."""
        order = self._coin.block_order()
        block = await self._blocks.measure(order, self._slice)
        number, passed = self._blocks.number, block.gate
        ratio, ratio_cycles = block_ratio(order, block.slices_us, block.clocks_mhz)
        pilot = self._evidence is None and not pair
        if passed.accepted:
            if not pair:
                self._take(ratio)
            for name, burst in zip(order, block.bursts, strict=True):
                self._arms[name].keep(burst)
        else:
            self._reject(passed.tripped)
        self._seconds_per_block = (time.monotonic() - began) / number
        known = None if pilot else self._evidence
        verdict_now = self._verdict()
        # before the pilot is over nothing is known, but that nothing will be known may be
        found = verdict_now if known or verdict_now.word == INVALID else None
        self._host.append(
            AbBlock(
                ab_id=self._id,
                number=number,
                order=order,
                slices_us=block.slices_us,
                clocks_mhz=block.clocks_mhz,
                log_ratio=ratio,
                log_ratio_cycles=ratio_cycles,
                pilot=pilot,
                accepted=passed.accepted,
                reason=passed.reason,
                tripped=passed.tripped,
                estimate=known.estimate if known else None,
                low=known.interval.low if known else None,
                high=known.interval.high if known else None,
                log_e=known.log_e if known else None,
                word=found.word if found else "",
                text=found.text if found else "",
            )
        )
        if number % TRACE_EVERY == 1:
            await self._trace()
        if number % REPORT_EVERY == 1:
            self._report()
        self._last_verdict = found
        return ratio if passed.accepted else None

    async def _slice(self, name: str) -> CleanBurst:
        """One slice; a sustained one is long enough for NVML's power to be its own."""
        burst = await self._slices.slice(self._arms[name])
        if self._slices.sustained and (reading := self._host.gpu_now()) is not None and reading.power_w is not None:
            self._power.setdefault(name, []).append(reading.power_w)
        return burst

    def _reject(self, tripped: str) -> None:
        """A block that does not count."""
        self._tripped.append(tripped)
        for arm in self._arms.values():
            arm.rejected += arm.name == tripped
        if self._blocks.loosen():
            self._host.say(
                "info",
                f"A/B: {self._blocks.rejected} of {self._blocks.number} blocks rejected; slices rest "
                f"{self._slices.gap_s * 1e3:.0f} ms from here on",
            )

    def _take(self, ratio: float) -> None:
        """Pilot blocks set the scale and are discarded; the others are evidence."""
        if self._evidence is not None:
            self._evidence.add(ratio)
            return
        self._pilots.append(ratio)
        if len(self._pilots) == PILOTS:
            self._evidence = Evidence(mixture_scale(self._pilots), ALPHA, self._job.seed)

    def _verdict(self) -> Verdict:
        invalid = self._invalid or unfair_gate(self._tripped)
        if not invalid and self._blocks.hopeless:
            invalid = self._blocks.unmet()
        evidence = self._evidence or Evidence(1.0)
        least = resolution(self._arms["A"].time_us) if self._arms else 0.0
        return verdict(evidence, self._job.margin, self._seconds_per_block, invalid, least=least)

    async def _trace(self) -> None:
        """One traced launch an arm, outside the blocks; the coin decides who goes first."""
        for name in sorted(self._arms, reverse=self._coin.heads()):
            await self._slices.trace(self._arms[name], name == "A")

    def _report(self) -> None:
        for arm in self._arms.values():
            if (record := arm_record(self._id, arm, self._power.get(arm.name, []))) is not None:
                self._host.append(record)
