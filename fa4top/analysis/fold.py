"""Fold the records of a log into one immutable snapshot that viewers draw. Memory is bounded for any length."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fa4top.analysis.floors import Floors, plan_floors
from fa4top.analysis.verdict import Account, kernel_account, verdict
from fa4top.records import (
    AbArm,
    AbBlock,
    AbPair,
    AbState,
    BenchResult,
    Body,
    Check,
    CheckRun,
    CleanBurst,
    EngineState,
    Envelope,
    Fault,
    Geometry,
    GpuSample,
    HangReport,
    Header,
    Notice,
    Output,
    Plan,
    Repeats,
    RoleSample,
    SassReport,
    SweepBlock,
    SweepPoint,
    SweepState,
    Timeline,
    TraceSample,
    TriageRun,
    TriageStep,
    WorkerState,
)

WINDOW_S = 60.0
RECENT_S = 10.0
MAX_SAMPLES = 1200
MAX_LINES = 2000
MAX_FAULTS = 50
MAX_BLOCKS = 1000


@dataclass(frozen=True)
class Point:
    """One sample of a series: seconds of the log's monotonic clock, and a value."""

    time_s: float
    value: float


@dataclass(frozen=True)
class RoleView:
    """One role over the last minute. Cycles; ``waits`` are means per step over the last ten seconds."""

    role: str
    series: tuple[Point, ...]
    now_cycles: float | None
    median_cycles: float | None
    p5_cycles: float | None
    p95_cycles: float | None
    busy_cycles: float | None
    waits_cycles: tuple[tuple[str, float], ...]
    steps: int
    tile_overhead_cycles: float | None

    @property
    def step_cycles(self) -> float | None:
        """Mean step of the last ten seconds: busy plus waits."""
        if self.busy_cycles is None:
            return None
        return self.busy_cycles + sum(cycles for _, cycles in self.waits_cycles)


@dataclass(frozen=True)
class LogLine:
    """One line of the log screen."""

    seq: int
    wall_ns: int
    level: str
    source: str
    text: str


@dataclass(frozen=True)
class LossTotals:
    """Counts since the plan began."""

    launches: int = 0
    recorded: int = 0
    dropped: int = 0
    unmatched: int = 0
    stale: int = 0

    @property
    def any(self) -> bool:
        """Was anything lost?"""
        return bool(self.dropped or self.unmatched or self.stale)


