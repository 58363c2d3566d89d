"""A traced launch as it left the device, and as it is when its slots are decoded."""

from __future__ import annotations

from dataclasses import dataclass, field

from fa4top.analysis.trace.decode import RoleTrace
from fa4top.analysis.trace.layout import Recorded
from fa4top.records import Losses


@dataclass(frozen=True, kw_only=True)
class Capture:
    """One traced launch as it left the device. ``cta`` recorded; ``hung``: the launch has not ended, this was read
    meanwhile."""

    recorded: Recorded
    generation: int
    cta: int
    time_us: float
    hung: bool = False


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """What a capture says before steps are looked for. ``traces`` are those of this launch; ``own`` the target's
    figures by its own definitions, cycles. -1 and None: not known."""

    traces: list[RoleTrace]
    losses: Losses
    generation: int
    sm: int
    sm_clock_mhz: float | None = None
    cta_us: float | None = None
    own: dict[str, float] = field(default_factory=dict)
