"""The sweep job: every setting in fresh workers; the next one compiles while the present one runs."""

from __future__ import annotations

import asyncio
import statistics
from dataclasses import dataclass

from fa4top.analysis.sweeps import measured_point, sweep_verdict
from fa4top.engine.jobs import JobHost, SweepJob, changed_order
from fa4top.engine.order import Order
from fa4top.engine.pace import BURST_DEADLINE_S, CHECK_DEADLINE_S, COMPILE_DEADLINE_S, burst_launches, recording_cta
from fa4top.engine.tasks import end_task
from fa4top.engine.workers import WorkerGone, WorkerProcess
from fa4top.records import Check, CleanBurst, SweepPoint, SweepState, TraceSample, WorkerState

REST_S = 0.03  # between bursts: the chip cools, the clock stays


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


@dataclass
class _Pair:
    """A setting's workers, compiled."""

    setting: Setting
    plan_id: int
    clean: WorkerProcess
    traced: WorkerProcess


async def run_sweep(host: JobHost, job: SweepJob) -> None:
    """Until the last setting is measured. A setting that fails is recorded as failed; the sweep goes on."""
    order = host.order
    settings = settings_of(order, job)
    sweep_id = host.next_plan_id()

    def state(word: str, text: str = "") -> SweepState:
        refused = {f"{s.series}/{s.value}": s.problem for s in settings if s.problem}
        return SweepState(
            sweep_id,
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
        )

    host.append(state("running"))
    for setting in settings:
        if setting.problem:
            host.append(SweepPoint(sweep_id, 0, setting.series, setting.value, "refused", setting.problem))
    todo = [setting for setting in settings if not setting.problem]
    points: list[SweepPoint] = []
    following: asyncio.Task[_Pair] | None = None
    try:
        for index, setting in enumerate(todo):
            ahead = following or asyncio.create_task(_compiled(host, setting))
            following = None
            try:
                pair = await ahead
                if index + 1 < len(todo):
                    following = asyncio.create_task(_compiled(host, todo[index + 1]))
                point = await _measure(host, job, sweep_id, pair)
            except WorkerGone as gone:
                host.append(gone.fault)
                text = f"{gone.fault.reason}: {gone.fault.text}"
                point = SweepPoint(sweep_id, gone.fault.plan_id, setting.series, setting.value, "failed", text)
            host.append(point)
            points.append(point)
    except asyncio.CancelledError:
        host.append(state("stopped", "cut short. So far: " + (sweep_verdict(job.knob, points) or "nothing")))
        raise
    finally:
        if following is not None:
            await end_task(following)
    host.append(state("done", sweep_verdict(job.knob, points)))


async def _compiled(host: JobHost, setting: Setting) -> _Pair:
    plan_id = host.next_plan_id()
    clean = await host.start_worker("clean", setting.order, plan_id)
    traced = await host.start_worker("traced", setting.order, plan_id)
    for worker in (clean, traced):
        await worker.wait_for("worker", COMPILE_DEADLINE_S, "compiled")
    return _Pair(setting, plan_id, clean, traced)


async def _measure(host: JobHost, job: SweepJob, sweep_id: int, pair: _Pair) -> SweepPoint:
    host.append(pair.setting.order.plan(pair.plan_id))

    def point(status: str, text: str) -> SweepPoint:
        return SweepPoint(sweep_id, pair.plan_id, pair.setting.series, pair.setting.value, status, text)

    try:
        hashes = []
        for worker in (pair.clean, pair.traced):
            check = await worker.ask({"do": "check"}, "check", CHECK_DEADLINE_S)
            assert isinstance(check, Check)
            if not check.passed:
                return point("failed", f"the output is wrong: {check.text}")
            hashes.append(check.output_hash)
            await worker.wait_for("worker", CHECK_DEADLINE_S, "ready")
        if hashes[0] != hashes[1]:
            return point("failed", "the traced twin's output differs from the clean twin's")
        bursts, samples = await _rounds(host, job, pair)
        state = pair.clean.state
        assert isinstance(state, WorkerState) and state.geometry is not None
        return measured_point(point("measured", ""), bursts, samples, state.geometry, hashes[0])
    finally:
        await host.end_worker(pair.clean)
        await host.end_worker(pair.traced)


async def _rounds(host: JobHost, job: SweepJob, pair: _Pair) -> tuple[list[CleanBurst], list[TraceSample]]:
    bursts: list[CleanBurst] = []
    samples: list[TraceSample] = []
    launches = 3
    state = pair.traced.state
    for number in range(job.rounds + 1):
        await host.unpaused()
        burst = await pair.clean.ask({"do": "clean", "launches": launches}, "clean", BURST_DEADLINE_S)
        cta = recording_cta(state.geometry if state else None, number)
        sample = await pair.traced.ask({"do": "trace", "cta": cta, "timeline": number == 1}, "trace", BURST_DEADLINE_S)
        assert isinstance(burst, CleanBurst) and isinstance(sample, TraceSample)
        if number:  # the first round warms up
            bursts.append(burst)
            samples.append(sample)
        launches = burst_launches(statistics.median(burst.times_us))
        host.read_gpu()
        await asyncio.sleep(REST_S)
    return bursts, samples
