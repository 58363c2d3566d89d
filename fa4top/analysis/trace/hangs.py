"""A launch that does not end: what each role waits for, and which signal is missing. Pure, on what was captured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fa4top.analysis.trace.decode import RoleTrace
from fa4top.analysis.trace.events import BY_ID, event_id
from fa4top.analysis.trace.family import Family
from fa4top.analysis.trace.layout import BEGIN
from fa4top.analysis.trace.steps import q_stages, step_begins

FINISHED, WAITING, RUNNING, ABSENT = "finished", "waiting", "running", "never started"


@dataclass(frozen=True, kw_only=True)
class RoleState:
    """Where a role stands. ``waiting_for`` is the cause of a wait that has not ended; ``steps`` and ``tiles`` count
    those begun and ended; ``last`` is its last event."""

    role: str
    state: str
    waiting_for: str
    steps: int
    tiles: int
    last: str

    def sentence(self) -> str:
        """In words."""
        where = f"step {self.steps}, tile {self.tiles + 1}"
        if self.state == WAITING:
            return f"{self.role}: waits for {self.waiting_for.removeprefix('wait ')}, {where}"
        if self.state == RUNNING:
            return f"{self.role}: last seen at {self.last or 'its start'}, {where}"
        return f"{self.role}: {self.state}"


def role_state(trace: RoleTrace, family: Family, stages: int) -> RoleState:
    """The state of one role; an open wait is a begin without its end, the role's last event."""
    stream = trace.stream
    steps = len(step_begins(trace, family, stages))
    tiles = len(trace.marks(event_id("tile")))
    if trace.header.finished:
        return RoleState(role=trace.role, state=FINISHED, waiting_for="", steps=steps, tiles=tiles, last="")
    if not len(stream.key):
        return RoleState(role=trace.role, state=RUNNING, waiting_for="", steps=0, tiles=0, last="")
    key = int(stream.key[-1])
    event = BY_ID.get(key >> 2)
    name = event.name if event is not None else "an unknown event"
    if event is not None and event.wait and key & 3 == BEGIN:
        return RoleState(role=trace.role, state=WAITING, waiting_for=event.wait, steps=steps, tiles=tiles, last=name)
    return RoleState(role=trace.role, state=RUNNING, waiting_for="", steps=steps, tiles=tiles, last=name)


def role_states(traces: Sequence[RoleTrace], roles: Sequence[str], family: Family) -> list[RoleState]:
    """All roles of a layout; one without a trace never started."""
    stages = q_stages(traces, family)
    by_name = {trace.role: trace for trace in traces}
    return [
        role_state(by_name[role], family, stages)
        if role in by_name
        else RoleState(role=role, state=ABSENT, waiting_for="", steps=0, tiles=0, last="")
        for role in roles
    ]


def explain(states: Sequence[RoleState], family: Family) -> str:
    """Which wait can not be satisfied, and whose signal is missing, as far as the waits tell."""
    by_name = {state.role: state for state in states}
    waiting = [state for state in states if state.state == WAITING]
    if not waiting:
        seen = "; ".join(state.sentence() for state in states if state.state == RUNNING)
        return f"no role is seen waiting ({seen}): it computes without end, or waits where there is no probe"
    for state in waiting:
        senders = _senders(state, by_name, family)
        if not senders:
            return f"{state.sentence()}: that comes from {_sent_by(state, family)}, which is not traced"
        if all(sender.state in (FINISHED, ABSENT) for sender in senders):
            gone = " and ".join(f"{sender.role} {_gone(sender)}" for sender in senders)
            return f"{state.sentence()}: nobody will send it, {gone}"
    for state in waiting:
        passed = [
            s for s in _senders(state, by_name, family) if s.waiting_for == family.passed_by.get(state.waiting_for, "?")
        ]
        if passed:
            # who lacks an answer stands furthest back
            behind = [sender for sender in passed if sender.steps == min(s.steps for s in passed)]
            names = " or ".join(sender.role for sender in behind)
            what = state.waiting_for.removeprefix("wait ")
            return (
                f"{state.sentence()}; {'; '.join(sender.sentence() for sender in behind)}: {names} waits behind the "
                f"place where {what} is sent: that signal was lost"
            )
    for state in waiting:
        for sender in _senders(state, by_name, family):
            if sender.state == WAITING and state in _senders(sender, by_name, family) and sender.steps > state.steps:
                what = state.waiting_for.removeprefix("wait ")
                return (
                    f"{state.sentence()}; {sender.sentence()}: {sender.role} is ahead, so it sent {what}, or passed by "
                    "it: that signal was lost"
                )
    if cycle := _cycle(waiting, by_name, family):
        return "each waits for the next: " + ", ".join(state.sentence() for state in cycle)
    busy = [s for state in waiting for s in _senders(state, by_name, family) if s.state == RUNNING]
    names = ", ".join(dict.fromkeys(state.role for state in busy))
    return (
        f"all wait for {names}, which does not wait: last seen at {busy[0].last or 'its start'}, step {busy[0].steps}"
    )


def _gone(state: RoleState) -> str:
    return "has finished" if state.state == FINISHED else "never started"


def _sent_by(state: RoleState, family: Family) -> str:
    return " or ".join(family.senders.get(state.waiting_for, ("a role that is not known",)))


def _senders(state: RoleState, by_name: Mapping[str, RoleState], family: Family) -> list[RoleState]:
    names = family.senders.get(state.waiting_for, ())
    return [by_name[name] for name in by_name if name in names and by_name[name] is not state]


def _cycle(waiting: Sequence[RoleState], by_name: Mapping[str, RoleState], family: Family) -> list[RoleState]:
    """Roles of which each waits for the next and the last for the first; [] when there are none."""
    for start in waiting:
        path = [start]
        while True:
            following = next((s for s in _senders(path[-1], by_name, family) if s.state == WAITING), None)
            if following is None:
                break
            if following in path:
                return path[path.index(following) :]
            path.append(following)
    return []
