"""What an engine can be asked to do besides watching: a bench, a sweep. Jobs as data, and what they may use."""

from __future__ import annotations

import itertools
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from fa4top.engine.order import Order
from fa4top.engine.workers import WorkerProcess
from fa4top.records import Body, Check, GpuSample
from fa4top.targets.catalog import describe


@dataclass(frozen=True)
class BenchJob:
    """Microbenchmarks whose name or group contains one of ``names`` (none: all). ``arch``: compile for this one and run
    nothing; '' is the GPU that is here."""

    names: list[str] = field(default_factory=list)
    arch: str = ""
    kind: str = "bench"


@dataclass(frozen=True)
class SweepJob:
    """``knob`` takes each of ``values``, within each of ``series_knob``'s values (none: one series as it is).

    The settings of a series are compared in blocks until every verdict stands or ``budget_s`` seconds of blocks (for
    the whole sweep) are over; ``rounds``: launches of each traced twin; ``fresh``: how many of the best are measured
    again in fresh processes. ``margin``, ``l2`` and ``seed`` as in an A/B.
    """

    knob: str
    values: list[str]
    series_knob: str = ""
    series: list[str] = field(default_factory=list)
    rounds: int = 12
    margin: float = 0.01
    budget_s: float = 30.0
    fresh: int = 3
    l2: str = "cold"
    seed: int = 0
    kind: str = "sweep"


@dataclass(frozen=True)
class AbJob:
    """Compare two settings: changes of the order's knobs. ``margin`` is relative. ``until_decided``: end at the first
    verdict; else watch until ``budget_s`` seconds of blocks are over. ``seed`` of the coins. ``tier`` 2 replicates over
    up to ``pairs`` fresh pairs of processes. ``mode``: burst (speed at boost) or sustained (at power equilibrium).
    ``l2`` before each launch: cold or warm."""

    a: dict[str, str] = field(default_factory=dict)
    b: dict[str, str] = field(default_factory=dict)
    margin: float = 0.01
    budget_s: float = 30.0
    until_decided: bool = True
    seed: int = 0
    tier: int = 1
    pairs: int = 24
    mode: str = "burst"
    l2: str = "cold"
    kind: str = "ab"


@dataclass(frozen=True)
class CheckJob:
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
    kind: str = "check"


@dataclass(frozen=True)
class TriageJob:
    """The method's six steps on the present setting, as far as they can be done here. ``seconds`` of tracing;
    ``sweep_s`` seconds of blocks for the split; ``times`` launches for flakes. ``skip`` names steps that are left out
    (throughputs, trace, SASS, split, checks)."""

    seconds: float = 6.0
    sweep_s: float = 10.0
    times: int = 20
    skip: list[str] = field(default_factory=list)
    kind: str = "triage"


@dataclass(frozen=True)
class SassJob:
    """Read the compiled code of the present setting with changes ``a``, and, where ``b`` is not empty, with ``b``."""

    a: dict[str, str] = field(default_factory=dict)
    b: dict[str, str] = field(default_factory=dict)
    kind: str = "sass"


Job = BenchJob | SweepJob | AbJob | CheckJob | TriageJob | SassJob


def job_to_data(job: Job) -> dict[str, Any]:
    """For an order, or a command."""
    return asdict(job)


def job_from_data(data: dict[str, Any]) -> Job:
    """Read what ``job_to_data`` wrote.

    Raises:
        ValueError: no such job, or fields that do not fit; the text says which.
    """
    known: dict[str, type[Job]] = {
        "bench": BenchJob,
        "sweep": SweepJob,
        "ab": AbJob,
        "check": CheckJob,
        "triage": TriageJob,
        "sass": SassJob,
    }
    kind = str(data.get("kind", ""))
    if kind not in known:
        raise ValueError(f"no job '{kind}'; there are: {', '.join(known)}")
    try:
        return known[kind](**data)
    except TypeError as error:
        raise ValueError(f"{kind}: {error}") from error


