"""What a person chose to look at; not part of the session."""

from __future__ import annotations

from dataclasses import dataclass

METRICS = ("period", "time")
ZOOMS = (4, 2, 1)


@dataclass(frozen=True)
class View:
    """Immutable view state; changes make a new one."""

    role: str = ""
    metric: str = "period"
    zoom_steps: int = 4
    ascii_only: bool = False
    replay: str = ""
    paused: bool = False
    blocked: str = ""
    recording: bool = False
    ended: str = ""
