"""All that a viewer needs at one moment: the model that widgets, text, reports and exports draw. Immutable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fa4top.analysis.chip.floors import Floors, plan_floors
from fa4top.analysis.view.account import Account
from fa4top.analysis.view.jobs import AbFacts, BenchFacts, CheckFacts, SassFacts, SweepFacts, TriageFacts
from fa4top.records import Check, EngineState, Fault, Geometry, GpuSample, Header, Plan, RoleMap, Timeline, WorkerState

# recordings from before a target named its lead: FA4's own roles
OLD_LEADS = ("softmax0", "mma0")
OLD_MMA = ("mma", "mma0")


class Point(NamedTuple):
    """One sample of a series: seconds of the log's monotonic clock, and a value."""

    time_s: float
    value: float


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line of the log screen."""

    seq: int
    wall_ns: int
    level: str
    source: str
    text: str


@dataclass(frozen=True, kw_only=True)
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
class Sentence:
    """An answer in words; ``bad``: something is wrong, and it says what."""

    text: str = ""
    bad: bool = False


@dataclass(frozen=True, kw_only=True)
class LiveFacts:
    """The plan that is watched, and the last minute of it."""

    header: Header | None = None
    engine: EngineState | None = None
    plan: Plan | None = None
    geometry: Geometry | None = None
    role_map: RoleMap | None = None
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
    records: int = 0
    any_simulated: bool = False


@dataclass(frozen=True, kw_only=True)
class Snapshot(LiveFacts, BenchFacts, SweepFacts, AbFacts, SassFacts, TriageFacts, CheckFacts):
    """The live plan and the results of the session's jobs. ``verdict`` is the live sentence."""

    verdict: Sentence = Sentence()

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

    @property
    def prefix(self) -> str:
        """The label in front of a title, with blanks; '' where there is none."""
        return f"{self.label}  " if self.label else ""

    @property
    def suffix(self) -> str:
        """The label behind a sentence, in brackets; '' where there is none."""
        return f" ({self.label})" if self.label else ""

    def role(self, name: str) -> RoleView | None:
        """A role by name."""
        return next((view for view in self.roles if view.role == name), None)

    def _first_of(self, names: tuple[str, ...]) -> RoleView | None:
        return next((view for name in names if (view := self.role(name))), None)

    @property
    def lead(self) -> RoleView | None:
        """The role whose period stands for the kernel."""
        names = (self.role_map.lead,) if self.role_map else OLD_LEADS
        return self._first_of(names) or (self.roles[0] if self.roles else None)

    @property
    def mma(self) -> RoleView | None:
        """The role whose waits say what the tensor cores wait for."""
        return self._first_of(tuple(self.role_map.mma) if self.role_map else OLD_MMA)