def job_of_command(text: str) -> Job | None:
    """The job that a command line of ours asks for (what a triage suggests); None where it is none of these. Options
    that say target, shape and setting are the session's own."""
    words = text.split()
    if len(words) < 2 or words[0] != "fa4top":
        return None
    verb, rest = words[1], words[2:]
    end = rest.index("--target") if "--target" in rest else len(rest)
    own = rest[:end]

    def settings(flag: str) -> dict[str, str]:
        pairs = [value for name, value in itertools.pairwise(own) if name == flag]
        return dict(pair.split("=", 1) for pair in pairs)

    def option(flag: str, default: str) -> str:
        return next((value for name, value in itertools.pairwise(own) if name == flag), default)

    if verb == "ab":
        mode, tier = option("--mode", "burst"), int(option("--tier", "1"))
        return AbJob(settings("--a"), settings("--b"), tier=tier, mode=mode, budget_s=120.0 if tier == 2 else 30.0)
    if verb == "sweep" and own:
        knob, values = knob_values(own[0])
        return SweepJob(knob, values)
    if verb == "check":
        return CheckJob(settings("--a"), settings("--b"), int(option("--times", "20")), "--bisect" in own)
    if verb == "sass":
        return SassJob(settings("--a"), settings("--b"))
    return None


def changed_order(order: Order, changes: dict[str, str]) -> tuple[Order, list[str]]:
    """The order with some knobs changed, and why it can not be launched, if so: the first kind of reason only."""
    description = describe(order.target)
    knobs, problems = description.setting({**order.knobs, **changes})
    if not problems and (message := description.shape_problem(order.shape, order.arch, knobs)):
        problems = [message]
    if not problems and not order.unsafe and (message := description.danger(order.shape, order.arch, knobs)):
        problems = [message]
    return replace(order, knobs=knobs), problems


def knob_values(text: str) -> tuple[str, list[str]]:
    """``KNOB=VALUE,VALUE`` as a person types it; a value that comes twice counts once.

    Raises:
        ValueError: with the sentence for the person.
    """
    name, equals, rest = text.partition("=")
    values = [value.strip() for value in rest.split(",") if value.strip()]
    if not equals or not name.strip() or not values:
        raise ValueError(f"'{text}': write KNOB=VALUE,VALUE, for example p_split=1/4,1/2,3/4")
    return name.strip(), list(dict.fromkeys(values))


def margin_share(text: str) -> float:
    """``1%`` or ``0.01`` as a relative number.

    Raises:
        ValueError: with the sentence for the person.
    """
    match = re.fullmatch(r"\s*([\d.]+)\s*(%?)\s*", text)
    try:
        share = float(match[1]) / (100.0 if match[2] else 1.0) if match else 0.0
    except ValueError:
        share = 0.0
    if not 0.0 < share < 0.5:
        raise ValueError(f"margin {text}: write a share between 0 and 50%, for example 1%")
    return share


@dataclass(frozen=True)
class Resident:
    """The live plan's twins, checked and warm."""

    plan_id: int
    clean: WorkerProcess
    traced: WorkerProcess
    check: Check


class JobHost(Protocol):
    """What a job may use of the engine."""

    order: Order

    def append(self, body: Body) -> None:
        """Add a record to the log."""
        ...

    def say(self, level: str, text: str) -> None:
        """A sentence for the person."""
        ...

    def next_plan_id(self) -> int:
        """Number of a plan to come."""
        ...

    def resident(self, order: Order) -> Resident | None:
        """The live plan's twins when they run this order: they may be used, not ended."""
        ...

    async def live_round(self) -> None:
        """One round of the live plan, so that its screen goes on while a job gets ready."""
        ...

    async def start_worker(self, twin: str, order: Order, plan_id: int, bench: BenchJob | None = None) -> WorkerProcess:
        """A fresh worker process, for microbenchmarks or for the order's target; it is ended with the job."""
        ...

    async def end_worker(self, worker: WorkerProcess) -> None:
        """Stop a worker."""
        ...

    def read_gpu(self) -> None:
        """NVML's readings, if they are due."""
        ...

    def gpu_now(self) -> GpuSample | None:
        """NVML's readings at this moment, recorded; None where there are none."""
        ...

    def held_back(self) -> dict[str, int]:
        """NVML's counters of clocks held back at this moment; {} where there are none."""
        ...

    async def unpaused(self) -> None:
        """Return when launching is allowed."""
        ...