@dataclass(frozen=True)
class Snapshot:
    """All that a viewer needs at one moment."""

    header: Header | None = None
    engine: EngineState | None = None
    plan: Plan | None = None
    geometry: Geometry | None = None
    workers: tuple[WorkerState, ...] = ()
    checks: tuple[Check, ...] = ()
    time_s: float = 0.0
    began_s: float = 0.0
    wall_ns: int = 0
    clean_us: float | None = None
    clean_p95_us: float | None = None
    slowest_us: float | None = None
    host_us: float | None = None
    traced_us: float | None = None
    clean_launches: int = 0
    sm_clock_mhz: float | None = None
    clean_period_cycles: float | None = None
    tflops: float | None = None
    clean_series: tuple[Point, ...] = ()
    roles: tuple[RoleView, ...] = ()
    histogram: tuple[tuple[str, tuple[int, ...]], ...] = ()
    sm_periods: tuple[tuple[int, float], ...] = ()
    timeline: Timeline | None = None
    timeline_cta: int = -1
    timeline_sm: int = -1
    probe_set: str = ""
    detail: bool = False
    own: tuple[tuple[str, float], ...] = ()
    account: Account | None = None
    gpu: GpuSample | None = None
    losses: LossTotals = field(default_factory=LossTotals)
    faults: tuple[Fault, ...] = ()
    lines: tuple[LogLine, ...] = ()
    verdict: str = ""
    records: int = 0
    any_simulated: bool = False
    bench: tuple[BenchResult, ...] = ()
    bench_state: WorkerState | None = None
    sweep: SweepState | None = None
    sweep_points: tuple[SweepPoint, ...] = ()
    sweep_blocks: int = 0
    sweep_rejected: int = 0
    sass: tuple[SassReport, ...] = ()
    triage: TriageRun | None = None
    triage_steps: tuple[TriageStep, ...] = ()
    check_run: CheckRun | None = None
    repeats: tuple[Repeats, ...] = ()
    ab: AbState | None = None
    ab_arms: tuple[AbArm, ...] = ()
    ab_blocks: tuple[AbBlock, ...] = ()
    ab_pairs: tuple[AbPair, ...] = ()

    @property
    def probe_effect(self) -> float | None:
        """Traced over clean time, less 1: 0.015 is +1.5%."""
        return self.traced_us / self.clean_us - 1.0 if self.traced_us and self.clean_us else None

    @property
    def simulated(self) -> bool:
        """Must this be labelled SIMULATED?"""
        return bool(
            self.any_simulated or (self.plan and self.plan.simulated) or (self.header and self.header.simulated)
        )

    @property
    def floors(self) -> Floors | None:
        """What a step takes at least, by unit."""
        return plan_floors(self.plan, self.geometry, self.bench) if self.plan and self.geometry else None

    @property
    def unsafe(self) -> bool:
        """Were settings that are known to be dangerous allowed?"""
        return any(
            state is not None and state.unsafe
            for state in (self.plan, self.ab, self.sweep, self.check_run, self.triage)
        )

    @property
    def label(self) -> str:
        """What must stand beside every figure: SIMULATED, UNSAFE, both or ''."""
        return " ".join(word for word, on in (("SIMULATED", self.simulated), ("UNSAFE", self.unsafe)) if on)

    def role(self, name: str) -> RoleView | None:
        """A role by name."""
        return next((view for view in self.roles if view.role == name), None)


@dataclass(frozen=True)
class _Traced:
    time_s: float
    sample: TraceSample


