"""Fold the records of a log into one immutable snapshot that viewers draw. Memory is bounded for any length."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fa4top.analysis.view.account import kernel_account
from fa4top.analysis.view.jobs import BENCH_TWIN, JOB_FOLDS, SweepFold
from fa4top.analysis.view.limits import live_sentence
from fa4top.analysis.view.snapshot import LogLine, LossTotals, Snapshot
from fa4top.analysis.view.window import Window, median, own, percentiles, role_names, role_view, sm_periods, thinned
from fa4top.records import (
    Body,
    Check,
    CleanBurst,
    EngineState,
    Envelope,
    Fault,
    GpuSample,
    HangReport,
    Header,
    Losses,
    Notice,
    Output,
    Plan,
    TraceSample,
    WorkerState,
)

WINDOW_S = 60.0
RECENT_S = 10.0
MAX_LINES = 1000
MAX_FAULTS = 50
ROLES_OF = 32  # last traced launches whose roles are shown
ACCOUNTED = 64


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Counts that a fold keeps for longer than its window: what a jump in a recording starts from. Those of launches
    belong to the plan ``plan_id``; ``sweep_blocks`` are (all, rejected) by sweep."""

    records: int = 0
    plan_id: int = -1
    clean_launches: int = 0
    losses: LossTotals = field(default_factory=LossTotals)
    sweep_blocks: tuple[tuple[int, int, int], ...] = ()


