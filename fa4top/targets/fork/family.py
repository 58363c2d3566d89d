"""The fork's roles and rules for the analysis, and its own buffer as the analysis takes it."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from fa4top.analysis.trace.capture import Capture, Decoded
from fa4top.analysis.trace.decode import U32
from fa4top.analysis.trace.family import Family, StepRule
from fa4top.analysis.trace.layout import Recorded
from fa4top.records import Losses
from fa4top.targets.fa4.family import HANDOFF_PASSED_BY, HANDOFF_SENDERS, SOFTMAX, SOFTMAX_WORK
from fa4top.targets.fork.trace_buffer import GROUPS, decode_packed
from fa4top.targets.fork.trace_metrics import fork_metrics

RECORDED = GROUPS[:3]  # the fork declares the correction role and never records it


def recorded(packed: U32) -> Recorded:
    """What ``pack_block`` made, as a capture carries it."""
    return Recorded(np.zeros((0, 0), dtype=np.uint32), (packed,))


def decode(capture: Capture) -> Decoded:
    """The fork's trace has neither anchors nor tile marks, and keeps its own figures beside ours.

    Raises:
        UnknownTrace: the words are no such buffer.
    """
    trace = decode_packed(capture.recorded.slots[0], capture.cta, hung=capture.hung)
    losses = Losses(
        recorded=sum(role.stream.recorded for role in trace.roles),
        dropped=sum(group.missing for group in trace.groups),
        unmatched=0 if capture.hung else sum(r.pairs.unmatched + r.stream.backward for r in trace.roles),
        stale=sum(group.foreign for group in trace.groups),
    )
    own = {name: value for name, value in asdict(fork_metrics(trace)).items() if value is not None}
    return Decoded(traces=trace.roles, losses=losses, generation=0, sm=trace.sm, own=own)


_SOFTMAX_WAITS = frozenset({"wait S", "wait corr"})

FORK = Family(
    name="fork",
    roles=RECORDED,
    lead="softmax0",
    mma=("mma",),
    steps={
        "mma": StepRule("PV", False, per_stage=True),
        "softmax0": StepRule("wait S", False),
        "softmax1": StepRule("wait S", False),
    },
    waits={"*": {"mma": frozenset({"wait KV", "wait P", "wait P 2nd"}), **dict.fromkeys(SOFTMAX, _SOFTMAX_WAITS)}},
    senders=HANDOFF_SENDERS,
    passed_by=HANDOFF_PASSED_BY,
    work=dict.fromkeys(SOFTMAX, SOFTMAX_WORK),
    stage_role="softmax1",
    decode=decode,
)