class Fold:
    """Feeds on records, in order; ``snapshot`` may be called at any time."""

    def __init__(self) -> None:
        self._header: Header | None = None
        self._engine: EngineState | None = None
        self._faults: deque[Fault] = deque(maxlen=MAX_FAULTS)
        self._lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._line_cache: tuple[LogLine, ...] = ()
        self._records = 0
        self._any_simulated = False
        self._time_s = self._began_s = 0.0
        self._wall_ns = 0
        self._gpu: GpuSample | None = None
        self._bench: dict[str, BenchResult] = {}
        self._bench_state: WorkerState | None = None
        self._sweep: SweepState | None = None
        self._sweep_points: dict[tuple[str, str], SweepPoint] = {}
        self._sweep_blocks = self._sweep_rejected = 0
        self._ab: AbState | None = None
        self._ab_arms: dict[str, AbArm] = {}
        self._ab_blocks: deque[AbBlock] = deque(maxlen=MAX_BLOCKS)
        self._ab_pairs: deque[AbPair] = deque(maxlen=MAX_BLOCKS)
        self._sass: list[SassReport] = []
        self._triage: TriageRun | None = None
        self._triage_steps: dict[int, TriageStep] = {}
        self._check_run: CheckRun | None = None
        self._repeats: list[Repeats] = []
        self._plan: Plan | None = None
        self._reset()
        self._handlers: dict[type, Callable[[Envelope], None]] = {
            Header: self._on_header,
            EngineState: self._on_engine,
            Plan: self._on_plan,
            WorkerState: self._on_worker,
            Check: self._on_check,
            CleanBurst: self._on_clean,
            TraceSample: self._on_trace,
            SassReport: self._on_sass,
            TriageRun: self._on_triage,
            TriageStep: self._on_triage_step,
            CheckRun: self._on_check_run,
            Repeats: self._on_repeats,
            GpuSample: self._on_gpu,
            Fault: self._on_fault,
            HangReport: self._on_hang,
            Notice: self._on_notice,
            Output: self._on_output,
            BenchResult: self._on_bench,
            SweepState: self._on_sweep,
            SweepPoint: self._on_sweep_point,
            SweepBlock: self._on_sweep_block,
            AbState: self._on_ab,
            AbBlock: self._on_ab_block,
            AbArm: self._on_ab_arm,
            AbPair: self._on_ab_pair,
        }

    def _reset(self) -> None:
        """Forget the numbers of the plan before."""
        self._workers: dict[str, WorkerState] = {}
        self._checks: dict[str, Check] = {}
        self._clean: deque[tuple[float, CleanBurst]] = deque(maxlen=MAX_SAMPLES)
        self._traced: deque[_Traced] = deque(maxlen=MAX_SAMPLES)
        self._losses = LossTotals()
        self._clean_launches = 0
        self._sm_periods: dict[int, float] = {}
        self._timeline: TraceSample | None = None

    def feed(self, record: Envelope) -> None:
        """Take one record."""
        self._records += 1
        self._any_simulated |= record.simulated
        self._time_s = record.mono_ns / 1e9
        self._wall_ns = record.wall_ns
        self._began_s = self._began_s or self._time_s
        handler = self._handlers.get(type(record.body))
        if handler is not None and not self._of_an_older_plan(record.body):
            handler(record)

    def _of_an_older_plan(self, body: Body) -> bool:
        """A worker of the plan before may still finish its burst while the next plan begins."""
        if self._plan is None or not isinstance(body, (WorkerState, Check, CleanBurst, TraceSample)):
            return False
        if isinstance(body, WorkerState) and body.twin == "bench":
            return False
        return body.plan_id != self._plan.plan_id

    def _line(self, record: Envelope, level: str, text: str) -> None:
        self._lines.append(LogLine(record.seq, record.wall_ns, level, record.source, text))
        self._line_cache = ()

    def _on_header(self, record: Envelope) -> None:
        assert isinstance(record.body, Header)
        self._header = record.body

    def _on_engine(self, record: Envelope) -> None:
        assert isinstance(record.body, EngineState)
        self._engine = record.body
        self._line(record, "info", f"engine {record.body.state} {record.body.text}".rstrip())

    def _on_plan(self, record: Envelope) -> None:
        assert isinstance(record.body, Plan)
        self._reset()
        self._plan = record.body
        knobs = " ".join(f"{name}={value}" for name, value in record.body.knobs.items())
        self._line(record, "info", f"plan {record.body.plan_id}: {record.body.target} on {record.body.device} {knobs}")

    def _on_worker(self, record: Envelope) -> None:
        assert isinstance(record.body, WorkerState)
        if record.body.twin == "bench":
            if record.body.state == "importing":
                self._bench = {}
            self._bench_state = record.body
            return
        before = self._workers.get(record.body.twin)
        self._workers[record.body.twin] = record.body
        if before is None or before.state != record.body.state:
            self._line(record, "info", f"{record.body.twin} twin {record.body.state} {record.body.text}".rstrip())

    def _on_check(self, record: Envelope) -> None:
        assert isinstance(record.body, Check)
        self._checks[record.body.twin] = record.body
        self._line(record, "info" if record.body.passed else "error", f"check: {record.body.text}")

    def _on_clean(self, record: Envelope) -> None:
        assert isinstance(record.body, CleanBurst)
        self._clean.append((self._time_s, record.body))
        self._clean_launches += len(record.body.times_us)

    def _on_trace(self, record: Envelope) -> None:
        assert isinstance(record.body, TraceSample)
        sample = record.body
        self._traced.append(_Traced(self._time_s, sample))
        lost, now = sample.losses, self._losses
        self._losses = LossTotals(
            now.launches + 1,
            now.recorded + lost.recorded,
            now.dropped + lost.dropped,
            now.unmatched + lost.unmatched,
            now.stale + lost.stale,
        )
        if sample.timeline is not None:
            self._timeline = sample
        lead = next((role for role in sample.roles if role.period_median_cycles is not None), None)
        if lead is not None and lead.period_median_cycles is not None and sample.sm >= 0:
            before = self._sm_periods.get(sample.sm, lead.period_median_cycles)
            self._sm_periods[sample.sm] = 0.5 * before + 0.5 * lead.period_median_cycles

    def _on_gpu(self, record: Envelope) -> None:
        assert isinstance(record.body, GpuSample)
        self._gpu = record.body

    def _on_fault(self, record: Envelope) -> None:
        assert isinstance(record.body, Fault)
        fault = record.body
        self._faults.append(fault)
        if self._bench_state is not None and fault.worker == self._bench_state.worker:
            why = f"{fault.reason}: {fault.text}. Try: {fault.hint}"
            self._bench_state = replace(self._bench_state, state="dead", text=why)
        self._line(record, "error", f"{fault.worker}: {fault.reason}: {fault.text}. Try: {fault.hint}")
        for line in fault.stderr_tail:
            self._line(record, "output", line)

    def _on_notice(self, record: Envelope) -> None:
        assert isinstance(record.body, Notice)
        self._line(record, record.body.level, record.body.text)

    def _on_output(self, record: Envelope) -> None:
        assert isinstance(record.body, Output)
        self._lines.append(LogLine(record.seq, record.wall_ns, "output", record.body.worker, record.body.text))
        self._line_cache = ()

    def _on_bench(self, record: Envelope) -> None:
        assert isinstance(record.body, BenchResult)
        result = record.body
        self._bench[result.name] = result
        if result.status in ("refused", "failed"):
            self._line(record, "warning", f"bench: {result.name} {result.status}: {result.text}")

    def _on_sweep(self, record: Envelope) -> None:
        assert isinstance(record.body, SweepState)
        if self._sweep is None or self._sweep.sweep_id != record.body.sweep_id:
            self._sweep_points = {}
            self._sweep_blocks = self._sweep_rejected = 0
        self._sweep = record.body
        self._line(record, "info", f"sweep {record.body.knob} {record.body.state} {record.body.text}".rstrip())

    def _on_sweep_block(self, record: Envelope) -> None:
        assert isinstance(record.body, SweepBlock)
        self._sweep_blocks += 1
        self._sweep_rejected += not record.body.accepted

    def _on_sweep_point(self, record: Envelope) -> None:
        assert isinstance(record.body, SweepPoint)
        point = record.body
        self._sweep_points[point.series, point.value] = point
        where = f"{point.series} {point.value}".strip()
        if point.status != "measured":
            self._line(record, "warning", f"sweep: {where} {point.status}: {point.text}")

    def _on_hang(self, record: Envelope) -> None:
        assert isinstance(record.body, HangReport)
        for text in (record.body.text, *record.body.roles):
            self._line(record, "error", f"hang: {text}")

    def _on_ab(self, record: Envelope) -> None:
        assert isinstance(record.body, AbState)
        if self._ab is None or self._ab.ab_id != record.body.ab_id:
            self._ab_arms = {}
            self._ab_blocks.clear()
            self._ab_pairs.clear()
        self._ab = record.body
        if record.body.state == "cleared":
            self._ab = None
            self._ab_arms = {}
            self._ab_blocks.clear()
            self._ab_pairs.clear()
        self._line(record, "info", f"A/B {record.body.state} {record.body.text}".rstrip())

    def _on_ab_block(self, record: Envelope) -> None:
        assert isinstance(record.body, AbBlock)
        block = record.body
        # what a launch took stays in the log; a screen needs the block's outcome
        self._ab_blocks.append(replace(block, slices_us=[]))
        if not block.accepted:
            self._line(record, "warning", f"A/B block {block.number} rejected: {block.reason}")

    def _on_check_run(self, record: Envelope) -> None:
        assert isinstance(record.body, CheckRun)
        if self._check_run is None or record.body.run_id != self._check_run.run_id:
            self._repeats = []
        self._check_run = record.body
        if record.body.state != "running":
            self._line(record, "info" if record.body.passed else "error", f"check: {record.body.text}")

    def _on_repeats(self, record: Envelope) -> None:
        assert isinstance(record.body, Repeats)
        # the worker's own, then the engine's with its verdict
        self._repeats = [known for known in self._repeats if known.worker != record.body.worker] + [record.body]

    def _on_sass(self, record: Envelope) -> None:
        assert isinstance(record.body, SassReport)
        self._sass = [known for known in self._sass if known.run_id == record.body.run_id] + [record.body]

    def _on_triage(self, record: Envelope) -> None:
        assert isinstance(record.body, TriageRun)
        if self._triage is None or record.body.run_id != self._triage.run_id:
            self._triage_steps = {}
        self._triage = record.body

    def _on_triage_step(self, record: Envelope) -> None:
        assert isinstance(record.body, TriageStep)
        self._triage_steps[record.body.number] = record.body

    def _on_ab_pair(self, record: Envelope) -> None:
        assert isinstance(record.body, AbPair)
        self._ab_pairs.append(record.body)

    def _on_ab_arm(self, record: Envelope) -> None:
        assert isinstance(record.body, AbArm)
        self._ab_arms[record.body.arm] = record.body

    def snapshot(self) -> Snapshot:
        """The present state, frozen."""
        since = self._time_s - WINDOW_S
        times = [t for at, burst in self._clean if at >= since for t in burst.times_us]
        recent = [traced for traced in self._traced if traced.time_s >= since]
        clean_us = float(np.median(times)) if times else None
        traced_us = float(np.median([t.sample.time_us for t in recent])) if recent else None
        clocks = [t.sample.sm_clock_mhz for t in recent if t.sample.sm_clock_mhz is not None]
        # a target whose own trace has no anchors: the clock of the clean bursts is as good
        clocks = clocks or [b.sm_clock_mhz for at, b in self._clean if at >= since and b.sm_clock_mhz is not None]
        sm_clock = float(np.median(clocks)) if clocks else None
        geometry = next((state.geometry for state in self._workers.values() if state.geometry), None)
        clean_period = tflops = None
        if clean_us is not None and geometry is not None:
            tflops = geometry.flops / clean_us / 1e6
            if sm_clock is not None:
                clean_period = clean_us * sm_clock / geometry.steps_longest
        roles = self._roles(recent)
        account = kernel_account(geometry, [t.sample for t in recent[-64:]], clean_us, traced_us)
        if not self._line_cache:
            self._line_cache = tuple(self._lines)
        last = recent[-1].sample if recent else None
        timeline = self._timeline
        snapshot = Snapshot(
            header=self._header,
            engine=self._engine,
            plan=self._plan,
            geometry=geometry,
            workers=tuple(self._workers.values()),
            checks=tuple(self._checks.values()),
            time_s=self._time_s,
            began_s=self._began_s,
            wall_ns=self._wall_ns,
            clean_us=clean_us,
            clean_p95_us=float(np.percentile(times, 95)) if times else None,
            slowest_us=max(times, default=None),
            host_us=_host_us([burst for at, burst in self._clean if at >= since]),
            traced_us=traced_us,
            clean_launches=self._clean_launches,
            sm_clock_mhz=sm_clock,
            clean_period_cycles=clean_period,
            tflops=tflops,
            clean_series=tuple(Point(at, float(np.median(burst.times_us))) for at, burst in self._clean if at >= since),
            roles=roles,
            histogram=_histogram(recent),
            sm_periods=tuple(sorted(self._sm_periods.items())),
            timeline=timeline.timeline if timeline else None,
            timeline_cta=timeline.cta if timeline else -1,
            timeline_sm=timeline.sm if timeline else -1,
            probe_set=last.probe_set if last else "",
            detail=last.detail if last else False,
            own=_own(recent),
            account=account,
            gpu=self._gpu,
            losses=self._losses,
            faults=tuple(self._faults),
            lines=self._line_cache,
            records=self._records,
            any_simulated=self._any_simulated,
            sass=tuple(self._sass),
            triage=self._triage,
            triage_steps=tuple(self._triage_steps[number] for number in sorted(self._triage_steps)),
            check_run=self._check_run,
            repeats=tuple(self._repeats),
            bench=tuple(self._bench.values()),
            bench_state=self._bench_state,
            sweep=self._sweep,
            sweep_points=tuple(self._sweep_points.values()),
            sweep_blocks=self._sweep_blocks,
            sweep_rejected=self._sweep_rejected,
            ab=self._ab,
            ab_arms=tuple(self._ab_arms[name] for name in sorted(self._ab_arms)),
            ab_blocks=tuple(self._ab_blocks),
            ab_pairs=tuple(self._ab_pairs),
        )
        return _with_verdict(snapshot)

    def _roles(self, recent: list[_Traced]) -> tuple[RoleView, ...]:
        names: dict[str, None] = {}
        for traced in recent[-32:]:
            for role in traced.sample.roles:
                names.setdefault(role.role)
        views = []
        for name in names:
            points, lately = [], []
            for traced in recent:
                sample = next((role for role in traced.sample.roles if role.role == name), None)
                if sample is None or sample.period_median_cycles is None:
                    continue
                points.append(Point(traced.time_s, sample.period_median_cycles))
                if traced.time_s >= self._time_s - RECENT_S:
                    lately.append(sample)
            pooled = _pooled(recent, name)
            p5, median, p95 = (float(x) for x in np.percentile(pooled, (5, 50, 95))) if len(pooled) else (None,) * 3
            views.append(
                RoleView(
                    name,
                    tuple(points),
                    points[-1].value if points else None,
                    median,
                    p5,
                    p95,
                    _mean([s.busy_cycles for s in lately]),
                    _mean_waits(lately),
                    sum(s.steps for s in lately),
                    _mean([s.tile_overhead_cycles for s in lately]),
                )
            )
        return tuple(views)


