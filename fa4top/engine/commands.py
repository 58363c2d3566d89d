"""What viewers ask of an engine, and jobs, decoded from JSON with their types looked at. Nothing else may come in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from fa4top.orders.jobs import Job, job_type


@dataclass(frozen=True)
class Hello:
    """Here is a viewer."""


@dataclass(frozen=True)
class StopEngine:
    """End the session."""


@dataclass(frozen=True)
class Pause:
    """No launches until resumed."""


@dataclass(frozen=True)
class Resume:
    """Launch again."""


@dataclass(frozen=True)
class Clear:
    """End the A/B and forget it."""


@dataclass(frozen=True, kw_only=True)
class ChangePlan:
    """Another plan: sizes as ``parse_shape`` reads them ('' as they are), mask and dtype where given, changed knobs."""

    shape: str = ""
    causal: bool | None = None
    dtype: str | None = None
    knobs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StartJob:
    """A job; the plan goes on afterwards."""

    job: dict[str, Any]


T = TypeVar("T")
ControlCommand = Hello | StopEngine | Pause | Resume | Clear | ChangePlan | StartJob
_COMMANDS: dict[str, type[ControlCommand]] = {
    "hello": Hello,
    "stop": StopEngine,
    "pause": Pause,
    "resume": Resume,
    "clear": Clear,
    "plan": ChangePlan,
    "job": StartJob,
}


def command_of(data: dict[str, Any]) -> ControlCommand:
    """A viewer's command.

    Raises:
        ValueError: it is none, or a field has another type than it must; the text says which.
    """
    fields = dict(data)
    kind = fields.pop("do", None)
    if not isinstance(kind, str) or kind not in _COMMANDS:
        raise ValueError(f"unknown command {str(kind)[:40]}; there are: {', '.join(_COMMANDS)}")
    return _convert(kind, fields, _COMMANDS[kind])


def checked_job(data: dict[str, Any]) -> Job:
    """A job, as ``job_to_data`` wrote it or somebody typed it.

    Raises:
        ValueError: no such job, an unknown field, or one of another type than it must have.
    """
    kind, fields = job_type(data)
    return _convert(kind.kind, fields, kind)


def _convert(name: str, fields: dict[str, Any], kind: type[T]) -> T:
    known = set(getattr(kind, "__dataclass_fields__", ()))
    if unknown := sorted(set(fields) - known):
        raise ValueError(f"{name}: no field {', '.join(unknown)}; there are: {', '.join(sorted(known)) or 'none'}")
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}") from error
