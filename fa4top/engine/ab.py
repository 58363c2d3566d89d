"""The A/B job: two resident pairs of workers, blocks in an order that a coin chooses, a verdict at any time."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass, field

from fa4top.analysis.ab_blocks import MOST_REJECTED, Coin, block_ratio, gate, unfair_gate
from fa4top.analysis.ab_verdict import INVALID, Verdict, verdict
from fa4top.analysis.evidence import ALPHA, Evidence, mixture_scale
from fa4top.analysis.sweeps import measured_point
from fa4top.engine.bench import JobFailed
from fa4top.engine.jobs import AbJob, JobHost, changed_order
from fa4top.engine.order import Order
from fa4top.engine.pace import BURST_DEADLINE_S, CHECK_DEADLINE_S, COMPILE_DEADLINE_S, burst_launches, recording_cta
from fa4top.engine.workers import WorkerGone, WorkerProcess
from fa4top.records import AbArm, AbBlock, AbPair, AbState, Check, CleanBurst, SweepPoint, TraceSample
from fa4top.targets.catalog import describe

PILOTS = 4
WARM_UP_S, WARM_SLICES, WARM_SPREAD = 5.0, 3, 0.01
LEAST_GAP_S = 0.004
TRACE_EVERY = 2
REPORT_EVERY = 4
PAIR_BLOCKS = 5  # of a pair of processes in tier 2
KEPT = 64


@dataclass
class _Arm:
    """One side: its setting, its twins, and what was measured of it."""

    name: str
    order: Order
    plan_id: int
    clean: WorkerProcess
    traced: WorkerProcess
    output: str = ""
    output_text: str = ""
    rms_error: float = 0.0
    launches: int = 3
    rejected: int = 0
    bursts: list[CleanBurst] = field(default_factory=list)
    samples: list[TraceSample] = field(default_factory=list)


def arm_orders(order: Order, job: AbJob) -> tuple[dict[str, Order], list[str]]:
    """The orders of both arms, and what is wrong with them."""
    orders, problems = {}, []
    for name, changes in (("A", job.a), ("B", job.b)):
        orders[name], wrong = changed_order(order, changes)
        problems += [f"arm {name}: {text}" for text in wrong]
    return orders, problems


async def run_ab(host: JobHost, job: AbJob) -> None:
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
    def __init__(self, host: JobHost, job: AbJob, orders: dict[str, Order]) -> None:
        self._host, self._job, self._orders = host, job, orders
        self._id = host.next_plan_id()
        self._coin = Coin(job.seed)
        self._arms: dict[str, _Arm] = {}
        self._evidence: Evidence | None = None
        self._pilots: list[float] = []
        self._number = 0
        self._tripped: list[str] = []
        self._rejected = 0
        self._gap_s = LEAST_GAP_S
        self._invalid = ""
        self._seconds_per_block = 0.0
        self._last_verdict: Verdict | None = None

    def state(self, word: str, text: str = "", found: Verdict | None = None) -> None:
        order, job = self._host.order, self._job
        self._host.append(
            AbState(
                self._id,
                order.target,
                order.gpu_name,
                order.arch,
                order.shape,
                self._orders["A"].knobs,
                self._orders["B"].knobs,
                job.margin,
                ALPHA,
                "burst",
                job.tier,
                job.seed,
                word,
                text,
                mixture_scale(self._pilots) if len(self._pilots) == PILOTS else None,
                found.word if found else "",
            )
        )

    async def run(self) -> None:
        self.state("starting", "compiling both arms")
        await self._start()
        await self._check()
        await self._warm_up()
        self.state("running")
        began = time.monotonic()
        found: Verdict | None = None
        while time.monotonic() - began < self._job.budget_s:
            found = await self._block(began)
            if found is not None and (found.word == INVALID or (found.decided and self._job.until_decided)):
                break
        await self._check_again()
        found = self._verdict()
        self._report()
        text = found.text
        if not found.decided and found.word != INVALID and time.monotonic() - began >= self._job.budget_s:
            text += f" (budget of {self._job.budget_s:g} s spent)"
        self.state("done", text, found)

    async def replicate(self) -> None:
        """Tier 2: fresh pairs of processes, a pair's mean as the unit; the first sets the scale and is discarded."""
        self.state("starting", "compiling both arms")
        pairs: Evidence | None = None
        found: Verdict | None = None
        began = time.monotonic()
        for number in range(1, self._job.pairs + 1):
            await self._start()
            await self._check()
            await self._warm_up()
            if number == 1:
                self.state("running")
            ratios = await self._pair_blocks(began)
            await self._check_again()
            self._report()
            for arm in self._arms.values():
                await self._host.end_worker(arm.clean)
                await self._host.end_worker(arm.traced)
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
                    self._id,
                    number,
                    mean,
                    len(ratios),
                    known.estimate if known else None,
                    known.interval.low if known else None,
                    known.interval.high if known else None,
                    known.log_e if known else None,
                    found.word if known else "",
                    found.text if known else "pilot pair: sets the scale",
                )
            )
            spent = time.monotonic() - began > self._job.budget_s
            if found.word == INVALID or spent or (found.decided and self._job.until_decided):
                break
        assert found is not None
        self.state("done", found.text, found)

    async def _pair_blocks(self, began: float) -> list[float]:
        """Ratios of the blocks of this pair that the gate lets through."""
        ratios: list[float] = []
        for _ in range(3 * PAIR_BLOCKS):
            ratio = await self._measure_block(began, pair=True)
            if ratio is not None:
                ratios.append(ratio)
            if len(ratios) == PAIR_BLOCKS:
                return ratios
        self._invalid = self._invalid or f"the gate can not be met: {self._rejected} of {self._number} blocks rejected"
        return ratios or [0.0]

    async def _start(self) -> None:
        """Both arms' twins compile at the same time; arm A's plan is what the live screen shows."""
        host = self._host
        for name, order in self._orders.items():
            plan_id = host.next_plan_id()
            clean = await host.start_worker("clean", order, plan_id)
            traced = await host.start_worker("traced", order, plan_id)
            self._arms[name] = _Arm(name, order, plan_id, clean, traced)
        a = self._arms["A"]
        host.append(a.order.plan(a.plan_id))
        for arm in self._arms.values():
            for worker in (arm.clean, arm.traced):
                await worker.wait_for("worker", COMPILE_DEADLINE_S, "compiled")

    async def _ask_check(self, worker: WorkerProcess) -> Check:
        answer = await worker.ask({"do": "check"}, "check", CHECK_DEADLINE_S)
        assert isinstance(answer, Check)
        await worker.wait_for("worker", CHECK_DEADLINE_S, "ready" if answer.passed else "failed")
        return answer

    async def _check(self) -> None:
        for arm in self._arms.values():
            hashes = []
            for worker in (arm.clean, arm.traced):
                answer = await self._ask_check(worker)
                if not answer.passed:
                    self._invalid = f"the output of arm {arm.name} is wrong: {answer.text}"
                hashes.append(answer.output_hash)
            if hashes[0] != hashes[1]:
                self._invalid = f"probes change the output of arm {arm.name}"
            arm.output, arm.rms_error = hashes[0], answer.rms_error
        a, b = self._arms["A"], self._arms["B"]
        a.output_text = f"baseline, RMS error {a.rms_error:.1e}"
        b.output_text = "bitwise equal to A" if a.output == b.output else f"differs from A, RMS error {b.rms_error:.1e}"
        if a.output != b.output and (names := self._bitwise_knobs()) is not None:
            self._invalid = f"outputs differ, though {names} should leave them equal bit for bit"

    def _bitwise_knobs(self) -> str | None:
        """Names of the knobs that differ when all of them claim to be bitwise; None when one may change numerics."""
        a, b = self._orders["A"].knobs, self._orders["B"].knobs
        differing = [knob for knob in describe(self._host.order.target).knobs if a[knob.name] != b[knob.name]]
        if all(knob.numerics == "bitwise" for knob in differing):
            return ", ".join(knob.name for knob in differing) or "the same setting"
        return None

    async def _check_again(self) -> None:
        for arm in self._arms.values():
            answer = await self._ask_check(arm.clean)
            if answer.output_hash != arm.output and not self._invalid:
                self._invalid = f"the output of arm {arm.name} changed during the run: a flake"

    async def _slice(self, arm: _Arm) -> CleanBurst:
        await self._host.unpaused()
        burst = await arm.clean.ask({"do": "clean", "launches": arm.launches}, "clean", BURST_DEADLINE_S)
        assert isinstance(burst, CleanBurst)
        await asyncio.sleep(self._gap_s)
        return burst

    async def _warm_up(self) -> None:
        """Full-size bursts of both arms until the clock holds still, as far as it is known; then the slice's length."""
        end = time.monotonic() + WARM_UP_S
        clocks: list[float] = []
        while True:
            for arm in self._arms.values():
                burst = await self._slice(arm)
                median_us = statistics.median(burst.times_us)
                arm.launches = burst_launches(median_us)
                self._gap_s = max(self._gap_s, median_us * 1e-6)
                if burst.sm_clock_mhz:
                    clocks.append(burst.sm_clock_mhz)
            last = clocks[-WARM_SLICES:]
            if len(clocks) == 0 or (len(last) == WARM_SLICES and max(last) <= (1.0 + WARM_SPREAD) * min(last)):
                return
            if time.monotonic() > end:
                self._host.say(
                    "warning", "A/B: the SM clock does not hold still; blocks in which it moves are rejected"
                )
                return

    async def _block(self, began: float) -> Verdict | None:
        await self._measure_block(began)
        return self._last_verdict

    async def _measure_block(self, began: float, pair: bool = False) -> float | None:
        """One block, recorded; its ratio when it counts. In a pair of tier 2 a block alone is no evidence."""
        order = self._coin.block_order()
        bursts = [await self._slice(self._arms[name]) for name in order]
        reading = self._host.gpu_now()
        self._number += 1
        slices, clocks = [b.times_us for b in bursts], [b.sm_clock_mhz for b in bursts]
        ratio, ratio_cycles = block_ratio(order, slices, clocks)
        throttle = reading.throttle if reading else []
        passed = gate(order, clocks, throttle, reading.foreign_pids if reading else [])
        pilot = self._evidence is None and not pair
        if passed.accepted:
            if not pair:
                self._take(ratio)
            for name, burst in zip(order, bursts, strict=True):
                arm = self._arms[name]
                arm.bursts = [*arm.bursts[-KEPT:], burst]
        else:
            self._rejected += 1
            self._tripped.append(passed.tripped)
            for arm in self._arms.values():
                arm.rejected += arm.name == passed.tripped
        self._seconds_per_block = (time.monotonic() - began) / self._number
        known = None if pilot else self._evidence
        found = self._verdict() if known else None
        self._host.append(
            AbBlock(
                self._id,
                self._number,
                order,
                slices,
                clocks,
                ratio,
                ratio_cycles,
                pilot,
                passed.accepted,
                passed.reason,
                passed.tripped,
                known.estimate if known else None,
                known.interval.low if known else None,
                known.interval.high if known else None,
                known.log_e if known else None,
                found.word if found else "",
                found.text if found else "",
            )
        )
        if self._number % TRACE_EVERY == 1:
            await self._trace()
        if self._number % REPORT_EVERY == 0:
            self._report()
        self._last_verdict = found
        return ratio if passed.accepted else None

    def _take(self, ratio: float) -> None:
        """Pilot blocks set the scale and are discarded; the others are evidence."""
        if self._evidence is not None:
            self._evidence.add(ratio)
            return
        self._pilots.append(ratio)
        if len(self._pilots) == PILOTS:
            self._evidence = Evidence(mixture_scale(self._pilots), ALPHA, self._job.seed)

    def _verdict(self) -> Verdict:
        reject_limit = self._number >= 10 and self._rejected > MOST_REJECTED * self._number
        invalid = self._invalid or unfair_gate(self._tripped)
        if not invalid and reject_limit:
            invalid = f"the gate can not be met: {self._rejected} of {self._number} blocks rejected"
        evidence = self._evidence or Evidence(1.0)
        return verdict(evidence, self._job.margin, self._seconds_per_block, invalid)

    async def _trace(self) -> None:
        """One traced launch an arm, outside the blocks; the coin decides who goes first."""
        for name in sorted(self._arms, reverse=self._coin.heads()):
            arm = self._arms[name]
            state = arm.traced.state
            cta = recording_cta(state.geometry if state else None, len(arm.samples))
            command: dict[str, object] = {"do": "trace", "cta": cta, "timeline": name == "A"}
            sample = await arm.traced.ask(command, "trace", BURST_DEADLINE_S)
            assert isinstance(sample, TraceSample)
            arm.samples = [*arm.samples[-KEPT:], sample]
            await asyncio.sleep(self._gap_s)

    def _report(self) -> None:
        for arm in self._arms.values():
            state = arm.clean.state
            if not arm.bursts or not arm.samples or state is None or state.geometry is None:
                continue
            point = measured_point(
                SweepPoint(self._id, arm.plan_id, arm.name, "", "measured"),
                arm.bursts,
                arm.samples,
                state.geometry,
                arm.output,
            )
            roles = [role for sample in arm.samples[-16:] for role in sample.roles]
            lead = next((n for n in ("mma", "mma0") if any(role.role == n for role in roles)), "")
            own = [role for role in roles if role.role == lead]
            causes = {cause for role in own for cause in role.waits_cycles}
            steps = [role.period_median_cycles for role in own if role.period_median_cycles is not None]
            self._host.append(
                AbArm(
                    self._id,
                    arm.name,
                    arm.order.knobs,
                    point.time_us,
                    point.tflops,
                    point.period_cycles,
                    point.period_p95_cycles,
                    {cause: statistics.median(role.waits_cycles.get(cause, 0.0) for role in own) for cause in causes},
                    statistics.median(steps) if steps else None,
                    point.sm_clock_mhz,
                    point.probe_effect,
                    arm.output,
                    arm.output_text,
                    arm.rejected,
                )
            )
