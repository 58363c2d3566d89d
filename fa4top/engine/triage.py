"""The triage job: runs what is missing of the six steps, and records what each found."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

from fa4top.analysis.fold import Snapshot, fold_records
from fa4top.analysis.sass_kernel import KernelSass
from fa4top.analysis.triage import answer, triage
from fa4top.analysis.triage_rules import Evidence
from fa4top.engine.arms import ask_check
from fa4top.engine.bench import JobFailed, run_bench
from fa4top.engine.check import run_check
from fa4top.engine.jobs import BenchJob, CheckJob, JobHost, SweepJob, TriageJob
from fa4top.engine.order import Order
from fa4top.engine.pace import COMPILE_DEADLINE_S, burst_launches, launch_deadline_s, recording_cta
from fa4top.engine.sass import Read, SassError, read_setting
from fa4top.engine.sass_job import report, wanted_of
from fa4top.engine.sweep import run_sweep
from fa4top.engine.workers import WorkerGone
from fa4top.records import CleanBurst, TraceSample, TriageRun, TriageStep
from fa4top.session.reading import read_log
from fa4top.targets.base import format_shape
from fa4top.targets.catalog import describe

BENCH = ("ex2", "cvt", "fma", "max")  # what a floor needs; all of the suite is a command of its own
REST_S = 0.06
TRACES = 3  # traced launches for each burst of the clean twin: all SMs are to be seen
# targets whose P handoff has a knob, where it applies, and the values that are tried
SPLITS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sim": ("p_split", ("1/2", "5/8", "3/4", "7/8")),
    "builtin": ("p_split", ("3/8", "1/2", "5/8", "3/4")),
    "fa4": ("split_P_arrive", ("0", "32", "64", "96")),
}


async def run_triage(host: JobHost, job: TriageJob) -> None:
    """Until all six steps have been looked at; what can not be done is said in its step.

    Raises:
        JobFailed: the setting could not even be launched.
    """
    await _Triage(host, job).run()


def split_of(order: Order) -> tuple[str, list[str]]:
    """(knob, values) of the split on this chip; ('', []) where there is none."""
    knob, values = SPLITS.get(order.target, ("", ()))
    known = next((k for k in describe(order.target).knobs if k.name == knob), None)
    if known is None or (known.architectures and order.arch not in known.architectures):
        return "", []
    return knob, list(values)


class _Triage:
    def __init__(self, host: JobHost, job: TriageJob) -> None:
        self._host, self._job = host, job
        self._order = host.order
        self._id = host.next_plan_id()
        self._sass: KernelSass | None = None
        self._traced: Snapshot | None = None  # as it was when the trace was over: a screen looks back a minute only
        self._why_not = ""

    def _state(self, word: str, text: str) -> None:
        order = self._order
        self._host.append(
            TriageRun(
                self._id, order.target, order.gpu_name, order.arch, order.shape, order.knobs, word, text, order.unsafe
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
        self._state("done", answer(steps))

    async def _throughputs(self) -> None:
        order = self._order
        if "throughputs" in self._job.skip or order.simulated or not order.gpu_uuid:
            return
        known = await asyncio.to_thread(_snapshot, Path(order.folder))
        if any(result.status == "measured" and result.arch == order.arch for result in known.bench):
            return  # this session has measured them already
        self._state("running", "1 of 6, throughputs: measuring this chip's instructions")
        try:
            await run_bench(self._host, BenchJob(list(BENCH)))
        except JobFailed as error:
            self._host.say("warning", f"{error}; published figures stand in")

    async def _trace(self) -> None:
        if "trace" in self._job.skip:
            return
        self._state("running", "2 of 6, trace: clean and traced twins in turn")
        host, order = self._host, self._order
        plan_id = host.next_plan_id()
        host.append(order.plan(plan_id))
        clean = await host.start_worker("clean", order, plan_id)
        traced = await host.start_worker("traced", order, plan_id)
        try:
            for worker in (clean, traced):
                await worker.wait_for("worker", COMPILE_DEADLINE_S, "compiled")
            passed = [(await ask_check(worker)).passed for worker in (traced, clean)]
            launches, rounds, time_us = 3, 0, None
            end = time.monotonic() + self._job.seconds
            # no numbers from a kernel whose output is wrong
            while all(passed) and (time.monotonic() < end or rounds < 3):
                await host.unpaused()
                deadline_s = launch_deadline_s(time_us, launches + 2)
                burst = await clean.ask({"do": "clean", "launches": launches}, "clean", deadline_s)
                assert isinstance(burst, CleanBurst)
                time_us = sorted(burst.times_us)[len(burst.times_us) // 2]
                launches = burst_launches(time_us)
                for number in range(TRACES):
                    cta = recording_cta(traced.state.geometry if traced.state else None, TRACES * rounds + number)
                    command: dict[str, object] = {"do": "trace", "cta": cta, "timeline": not number and rounds % 8 == 0}
                    sample = await traced.ask(command, "trace", launch_deadline_s(time_us, 3))
                    assert isinstance(sample, TraceSample)
                host.gpu_now()
                rounds += 1
                await asyncio.sleep(REST_S)
        finally:
            await asyncio.gather(host.end_worker(clean), host.end_worker(traced))
        self._traced = await asyncio.to_thread(_snapshot, Path(order.folder))
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
        knob, values = split_of(self._order)
        if not knob or "split" in self._job.skip:
            return
        present = self._order.knobs[knob]
        done = (await asyncio.to_thread(_snapshot, Path(self._order.folder))).sweep
        same = done is not None and (done.knob, done.knobs, done.shape) == (knob, self._order.knobs, self._order.shape)
        if same and done is not None and done.state == "done" and not done.contaminated:
            return  # this session has swept it already, from the same setting
        self._state("running", f"5 of 6, split: {knob} over {', '.join(values)}")
        chosen = values if present in values else [present, *values]
        await run_sweep(self._host, SweepJob(knob, chosen, rounds=4, budget_s=self._job.sweep_s, fresh=1))
        await self._steps()

    async def _checks(self) -> None:
        if "checks" in self._job.skip:
            return
        self._state("running", f"6 of 6, checks: {self._job.times} launches, compared bit for bit")
        await run_check(self._host, CheckJob(times=self._job.times))

    async def _steps(self) -> list[TriageStep]:
        """What is known now, recorded step by step."""
        now = await asyncio.to_thread(_snapshot, Path(self._order.folder))
        snapshot = now
        if self._traced is not None:
            snapshot = replace(
                self._traced,
                bench=now.bench,
                sweep=now.sweep,
                sweep_points=now.sweep_points,
                check_run=now.check_run,
                repeats=now.repeats,
            )
        steps = triage(evidence(self._order, snapshot, self._sass, self._why_not), self._id)
        for step in steps:
            self._host.append(step)
        return steps


def _snapshot(folder: Path) -> Snapshot:
    return fold_records(read_log(folder))


def evidence(order: Order, snapshot: Snapshot, sass: KernelSass | None, why_not: str) -> Evidence:
    """The log's state as the rules take it."""
    description = describe(order.target)
    defaults = {knob.name: knob.default for knob in description.knobs}
    chosen = {name: value for name, value in order.knobs.items() if value != defaults.get(name)}
    options = ["--target", order.target, "--shape", format_shape(order.shape)]
    options += [f"--set {name}={value}" for name, value in chosen.items()]
    options += ["--causal"] if order.shape.causal else []
    return Evidence(snapshot, sass, why_not, split_of(order)[0], frozenset(defaults), tuple(options))
