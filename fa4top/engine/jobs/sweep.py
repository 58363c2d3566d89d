"""The sweep job: all values of a series resident at once, compared in blocks; then the best again in fresh
processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fa4top.analysis.compare.evidence import ALPHA
from fa4top.analysis.compare.sweeps import sweep_verdict
from fa4top.engine.host import Host
from fa4top.engine.jobs.arms import Arm, start_arms
from fa4top.engine.jobs.sweep_series import NULL, Series
from fa4top.engine.tasks import end_task
from fa4top.orders.jobs import SweepJob
from fa4top.orders.order import Order
from fa4top.records import SweepPoint, SweepState
from fa4top.targets.legal import changed_order


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


def sweep_problems(order: Order, job: SweepJob) -> list[str]:
    """Why nothing of this sweep can be launched; [] when a part of it can."""
    problems = [setting.problem for setting in settings_of(order, job)]
    if all(problems):
        return list(dict.fromkeys(str(problem) for problem in problems)) or ["nothing to sweep"]
    return []


async def run_sweep(host: Host, job: SweepJob) -> None:
    """Until the last series is measured. A setting that fails is recorded as failed; the sweep goes on."""
    sweep = _Sweep(host, with_present_value(host.order, job))
    try:
        await sweep.run()
    except asyncio.CancelledError:
        sweep.state("stopped", "cut short. So far: " + (sweep.sentence() or "nothing"))
        raise


class _Sweep:
    def __init__(self, host: Host, job: SweepJob) -> None:
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
                sweep_id=self.id,
                target=order.target,
                device=order.gpu_name,
                arch=order.arch,
                shape=order.shape,
                knobs=order.knobs,
                knob=job.knob,
                values=job.values,
                series_knob=job.series_knob,
                series=job.series or [""],
                state=word,
                refused=refused,
                text=text,
                margin=job.margin,
                alpha=ALPHA,
                comparisons=self.comparisons,
                baselines=self._baselines,
                contaminated=self.contaminated,
                unsafe=order.unsafe,
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
                self.put(
                    SweepPoint(
                        sweep_id=self.id,
                        plan_id=0,
                        series=setting.series,
                        value=setting.value,
                        status="refused",
                        text=setting.problem,
                    )
                )
        ahead: asyncio.Task[dict[str, Arm | BaseException]] | None = None
        try:
            names = list(self._baselines)
            for index, series in enumerate(names):
                starting = ahead or self._start(series)
                ahead = None
                arms = await starting
                if index + 1 < len(names):
                    ahead = self._start(names[index + 1])
                await Series(self._host, self._job, self, series, self._baselines[series]).run(arms)
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
