"""Results of jobs, folded: for each job what a viewer sees of it (``...Facts``), and how records become that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fa4top.records import (
    AbArm,
    AbBlock,
    AbPair,
    AbState,
    BenchResult,
    Body,
    CheckRun,
    Fault,
    Repeats,
    SassReport,
    SweepBlock,
    SweepPoint,
    SweepState,
    TriageRun,
    TriageStep,
    WorkerState,
)

MAX_BLOCKS = 1000
BENCH_TWIN = "bench"

Tell = Callable[[str, str], None]  # level and text of a line for the log screen
B = TypeVar("B", bound=Body)


class JobFold:
    """One job's records. Handlers are methods named in ``takes``, by the kind of record."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.takes: Mapping[type[Body], Callable[[Any], None]] = {}

    def facts(self) -> dict[str, Any]:
        """Fields of the snapshot."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class BenchFacts:
    """Microbenchmarks."""

    bench: tuple[BenchResult, ...] = ()
    bench_state: WorkerState | None = None


class BenchFold(JobFold):
    """The latest run's results, by name."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        self._results: dict[str, BenchResult] = {}
        self._state: WorkerState | None = None
        self.takes = {BenchResult: self._result, WorkerState: self._worker, Fault: self._fault}

    def _worker(self, state: WorkerState) -> None:
        if state.twin != BENCH_TWIN:
            return
        if state.state == "importing":
            self._results = {}
        self._state = state

    def _result(self, result: BenchResult) -> None:
        self._results[result.name] = result
        if result.status in ("refused", "failed"):
            self._tell("warning", f"bench: {result.name} {result.status}: {result.text}")

    def _fault(self, fault: Fault) -> None:
        if self._state is not None and fault.worker == self._state.worker:
            why = f"{fault.reason}: {fault.text}. Try: {fault.hint}"
            self._state = replace(self._state, state="dead", text=why)

    def facts(self) -> dict[str, Any]:
        """Results so far, and what the worker does."""
        return {"bench": tuple(self._results.values()), "bench_state": self._state}


@dataclass(frozen=True, kw_only=True)
class SweepFacts:
    """The latest sweep."""

    sweep: SweepState | None = None
    sweep_points: tuple[SweepPoint, ...] = ()
    sweep_blocks: int = 0
    sweep_rejected: int = 0


class SweepFold(JobFold):
    """Points by place; blocks are counted."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        self._state: SweepState | None = None
        self._points: dict[tuple[str, str], SweepPoint] = {}
        self.blocks: dict[int, tuple[int, int]] = {}  # by sweep: all, rejected
        self.takes = {SweepState: self._run, SweepPoint: self._point, SweepBlock: self._block}

    def _run(self, state: SweepState) -> None:
        if self._state is None or self._state.sweep_id != state.sweep_id:
            self._points = {}
        self._state = state
        self._tell("info", f"sweep {state.knob} {state.state} {state.text}".rstrip())

    def _block(self, block: SweepBlock) -> None:
        count, rejected = self.blocks.get(block.sweep_id, (0, 0))
        self.blocks[block.sweep_id] = (count + 1, rejected + (not block.accepted))

    def _point(self, point: SweepPoint) -> None:
        self._points[point.series, point.value] = point
        if point.status not in ("measured", "null"):
            self._tell("warning", f"sweep: {f'{point.series} {point.value}'.strip()} {point.status}: {point.text}")

    def facts(self) -> dict[str, Any]:
        """The plan, its points, how many blocks count."""
        count, rejected = self.blocks.get(self._state.sweep_id, (0, 0)) if self._state else (0, 0)
        return {
            "sweep": self._state,
            "sweep_points": tuple(self._points.values()),
            "sweep_blocks": count,
            "sweep_rejected": rejected,
        }


@dataclass(frozen=True, kw_only=True)
class AbFacts:
    """The latest A/B, unless it was cleared."""

    ab: AbState | None = None
    ab_arms: tuple[AbArm, ...] = ()
    ab_blocks: tuple[AbBlock, ...] = ()
    ab_pairs: tuple[AbPair, ...] = ()


class AbFold(JobFold):
    """Arms by name; the last blocks and pairs."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        self._state: AbState | None = None
        self._forget()
        self.takes = {AbState: self._run, AbBlock: self._block, AbArm: self._arm, AbPair: self._pair}

    def _forget(self) -> None:
        self._arms: dict[str, AbArm] = {}
        self._blocks: deque[AbBlock] = deque(maxlen=MAX_BLOCKS)
        self._pairs: deque[AbPair] = deque(maxlen=MAX_BLOCKS)

    def _run(self, state: AbState) -> None:
        if self._state is None or self._state.ab_id != state.ab_id or state.state == "cleared":
            self._forget()
        self._state = None if state.state == "cleared" else state
        self._tell("info", f"A/B {state.state} {state.text}".rstrip())

    def _block(self, block: AbBlock) -> None:
        # what a launch took stays in the log; a screen needs the block's outcome
        self._blocks.append(replace(block, slices_us=[]))
        if not block.accepted:
            self._tell("warning", f"A/B block {block.number} rejected: {block.reason}")

    def _arm(self, arm: AbArm) -> None:
        self._arms[arm.arm] = arm

    def _pair(self, pair: AbPair) -> None:
        self._pairs.append(pair)

    def facts(self) -> dict[str, Any]:
        """The plan, its arms, its blocks and pairs."""
        return {
            "ab": self._state,
            "ab_arms": tuple(self._arms[name] for name in sorted(self._arms)),
            "ab_blocks": tuple(self._blocks),
            "ab_pairs": tuple(self._pairs),
        }


