"""The triage job: runs what is missing of the six steps, and records what each found."""

from __future__ import annotations

import asyncio
import time
from dataclasses import fields, replace

from fa4top.analysis.sass.kernel import KernelSass
from fa4top.analysis.triage.gathered import Gathered
from fa4top.analysis.triage.steps import Answer, answer, triage
from fa4top.analysis.view.snapshot import LiveFacts, Snapshot
from fa4top.engine.host import Host, JobFailed
from fa4top.engine.jobs.bench import run_bench
from fa4top.engine.jobs.check import run_check
from fa4top.engine.jobs.sass import report, wanted_of
from fa4top.engine.jobs.sweep import run_sweep
from fa4top.engine.sass_reading import Read, SassError, read_setting
from fa4top.engine.twins import Twins
from fa4top.engine.workers import WorkerGone
from fa4top.orders.jobs import BenchJob, CheckJob, SweepJob, TriageJob
from fa4top.orders.order import Order
from fa4top.records import TriageRun, TriageStep
from fa4top.targets.catalog import describe
from fa4top.targets.legal import plan_record, setting_of

BENCH = ("ex2", "cvt", "fma", "max")  # what a floor needs; all of the suite is a command of its own
REST_S = 0.06
TIMELINE_EVERY = 8  # rounds
TRACES = 3  # traced launches for each burst of the clean twin: all SMs are to be seen


async def run_triage(host: Host, job: TriageJob) -> None:
    """Until all six steps have been looked at; what can not be done is said in its step.

    Raises:
        JobFailed: the setting could not even be launched.
    """
    await _Triage(host, job).run()


class _Triage:
    def __init__(self, host: Host, job: TriageJob) -> None:
        self._host, self._job = host, job
        self._order = host.order
        self._id = host.next_plan_id()
        self._sass: KernelSass | None = None
        self._traced: Snapshot | None = None  # as it was when the trace was over: a screen looks back a minute only
        self._why_not = ""

    def _state(self, word: str, text: str = "", found: Answer | None = None) -> None:
        order = self._order
        self._host.append(
            TriageRun(
                run_id=self._id,
                target=order.target,
                device=order.gpu_name,
                arch=order.arch,
                shape=order.shape,
                knobs=order.knobs,
                state=word,
                text=text,
                unsafe=order.unsafe,
                best=found.best if found else "",
                rest=found.rest if found else "",
            )
        )

    async def run(self) -> None:
        self._state("running", "starting")
        try:
            await self._throughputs()
            await self._trace()
            await self._read_sass()
            await self._split()
            await self._checks()
        except asyncio.CancelledError:
            self._state("stopped", "cut short; what was found so far stands in its steps")
            raise
        except JobFailed as error:
            await self._steps()
            self._state("failed", str(error))
            raise
        except WorkerGone as gone:
            self._host.append(gone.fault)
            await self._steps()
            self._state("failed", f"{gone.fault.reason}: {gone.fault.text}")
            raise JobFailed(f"triage: {gone.fault.reason}: {gone.fault.text}. {gone.fault.hint}") from gone
        steps = await self._steps()
        found = answer(steps)
        self._state("done", found.text, found)

    async def _throughputs(self) -> None:
        order = self._order
        if "throughputs" in self._job.skip or order.simulated or not order.gpu_uuid:
            return
        known = self._host.snapshot()
        if any(result.status == "measured" and result.arch == order.arch for result in known.bench):
            return  # this session has measured them already
        self._state("running", "1 of 6, throughputs: measuring this chip's instructions")
        try:
            await run_bench(self._host, BenchJob(names=list(BENCH)))
        except JobFailed as error:
            self._host.say("warning", f"{error}; published figures stand in")

    async def _trace(self) -> None:
        if "trace" in self._job.skip:
            return
        self._state("running", "2 of 6, trace: clean and traced twins in turn")
        host = self._host
        twins = Twins(self._order, host.next_plan_id())
        host.append(plan_record(self._order, twins.plan_id))
        try:
            await twins.start(host)
            await twins.verify(side_by_side=False)
            rounds, end = 0, time.monotonic() + self._job.seconds
            # no numbers from a kernel whose output is wrong
            while all(check.passed for check in twins.checks.values()) and (time.monotonic() < end or rounds < 3):
                await host.unpaused()
                await twins.burst(twins.burst_launches)
                for number in range(TRACES):
                    await twins.trace(timeline=not number and rounds % TIMELINE_EVERY == 0)
                host.gpu_now()
                rounds += 1
                await asyncio.sleep(REST_S)
        finally:
            await host.end(*twins.workers.values())
        self._traced = host.snapshot()
        await self._steps()

    async def _read_sass(self) -> None:
        order = self._order
        if "SASS" in self._job.skip:
            self._why_not = "left out"
        else:
            self._state("running", "3 of 6, SASS: compiling the clean kernel once more, and reading it")
            try:
                read: Read | SassError = await asyncio.to_thread(read_setting, wanted_of(order))
            except SassError as error:
                read = error
            found = report(order, self._id, "present setting", read)
            self._why_not = found.error
            if isinstance(read, Read):
                self._sass = read.kernel
                self._host.append(found)
        await self._steps()

    async def _split(self) -> None:
        knob, values = describe(self._order.target).to_try("handoff", self._order.arch)
        if not knob or "split" in self._job.skip:
            return
        present = self._order.knobs[knob]
        done = self._host.snapshot().sweep
        same = done is not None and (done.knob, done.knobs, done.shape) == (knob, self._order.knobs, self._order.shape)
        if same and done is not None and done.state == "done" and not done.contaminated:
            return  # this session has swept it already, from the same setting
        self._state("running", f"5 of 6, split: {knob} over {', '.join(values)}")
        chosen = values if present in values else [present, *values]
        await run_sweep(self._host, SweepJob(knob=knob, values=chosen, rounds=4, budget_s=self._job.sweep_s, fresh=1))
        await self._steps()

    async def _checks(self) -> None:
        if "checks" in self._job.skip:
            return
        self._state("running", f"6 of 6, checks: {self._job.times} launches, compared bit for bit")
        await run_check(self._host, CheckJob(times=self._job.times))

    async def _steps(self) -> list[TriageStep]:
        """What is known now, recorded step by step."""
        now = self._host.snapshot()
        if self._traced is not None:
            # what jobs found is of now; what was traced is as it was when that was over
            live = {each.name: getattr(self._traced, each.name) for each in fields(LiveFacts)}
            now = replace(now, **live)
        steps = triage(gathered(self._order, now, self._sass, self._why_not), self._id)
        for step in steps:
            self._host.append(step)
        return steps


def gathered(order: Order, snapshot: Snapshot, sass: KernelSass | None, why_not: str) -> Gathered:
    """The log's state as the rules take it."""
    description = describe(order.target)
    tries = {cause: description.to_try(cause, order.arch) for cause in description.tries}
    return Gathered(snapshot=snapshot, setting=setting_of(order), sass=sass, sass_why_not=why_not, tries=tries)
