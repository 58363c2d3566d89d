"""Event ids, as data. Names here are the names on the screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """One thing a probe can report. ``wait`` names the cause when the span is a wait; ``detail`` marks events that
    stand inside a compute stream and are good for proportions only."""

    id: int
    name: str
    wait: str | None = None
    detail: bool = False


EVENTS: tuple[Event, ...] = (
    Event(1, "step"),
    Event(2, "tile"),
    Event(3, "wait K", wait="wait K"),
    Event(4, "wait V", wait="wait V"),
    Event(5, "turn", wait="turn"),
    Event(6, "wait KV", wait="wait KV"),
    Event(7, "wait P", wait="wait P"),
    Event(8, "wait P 2nd", wait="wait P 2nd"),
    Event(9, "wait S", wait="wait S"),
    Event(10, "wait corr", wait="wait corr"),
    Event(11, "wait stats", wait="wait stats"),
    Event(12, "wait Q", wait="wait Q"),
    Event(13, "QK"),
    Event(14, "PV"),
    Event(15, "P 1st part"),
    Event(16, "P rest"),
    Event(17, "rescale"),
    Event(18, "epilogue"),
    Event(19, "GEMMs issued"),
    Event(20, "softmax", detail=True),
    Event(21, "row max", detail=True),
    Event(22, "exp2", detail=True),
    Event(23, "store P", detail=True),
    Event(24, "S ready"),
    Event(25, "mask", detail=True),
    Event(26, "wait P free", wait="wait P free"),
    Event(27, "wait slot", wait="wait slot"),
    Event(28, "wait sum", wait="wait sum"),
    Event(29, "wait S free", wait="wait S free"),
    Event(30, "quantise P", detail=True),
)

BY_NAME: dict[str, Event] = {event.name: event for event in EVENTS}
BY_ID: dict[int, Event] = {event.id: event for event in EVENTS}

# 16-byte records: what the three words after the tag mean
WIDE_STEP = 40  # turn begin clock, turn end clock, wait K (low 16) and wait V (high 16) in cycles
WIDE_TILE = 41  # tile begin clock, epilogue begin clock, tile end clock
WIDE_PHASES = 42  # detail: GEMMs issued clock, softmax end clock, nothing

WIDE_WAIT_LIMIT = 0xFFFF  # a packed wait saturates here


def event_id(name: str) -> int:
    """Id of a named event; KeyError when there is none."""
    return BY_NAME[name].id
