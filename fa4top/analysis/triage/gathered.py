"""What triage judges by: the session's state, the code's SASS, and what can be tried next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fa4top.analysis.chip.floors import Floors, sass_floors
from fa4top.analysis.sass.compare import step_of
from fa4top.analysis.sass.kernel import KernelSass
from fa4top.analysis.view.snapshot import RoleView, Snapshot
from fa4top.orders.command_line import Setting, command_line
from fa4top.orders.jobs import Job, SweepJob, job_to_data
from fa4top.records import TriageFinding

LARGE_TAIL, SHORT_US = 0.3, 100.0
HIGH, MEDIUM, LOW = "high", "medium", "low"


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What was gathered. ``setting`` names target, shape and knobs for command lines; ``tries`` are the knob and its
    values to sweep for a cause (handoff, load), where the target has one on this chip."""

    snapshot: Snapshot
    setting: Setting | None = None
    sass: KernelSass | None = None
    sass_why_not: str = ""
    tries: Mapping[str, tuple[str, list[str]]] = field(default_factory=dict)

    @property
    def arch(self) -> str:
        """The chip."""
        return self.snapshot.plan.arch if self.snapshot.plan else ""

    @property
    def split_knob(self) -> str:
        """What places the first signal of P; '' where nothing does."""
        return self.tries.get("handoff", ("", []))[0]

    @property
    def sass_floors(self) -> Floors | None:
        """Floors of the softmax step's own instructions."""
        role = step_of(self.sass) if self.sass is not None else None
        return sass_floors(role.step_units, role.step_mix.ex2, self.arch, self.snapshot.bench) if role else None

    def wait_share(self, role: RoleView | None, *causes: str) -> float:
        """Part of a role's step spent in these waits; 0 where that is not known."""
        if role is None or not role.step_cycles:
            return 0.0
        return sum(cycles for cause, cycles in role.waits_cycles if cause in causes) / role.step_cycles

    @property
    def wait_p(self) -> float:
        """Part of the MMA role's step that waits for P, both signals."""
        return self.wait_share(self.snapshot.mma, "wait P", "wait P 2nd")

    def sweep(self, cause: str) -> SweepJob | None:
        """What to sweep for this cause; None where there is nothing, or it has been swept."""
        knob, values = self.tries.get(cause, ("", []))
        swept = self.snapshot.sweep.knob if self.snapshot.sweep is not None else ""
        return SweepJob(knob=knob, values=values) if knob and swept != knob else None

    def finding(self, key: str, text: str, confidence: str, falsify: str, job: Job | None = None) -> TriageFinding:
        """A finding, with the job that would show more."""
        data = job_to_data(job) if job is not None else {}
        line = command_line(job, self.setting) if job is not None and self.setting is not None else ""
        return TriageFinding(key=key, text=text, confidence=confidence, falsify=falsify, job=data, command=line)


def small(e: Gathered) -> bool:
    """Is the problem too small for the clean period to be one of steps?"""
    account = e.snapshot.account
    return (account is not None and account.tail > LARGE_TAIL) or (e.snapshot.clean_us or 0.0) < SHORT_US
