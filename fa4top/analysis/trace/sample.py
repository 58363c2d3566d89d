"""One captured launch to one record."""

from __future__ import annotations

from dataclasses import dataclass

from fa4top.analysis.trace.capture import Capture, Decoded
from fa4top.analysis.trace.decode import decode_role
from fa4top.analysis.trace.family import Family
from fa4top.analysis.trace.layout import BufferLayout
from fa4top.analysis.trace.steps import q_stages, role_sample, steps_of
from fa4top.analysis.trace.timeline import timeline as cut_timeline
from fa4top.records import Losses, RoleSample, Timeline, TraceSample


@dataclass(frozen=True)
class Sampling:
    """What the record says of a traced launch beside its numbers."""

    worker: str
    plan_id: int
    launch: int
    probe_set: str
    detail: bool
    timeline: bool = False
    steps_of_tile: int = 0


def decode_capture(capture: Capture, layout: BufferLayout, family: Family) -> Decoded:
    """Roles of one launch. Never raises on the content of buffers of ours; a family's own decoder may refuse one."""
    if family.decode is not None:
        return family.decode(capture)
    generation = capture.generation
    roles = range(len(layout.roles))
    traces = [trace for role in roles if (trace := decode_role(capture.recorded, layout, role, generation))]
    fresh = [trace for trace in traces if trace.header.generation == generation]
    losses = Losses(
        recorded=sum(trace.stream.recorded for trace in fresh),
        dropped=sum(trace.header.dropped for trace in fresh),
        unmatched=sum(trace.pairs.unmatched + trace.stream.backward for trace in fresh),
        stale=sum(trace.stream.stale for trace in traces),
    )
    lead = next((t for t in fresh if t.role == family.lead), fresh[0] if fresh else None)
    life = max((t.header.duration_ns or 0 for t in fresh), default=0)
    return Decoded(
        traces=fresh,
        losses=losses,
        generation=generation,
        sm=lead.header.sm if lead else -1,
        sm_clock_mhz=lead.header.sm_clock_mhz if lead else None,
        cta_us=life / 1000.0 if life else None,
    )


def trace_sample(capture: Capture, layout: BufferLayout, family: Family, sampling: Sampling) -> TraceSample:
    """The log's record of one traced launch."""
    decoded = decode_capture(capture, layout, family)
    stages = q_stages(decoded.traces, family)
    steps = {trace.role: steps_of(trace, family, stages) for trace in decoded.traces}
    roles: list[RoleSample] = [
        role_sample(trace, steps[trace.role], family.measured(sampling.probe_set, trace.role))
        for trace in decoded.traces
    ]
    timeline: Timeline | None = None
    if sampling.timeline:
        timeline = cut_timeline(decoded.traces, family, steps, sampling.steps_of_tile)
    return TraceSample(
        worker=sampling.worker,
        plan_id=sampling.plan_id,
        launch=sampling.launch,
        generation=decoded.generation,
        probe_set=sampling.probe_set,
        detail=sampling.detail,
        time_us=capture.time_us,
        cta=capture.cta,
        sm=decoded.sm,
        sm_clock_mhz=decoded.sm_clock_mhz,
        cta_us=decoded.cta_us,
        losses=decoded.losses,
        roles=roles,
        timeline=timeline,
        own=decoded.own,
    )
