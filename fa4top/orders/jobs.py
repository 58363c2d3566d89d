"""What an engine can be asked to do besides watching, as data. Standard library only.

One class a job; its ``kind`` is its name in orders, commands, findings and on the command line. What runs them is
``fa4top.engine.jobs``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

BURST, SUSTAINED = "burst", "sustained"
COLD, WARM = "cold", "warm"
JOB_TYPES: dict[str, type[Job]] = {}


class Job:
    """Base of all jobs."""

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind = kind
        JOB_TYPES[kind] = cls


@dataclass(frozen=True, kw_only=True)
class BenchJob(Job, kind="bench"):
    """Microbenchmarks whose name or group contains one of ``names`` (none: all). ``arch``: compile for this one and run
    nothing; '' is the GPU that is here."""

    names: list[str] = field(default_factory=list)
    arch: str = ""


@dataclass(frozen=True, kw_only=True)
class SweepJob(Job, kind="sweep"):
    """``knob`` takes each of ``values``, within each of ``series_knob``'s values (none: one series as it is).

    The settings of a series are compared in blocks until every verdict stands or ``budget_s`` seconds of blocks (for
    the whole sweep) are over; ``rounds``: launches of each traced twin; ``fresh``: how many of the best are measured
    again in fresh processes. ``most_blocks`` of a series (0: as many as there is time for). ``margin``, ``l2`` and
    ``seed`` as in an A/B.
    """

    knob: str
    values: list[str]
    series_knob: str = ""
    series: list[str] = field(default_factory=list)
    rounds: int = 8
    margin: float = 0.01
    budget_s: float = 30.0
    fresh: int = 3
    l2: str = COLD
    seed: int = 0
    most_blocks: int = 0


@dataclass(frozen=True, kw_only=True)
class AbJob(Job, kind="ab"):
    """Compare two settings: changes of the order's knobs. ``margin`` is relative. ``until_decided``: end at the first
    verdict; else watch until ``seconds`` of blocks, or ``most_blocks`` (0: no limit), are over. ``seed`` of the coins.
    ``tier`` 2 replicates over up to ``pairs`` fresh pairs of processes. ``mode``: burst (speed at boost) or sustained
    (at power equilibrium). ``l2`` before each launch: cold or warm. Both arms alike: a self-test."""

    a: dict[str, str] = field(default_factory=dict)
    b: dict[str, str] = field(default_factory=dict)
    margin: float = 0.01
    budget_s: float | None = None
    until_decided: bool = True
    seed: int = 0
    tier: int = 1
    pairs: int = 24
    mode: str = BURST
    l2: str = COLD
    most_blocks: int = 0

    @property
    def seconds(self) -> float:
        """The budget, or what the tier and the mode usually need."""
        if self.budget_s is not None:
            return self.budget_s
        return 600.0 if self.tier == 2 else 120.0 if self.mode == SUSTAINED else 30.0


@dataclass(frozen=True, kw_only=True)
class CheckJob(Job, kind="check"):
    """Launch a baseline (changes ``a`` of the order's knobs) and another setting (changes ``b`` of that; none: the
    baseline alone) ``times`` times each, and compare outputs. ``bisect``: find the knob that changes them. ``save``:
    keep the baseline's output in this file; ``against``: hold the present setting against such a file, and launch no
    other baseline."""

    a: dict[str, str] = field(default_factory=dict)
    b: dict[str, str] = field(default_factory=dict)
    times: int = 20
    bisect: bool = False
    save: str = ""
    against: str = ""


@dataclass(frozen=True, kw_only=True)
class TriageJob(Job, kind="triage"):
    """The method's six steps on the present setting, as far as they can be done here. ``seconds`` of tracing;
    ``sweep_s`` seconds of blocks for the split; ``times`` launches for flakes. ``skip`` names steps that are left out
    (throughputs, trace, SASS, split, checks)."""

    seconds: float = 6.0
    sweep_s: float = 10.0
    times: int = 20
    skip: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SassJob(Job, kind="sass"):
    """Read the compiled code of the present setting with changes ``a``, and, where ``b`` is not empty, with ``b``."""

    a: dict[str, str] = field(default_factory=dict)
    b: dict[str, str] = field(default_factory=dict)


def job_to_data(job: Job) -> dict[str, Any]:
    """For an order, a command or a record."""
    return {"kind": job.kind, **asdict(job)}  # type: ignore[call-overload]


def job_type(data: dict[str, Any]) -> tuple[type[Job], dict[str, Any]]:
    """The class that ``job_to_data`` wrote, and its fields.

    Raises:
        ValueError: no such job; the text names those that exist.
    """
    fields = dict(data)
    kind = str(fields.pop("kind", ""))
    if kind not in JOB_TYPES:
        raise ValueError(f"no job '{kind}'; there are: {', '.join(JOB_TYPES)}")
    return JOB_TYPES[kind], fields


def job_from_data(data: dict[str, Any]) -> Job:
    """Read what ``job_to_data`` wrote. Types are not looked at: what comes from outside goes through
    ``fa4top.engine.commands``.

    Raises:
        ValueError: no such job, or fields that do not fit; the text says which.
    """
    kind, fields = job_type(data)
    try:
        return kind(**fields)
    except TypeError as error:
        raise ValueError(f"{kind.kind}: {error}") from error