@dataclass(frozen=True, kw_only=True)
class SassFacts:
    """The settings whose compiled code was read in the latest run."""

    sass: tuple[SassReport, ...] = ()


class SassFold(JobFold):
    """Reports of one run."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        self._reports: list[SassReport] = []
        self.takes = {SassReport: self._report}

    def _report(self, report: SassReport) -> None:
        self._reports = [known for known in self._reports if known.run_id == report.run_id] + [report]

    def facts(self) -> dict[str, Any]:
        """Reports in their order."""
        return {"sass": tuple(self._reports)}


@dataclass(frozen=True, kw_only=True)
class TriageFacts:
    """The latest triage."""

    triage: TriageRun | None = None
    triage_steps: tuple[TriageStep, ...] = ()


class TriageFold(JobFold):
    """Steps by number; a later one replaces an earlier."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        self._run: TriageRun | None = None
        self._steps: dict[int, TriageStep] = {}
        self.takes = {TriageRun: self._begun, TriageStep: self._step}

    def _begun(self, run: TriageRun) -> None:
        if self._run is None or run.run_id != self._run.run_id:
            self._steps = {}
        self._run = run

    def _step(self, step: TriageStep) -> None:
        self._steps[step.number] = step

    def facts(self) -> dict[str, Any]:
        """The run and its steps in order."""
        return {"triage": self._run, "triage_steps": tuple(self._steps[n] for n in sorted(self._steps))}


@dataclass(frozen=True, kw_only=True)
class CheckFacts:
    """The latest check of outputs."""

    check_run: CheckRun | None = None
    repeats: tuple[Repeats, ...] = ()


class CheckFold(JobFold):
    """Settings in the order of their launch."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(tell)
        self._run: CheckRun | None = None
        self._repeats: list[Repeats] = []
        self.takes = {CheckRun: self._begun, Repeats: self._repeat}

    def _begun(self, run: CheckRun) -> None:
        if self._run is None or run.run_id != self._run.run_id:
            self._repeats = []
        self._run = run
        if run.state != "running":
            self._tell("info" if run.passed else "error", f"check: {run.text}")

    def _repeat(self, found: Repeats) -> None:
        # the worker's own, then the engine's with its verdict
        self._repeats = [known for known in self._repeats if known.worker != found.worker] + [found]

    def facts(self) -> dict[str, Any]:
        """The run and its settings."""
        return {"check_run": self._run, "repeats": tuple(self._repeats)}


JOB_FOLDS: tuple[type[JobFold], ...] = (BenchFold, SweepFold, AbFold, SassFold, TriageFold, CheckFold)
