"""A job as the command line that asks for it. Pure; the commands of ``fa4top.cli`` read back what is drawn here."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fa4top.orders.jobs import AbJob, BenchJob, CheckJob, Job, SassJob, SweepJob, TriageJob
from fa4top.orders.shapes import format_shape
from fa4top.orders.typed import budget_text, margin_text
from fa4top.records import Shape


@dataclass(frozen=True)
class Setting:
    """What a command line says of target, problem and setting: ``chosen`` are the knobs that are not at their
    default."""

    target: str
    shape: Shape
    arch: str
    chosen: Mapping[str, str] = field(default_factory=dict)

    def words(self) -> list[str]:
        """Options that every command of a job takes."""
        shape = self.shape
        found = ["--target", self.target, "--shape", format_shape(shape), "--dtype", shape.dtype]
        found += ["--causal"] if shape.causal else []
        for name, value in self.chosen.items():
            found += ["--set", f"{name}={value}"]
        return found


def command_line(job: Job, setting: Setting) -> str:
    """The whole line, quoted for a shell."""
    words = [*job_words(job), *setting.words()]
    if isinstance(job, SassJob) and setting.arch:
        words += ["--arch", setting.arch]  # it compiles, and knows no GPU
    return shlex.join(["fa4top", *words])


def short_command(job: Job) -> str:
    """The line without target, problem and setting: for a screen that shows them already."""
    return shlex.join(["fa4top", *job_words(job)])


def job_words(job: Job) -> list[str]:
    """The command and the options that make this job; what is at its default is left out."""
    words = [job.kind, *_POSITIONAL.get(type(job), lambda _: [])(job)]
    if isinstance(job, AbJob) and job.a == job.b:
        words.append("--self-test")
    for each in fields(job):  # type: ignore[arg-type]
        draw = _OPTIONS.get((type(job), each.name))
        value = getattr(job, each.name)
        if draw is not None and value != _default(type(job), each.name):
            words += draw(value, job)
    return words


def _default(kind: type[Job], name: str) -> Any:
    found = next(each for each in fields(kind) if each.name == name)  # type: ignore[arg-type]
    return found.default_factory() if callable(found.default_factory) else found.default


def _flag(flag: str, text: Callable[[Any], str] = str) -> Callable[[Any, Any], list[str]]:
    return lambda value, job: [flag, text(value)]


def _on(flag: str) -> Callable[[Any, Any], list[str]]:
    return lambda value, job: [flag]


def _each(flag: str) -> Callable[[Any, Any], list[str]]:
    def draw(value: Any, job: Any) -> list[str]:
        items = [f"{name}={text}" for name, text in value.items()] if isinstance(value, dict) else value
        return [word for item in items for word in (flag, item)]

    return draw


def _arm_b(value: Any, job: Any) -> list[str]:
    return [] if isinstance(job, AbJob) and job.a == job.b else _each("--b")(value, job)


_POSITIONAL: dict[type[Job], Callable[[Any], list[str]]] = {
    BenchJob: lambda job: list(job.names),
    SweepJob: lambda job: [
        f"{job.knob}={','.join(job.values)}",
        *([f"{job.series_knob}={','.join(job.series)}"] if job.series_knob else []),
    ],
}
_OPTIONS: dict[tuple[type[Job], str], Callable[[Any, Any], list[str]]] = {
    (BenchJob, "arch"): _flag("--arch"),
    (SweepJob, "rounds"): _flag("--rounds"),
    (SweepJob, "margin"): _flag("--margin", margin_text),
    (SweepJob, "budget_s"): _flag("--budget", budget_text),
    (SweepJob, "fresh"): _flag("--fresh"),
    (SweepJob, "l2"): _flag("--l2"),
    (SweepJob, "seed"): _flag("--coins"),
    (SweepJob, "most_blocks"): _flag("--blocks"),
    (AbJob, "a"): _each("--a"),
    (AbJob, "b"): _arm_b,
    (AbJob, "margin"): _flag("--margin", margin_text),
    (AbJob, "budget_s"): _flag("--budget", budget_text),
    (AbJob, "until_decided"): _on("--watch"),
    (AbJob, "seed"): _flag("--coins"),
    (AbJob, "tier"): _flag("--tier"),
    (AbJob, "pairs"): _flag("--pairs"),
    (AbJob, "mode"): _flag("--mode"),
    (AbJob, "l2"): _flag("--l2"),
    (AbJob, "most_blocks"): _flag("--blocks"),
    (CheckJob, "a"): _each("--a"),
    (CheckJob, "b"): _each("--b"),
    (CheckJob, "times"): _flag("--times"),
    (CheckJob, "bisect"): _on("--bisect"),
    (CheckJob, "save"): _flag("--save"),
    (CheckJob, "against"): _flag("--against"),
    (TriageJob, "seconds"): _flag("--seconds"),
    (TriageJob, "sweep_s"): _flag("--sweep-budget", budget_text),
    (TriageJob, "times"): _flag("--times"),
    (TriageJob, "skip"): _each("--skip"),
    (SassJob, "a"): _each("--a"),
    (SassJob, "b"): _each("--b"),
}
