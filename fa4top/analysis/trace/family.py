"""What the analysis must know of a kernel family, as a value that its target brings along.

Nothing in ``analysis`` compares a family's name: a new kernel is a new value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fa4top.analysis.trace.capture import Capture, Decoded
from fa4top.records import RoleMap


@dataclass(frozen=True)
class StepRule:
    """What begins a step of a role: an event's mark, or its begin; ``per_stage`` when each Q stage has one."""

    event: str
    is_mark: bool
    per_stage: bool = False


@dataclass(frozen=True)
class WorkSpan:
    """A bar of the timeline between marks, where coarse probes leave work unnamed.

    It runs from each ``begin`` to the next ``end`` (both are event names: of a mark, or of a span, whose begin counts,
    or its end with ``~`` in front). ``after``: it begins at the end of the next such span instead, if that comes before
    ``end``: work that waits for its input first. ``to_window``: without an end it runs to the window's edge.
    """

    name: str
    begin: str
    end: str
    after: str = ""
    to_window: bool = False


@dataclass(frozen=True, kw_only=True)
class Family:
    """Roles and rules of one kernel family.

    Attributes:
        roles: in drawing order: colours go by place.
        lead: the role whose period is the kernel's.
        mma: roles whose waits say what the tensor cores wait for; the first is the one that tables show.
        steps: by role.
        waits: by probe set, then by role: the causes that it sees. One that never blocked then counts as 0 cycles, not
            as unknown. ``*`` stands for every set that is not named.
        senders: by cause of a wait: the roles that end it, in words where they are not traced.
        passed_by: a wait, and the wait at which its sender stands when it has sent the signal for certain.
        work: by role: bars that name the work between marks.
        stage_role: when this role recorded something, a CTA works on two Q stages.
        decode: reads a capture that is not of our own layout.
    """

    name: str
    roles: tuple[str, ...]
    lead: str
    mma: tuple[str, ...]
    steps: Mapping[str, StepRule]
    waits: Mapping[str, Mapping[str, frozenset[str]]]
    senders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    passed_by: Mapping[str, str] = field(default_factory=dict)
    work: Mapping[str, tuple[WorkSpan, ...]] = field(default_factory=dict)
    stage_role: str = ""
    decode: Callable[[Capture], Decoded] | None = None

    def measured(self, probe_set: str, role: str) -> frozenset[str]:
        """Causes of waits that this probe set sees in this role."""
        by_role = self.waits.get(probe_set, self.waits.get("*", {}))
        return by_role.get(role, frozenset())

    @property
    def role_map(self) -> RoleMap:
        """What viewers need, also where the target is not installed."""
        return RoleMap(names=list(self.roles), lead=self.lead, mma=list(self.mma))
