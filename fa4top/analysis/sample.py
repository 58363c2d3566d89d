"""One captured launch to one record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt

from fa4top.analysis.decode import RoleTrace, decode_role
from fa4top.analysis.fork_trace import decode_packed, fork_metrics
from fa4top.analysis.layout import BufferLayout
from fa4top.analysis.steps import STEP_ROLE, q_stages, role_sample
from fa4top.analysis.timeline import timeline as cut_timeline
from fa4top.records import Losses, RoleSample, Timeline, TraceSample

# wait causes that each probe set can see, by role
MEASURED: dict[str, dict[str, frozenset[str]]] = {
    "sm90": {
        "coarse": frozenset({"wait K", "wait V", "turn"}),
        "detail": frozenset({"wait K", "wait V", "turn"}),
        "period": frozenset(),
    },
    "sm100": {"coarse": frozenset(), "detail": frozenset(), "period": frozenset()},
}
BUILTIN_WAITS: dict[str, frozenset[str]] = {
    "mma": frozenset({"wait KV", "wait P", "wait P 2nd"}),
    "softmax0": frozenset({"wait S", "wait P free"}),
    "softmax1": frozenset({"wait S", "wait P free"}),
    "load": frozenset({"wait slot"}),
}
FORK_WAITS: dict[str, frozenset[str]] = {
    "mma": frozenset({"wait KV", "wait P", "wait P 2nd"}),
    "softmax0": frozenset({"wait S", "wait corr"}),
    "softmax1": frozenset({"wait S", "wait corr"}),
}
SM100_WAITS: dict[str, frozenset[str]] = {
    "mma": frozenset({"wait KV", "wait P", "wait P 2nd"}),
    "softmax0": frozenset({"wait S", "wait corr"}),
    "softmax1": frozenset({"wait S", "wait corr"}),
    "correction": frozenset({"wait stats"}),
}


def measured_waits(family: str, probe_set: str, role: str) -> frozenset[str]:
    """Which waits this probe set sees in this role; one that never blocked then counts as 0, not as unknown."""
    if family == "sm100":
        return SM100_WAITS.get(role, frozenset()) if probe_set != "period" else frozenset()
    if family == "fork":
        return FORK_WAITS.get(role, frozenset())
    if family == "builtin":
        return BUILTIN_WAITS.get(role, frozenset())
    return MEASURED[family].get(probe_set, frozenset())


@dataclass(frozen=True)
class Analysed:
    """What a captured buffer says."""

    traces: list[RoleTrace]
    roles: list[RoleSample]
    losses: Losses
    generation: int
    sm: int
    sm_clock_mhz: float | None
    cta_us: float | None
    timeline: Timeline | None
    own: dict[str, float] = field(default_factory=dict)

    def record(
        self, *, worker: str, plan_id: int, launch: int, time_us: float, probe_set: str, detail: bool, cta: int
    ) -> TraceSample:
        """The log's record."""
        return TraceSample(
            worker,
            plan_id,
            launch,
            self.generation,
            probe_set,
            detail,
            time_us,
            cta,
            self.sm,
            self.sm_clock_mhz,
            self.cta_us,
            self.losses,
            self.roles,
            self.timeline,
            self.own,
        )


def analyse_capture(
    buffer: npt.NDArray[np.uint8],
    layout: BufferLayout,
    family: str,
    generation: int,
    *,
    probe_set: str = "coarse",
    timeline: bool = False,
    steps_of_tile: int = 0,
) -> Analysed:
    """Decode all roles of one launch and compute their metrics. Never raises on the buffer's content of probes of ours;
    the fork's buffer is refused when it is none (UnknownTrace)."""
    if family == "fork":
        return _analyse_fork(buffer, timeline, steps_of_tile)
    traces = [trace for role in range(len(layout.roles)) if (trace := decode_role(buffer, layout, role, generation))]
    fresh = [trace for trace in traces if trace.header.generation == generation]
    losses = Losses(
        recorded=sum(trace.stream.recorded for trace in fresh),
        dropped=sum(trace.header.dropped for trace in fresh),
        unmatched=sum(trace.pairs.unmatched + trace.stream.backward for trace in fresh),
        stale=sum(trace.stream.stale for trace in traces),
    )
    stages = q_stages(fresh)
    roles = [role_sample(trace, family, measured_waits(family, probe_set, trace.role), stages) for trace in fresh]
    lead = next((t for t in fresh if t.role == STEP_ROLE[family]), fresh[0] if fresh else None)
    life = max((t.header.duration_ns or 0 for t in fresh), default=0)
    return Analysed(
        traces,
        roles,
        losses,
        generation,
        lead.header.sm if lead else -1,
        lead.header.sm_clock_mhz if lead else None,
        life / 1000.0 if life else None,
        cut_timeline(fresh, family, steps_of_tile) if timeline else None,
    )


def _analyse_fork(buffer: npt.NDArray[np.uint8], timeline: bool, steps_of_tile: int) -> Analysed:
    """The same for the fork's own trace; it has neither anchors nor tile marks, and keeps its own figures beside ours.

    Args:
        buffer: the block's number (4 bytes), whether the launch hung (4 bytes), then what ``pack_block`` makes.
    """
    words = buffer.view(np.uint32)
    trace = decode_packed(words[2:], int(words[0]), hung=bool(words[1]))
    traces = trace.roles
    stages = q_stages(traces)
    losses = Losses(
        recorded=sum(t.stream.recorded for t in traces),
        dropped=sum(group.missing for group in trace.groups),
        unmatched=sum(t.pairs.unmatched + t.stream.backward for t in traces) if not words[1] else 0,
        stale=sum(group.foreign for group in trace.groups),
    )
    own = {name: value for name, value in asdict(fork_metrics(trace)).items() if value is not None}
    return Analysed(
        traces,
        [role_sample(t, "fork", measured_waits("fork", "coarse", t.role), stages) for t in traces],
        losses,
        0,
        trace.sm,
        None,
        None,
        cut_timeline(traces, "fork", steps_of_tile) if timeline else None,
        own,
    )