def _pooled(recent: list[_Traced], role: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    lists = [s.periods_cycles for traced in recent[-160:] for s in traced.sample.roles if s.role == role]
    return np.concatenate([np.asarray(x, dtype=np.float64) for x in lists]) if lists else np.zeros(0)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _mean_waits(samples: list[RoleSample]) -> tuple[tuple[str, float], ...]:
    causes: dict[str, list[float]] = {}
    for sample in samples:
        for cause, cycles in sample.waits_cycles.items():
            causes.setdefault(cause, []).append(cycles)
    return tuple((cause, sum(values) / len(values)) for cause, values in causes.items())


def _histogram(recent: list[_Traced]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Pooled periods per role, sorted, thinned to 512 values: enough for any pane's bins."""
    names = {role.role: None for traced in recent[-16:] for role in traced.sample.roles if role.periods_cycles}
    result = []
    for name in names:
        pooled = np.sort(_pooled(recent[-64:], name))
        thinned = pooled[:: max(1, len(pooled) // 512)]
        result.append((name, tuple(int(x) for x in thinned)))
    return tuple(result)


def fold_records(records: Iterable[Envelope]) -> Snapshot:
    """The state after all of them."""
    fold = Fold()
    for record in records:
        fold.feed(record)
    return fold.snapshot()


def _with_verdict(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, verdict=verdict(snapshot))


def _own(recent: Sequence[_Traced]) -> tuple[tuple[str, float], ...]:
    """Medians of the target's own figures."""
    names = dict.fromkeys(name for traced in recent for name in traced.sample.own)
    return tuple((n, float(np.median([t.sample.own[n] for t in recent if n in t.sample.own]))) for n in names)


def _host_us(bursts: Sequence[CleanBurst]) -> float | None:
    """What the host needs to queue a launch: median over bursts that say so."""
    known = [burst.host_us for burst in bursts if burst.host_us is not None]
    return float(np.median(known)) if known else None
