"""What an engine asks of its workers, as typed messages: one JSON object a line. Standard library only.

A worker's first line says what it is (``Serve``, ``StandBy``, ``Bench``, ``Compile``); the later ones are commands,
each with the kind of record that answers it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from fa4top.orders.jobs import WARM
from fa4top.records import Shape

PRIMERS = 2  # launches before the timed ones
MESSAGES: dict[str, type[Message]] = {}


class Message:
    """Base of all that goes to a worker; ``do`` is its tag, ``answer`` the kind of record that comes back."""

    do: ClassVar[str] = ""
    answer: ClassVar[str] = ""

    def __init_subclass__(cls, do: str, answer: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.do, cls.answer = do, answer
        MESSAGES[do] = cls


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """One worker's job: a (target, shape, setting, twin) on one GPU."""

    target: str
    shape: Shape
    knobs: dict[str, str]
    twin: str
    seed: int
    gpu_uuid: str
    detail: bool = False
    inflight: bool = False
    probe_set: str = ""
    fault: str = ""
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Serve(Message, do="serve"):
    """Compile this, then obey commands."""

    worker: str
    plan_id: int
    request: LaunchRequest


@dataclass(frozen=True, kw_only=True)
class StandBy(Message, do="stand by"):
    """Import what the target needs, and wait for ``Serve``."""

    target: str
    knobs: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Bench(Message, do="bench"):
    """Microbenchmarks: see ``fa4top.orders.jobs.BenchJob``."""

    worker: str
    plan_id: int
    names: list[str]
    arch: str


@dataclass(frozen=True, kw_only=True)
class Compile(Message, do="compile"):
    """Compile one setting without a GPU, and leave ``out``.cubin, .ptx and .json."""

    target: str
    shape: Shape
    arch: str
    knobs: dict[str, str]
    probe_set: str
    out: str


@dataclass(frozen=True, kw_only=True)
class Stop(Message, do="stop"):
    """End."""


@dataclass(frozen=True, kw_only=True)
class CheckOutput(Message, do="check", answer="check"):
    """Launch once and compare with FP32."""


@dataclass(frozen=True, kw_only=True)
class CleanLaunches(Message, do="clean", answer="clean"):
    """Time ``launches`` launches after ``primers``; ``deadline_s``: after this one of them hangs."""

    launches: int
    l2: str = WARM
    primers: int = PRIMERS
    deadline_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class TracedLaunch(Message, do="trace", answer="trace"):
    """One launch in which this CTA records."""

    cta: int
    timeline: bool = False
    deadline_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class RepeatLaunches(Message, do="repeat", answer="repeats"):
    """Many launches into buffers full of NaN; the first output is kept in a file, or held against a kept one."""

    times: int
    setting: str = ""
    against: str = ""
    keep: str = ""
    deadline_s: float | None = None


def to_line(message: Message) -> bytes:
    """One line for a worker's standard input."""
    return json.dumps({"do": message.do, **asdict(message)}).encode() + b"\n"  # type: ignore[call-overload]


def from_line(line: str | bytes) -> Message:
    """Read what ``to_line`` wrote.

    Raises:
        ValueError: it is no message; the text says why.
    """
    data = json.loads(line)
    if not isinstance(data, dict) or data.get("do") not in MESSAGES:
        raise ValueError(f"no message: {str(data)[:80]}")
    kind = MESSAGES[data.pop("do")]
    try:
        if isinstance(data.get("request"), dict):
            data["request"] = LaunchRequest(**{**data["request"], "shape": Shape(**data["request"]["shape"])})
        if isinstance(data.get("shape"), dict):
            data["shape"] = Shape(**data["shape"])
        return kind(**data)
    except (TypeError, KeyError) as error:
        raise ValueError(f"{kind.do}: {error}") from error