class Fold:
    """Feeds on records, in order; ``snapshot`` may be called at any time."""

    def __init__(self, totals: Totals | None = None) -> None:
        """``totals``: what was counted before the first record that will be fed."""
        totals = totals or Totals()
        self._header: Header | None = None
        self._engine: EngineState | None = None
        self._faults: deque[Fault] = deque(maxlen=MAX_FAULTS)
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._line_cache: tuple[LogLine, ...] = ()
        self._records = 0
        self._totals = totals
        self._any_simulated = False
        self._time_s = self._began_s = 0.0
        self._wall_ns = 0
        self._gpu: GpuSample | None = None
        self._plan: Plan | None = None
        self._jobs = [make(self._job_line) for make in JOB_FOLDS]
        for job in self._jobs:
            if isinstance(job, SweepFold):
                job.blocks = {sweep: (count, rejected) for sweep, count, rejected in totals.sweep_blocks}
                self._sweeps = job
        self._reset()
        self._record: Envelope | None = None
        live: dict[type[Body], Callable[[Any], None]] = {
            Header: self._on_header,
            EngineState: self._on_engine,
            Plan: self._on_plan,
            WorkerState: self._on_worker,
            Check: self._on_check,
            CleanBurst: self._on_clean,
            TraceSample: self._on_trace,
            GpuSample: self._on_gpu,
            Fault: self._on_fault,
            HangReport: self._on_hang,
            Notice: self._on_notice,
            Output: self._on_output,
        }
        self._handlers: dict[type[Body], list[Callable[[Any], None]]] = {}
        for takes in (live, *(job.takes for job in self._jobs)):
            for kind, handler in takes.items():
                self._handlers.setdefault(kind, []).append(handler)

    def _reset(self) -> None:
        """Forget the numbers of the plan before."""
        self._workers: dict[str, WorkerState] = {}
        self._checks: dict[str, Check] = {}
        self._window = Window()
        self._losses = LossTotals()
        self._clean_launches = 0

    def feed(self, record: Envelope, counted: bool = True) -> None:
        """Take one record; ``counted``: False for one that the totals to start from hold already."""
        self._records += counted
        self._record = record
        self._any_simulated |= record.simulated
        self._time_s = record.mono_ns / 1e9
        self._wall_ns = record.wall_ns
        self._began_s = self._began_s or self._time_s
        if not self._of_an_older_plan(record.body):
            for handler in self._handlers.get(type(record.body), ()):
                handler(record.body)

    def totals(self) -> Totals:
        """What would be lost if only the last minute were fed again."""
        return Totals(
            records=self._records + self._totals.records,
            plan_id=self._plan.plan_id if self._plan else -1,
            clean_launches=self._clean_launches,
            losses=self._losses,
            sweep_blocks=tuple((sweep, *counts) for sweep, counts in self._sweeps.blocks.items()),
        )

    def _of_an_older_plan(self, body: Body) -> bool:
        """A worker of the plan before may still finish its burst while the next plan begins."""
        if self._plan is None or not isinstance(body, (WorkerState, Check, CleanBurst, TraceSample)):
            return False
        if isinstance(body, WorkerState) and body.twin == BENCH_TWIN:
            return False
        return body.plan_id != self._plan.plan_id

    def _line(self, level: str, text: str, source: str = "") -> None:
        assert self._record is not None
        record = self._record
        self._lines.append(
            LogLine(seq=record.seq, wall_ns=record.wall_ns, level=level, source=source or record.source, text=text)
        )
        self._line_cache = ()

    def _job_line(self, level: str, text: str) -> None:
        self._line(level, text)

    def _on_header(self, header: Header) -> None:
        self._header = header

    def _on_engine(self, state: EngineState) -> None:
        self._engine = state
        self._line("info", f"engine {state.state} {state.text}".rstrip())

    def _on_plan(self, plan: Plan) -> None:
        self._reset()
        self._plan = plan
        if plan.plan_id == self._totals.plan_id:
            self._clean_launches, self._losses = self._totals.clean_launches, self._totals.losses
        knobs = " ".join(f"{name}={value}" for name, value in plan.knobs.items())
        self._line("info", f"plan {plan.plan_id}: {plan.target} on {plan.device} {knobs}")

    def _on_worker(self, state: WorkerState) -> None:
        if state.twin == BENCH_TWIN:
            return
        before = self._workers.get(state.twin)
        self._workers[state.twin] = state
        if before is None or before.state != state.state:
            self._line("info", f"{state.twin} twin {state.state} {state.text}".rstrip())

    def _on_check(self, check: Check) -> None:
        self._checks[check.twin] = check
        self._line("info" if check.passed else "error", f"check: {check.text}")

    def _on_clean(self, burst: CleanBurst) -> None:
        self._window.add_clean(self._time_s, burst)
        self._clean_launches += len(burst.times_us)

    def _on_trace(self, sample: TraceSample) -> None:
        self._window.add_traced(self._time_s, sample)
        self._losses = add_losses(self._losses, sample.losses)

    def _on_gpu(self, sample: GpuSample) -> None:
        self._gpu = sample

    def _on_fault(self, fault: Fault) -> None:
        self._faults.append(fault)
        self._line("error", f"{fault.worker}: {fault.reason}: {fault.text}. Try: {fault.hint}")
        for line in fault.stderr_tail:
            self._line("output", line)

    def _on_notice(self, notice: Notice) -> None:
        self._line(notice.level, notice.text)

    def _on_output(self, output: Output) -> None:
        self._line("output", output.text, output.worker)

    def _on_hang(self, hang: HangReport) -> None:
        for text in (hang.text, *hang.roles):
            self._line("error", f"hang: {text}")

    def snapshot(self) -> Snapshot:
        """The present state, frozen."""
        window = self._window
        window.prune(self._time_s - WINDOW_S)
        times = np.concatenate([burst.times_us for burst in window.clean]) if window.clean else np.zeros(0)
        traced = [sample for _, sample in window.traced]
        clean_us, clean_p95_us = percentiles(times, (0.5, 0.95)) if len(times) else (None, None)
        traced_us = median(sample.time_us for sample in traced)
        sm_clock = median(sample.sm_clock_mhz for sample in traced)
        # a target whose own trace has no anchors: the clock of the clean bursts is as good
        sm_clock = median(burst.clock_mhz for burst in window.clean) if sm_clock is None else sm_clock
        geometry = next((state.geometry for state in self._workers.values() if state.geometry), None)
        clean_period = tflops = None
        if clean_us is not None and geometry is not None:
            tflops = geometry.flops / clean_us / 1e6
            if sm_clock is not None:
                clean_period = clean_us * sm_clock / geometry.steps_longest
        if not self._line_cache:
            self._line_cache = tuple(self._lines)
        last = traced[-1] if traced else None
        drawn = next((sample for sample in reversed(traced) if sample.timeline is not None), None)
        names = role_names(traced[-ROLES_OF:])
        snapshot = Snapshot(
            header=self._header,
            engine=self._engine,
            plan=self._plan,
            geometry=geometry,
            role_map=next((state.roles for state in self._workers.values() if state.roles), None),
            workers=tuple(self._workers.values()),
            checks=tuple(self._checks.values()),
            time_s=self._time_s,
            began_s=self._began_s,
            wall_ns=self._wall_ns,
            clean_us=clean_us,
            clean_p95_us=clean_p95_us,
            slowest_us=float(times.max()) if len(times) else None,
            host_us=median(burst.host_us for burst in window.clean),
            traced_us=traced_us,
            clean_launches=self._clean_launches,
            sm_clock_mhz=sm_clock,
            clean_period_cycles=clean_period,
            tflops=tflops,
            clean_series=tuple(burst.point for burst in window.clean),
            roles=tuple(role_view(name, window, self._time_s - RECENT_S) for name in names),
            histogram=tuple((name, values) for name in names if (values := thinned(window.roles[name]))),
            sm_periods=sm_periods(window.sms),
            timeline=drawn.timeline if drawn else None,
            timeline_cta=drawn.cta if drawn else -1,
            timeline_sm=drawn.sm if drawn else -1,
            probe_set=last.probe_set if last else "",
            detail=last.detail if last else False,
            own=own(traced),
            account=kernel_account(geometry, traced[-ACCOUNTED:], clean_us, traced_us),
            gpu=self._gpu,
            losses=self._losses,
            faults=tuple(self._faults),
            lines=self._line_cache,
            records=self._records + self._totals.records,
            any_simulated=self._any_simulated,
            **{name: value for job in self._jobs for name, value in job.facts().items()},
        )
        return replace(snapshot, verdict=live_sentence(snapshot))


def add_losses(totals: LossTotals, lost: Losses) -> LossTotals:
    """Totals after one more traced launch."""
    return LossTotals(
        launches=totals.launches + 1,
        recorded=totals.recorded + lost.recorded,
        dropped=totals.dropped + lost.dropped,
        unmatched=totals.unmatched + lost.unmatched,
        stale=totals.stale + lost.stale,
    )


def fold_records(records: Iterable[Envelope]) -> Snapshot:
    """The state after all of them."""
    fold = Fold()
    for record in records:
        fold.feed(record)
    return fold.snapshot()
