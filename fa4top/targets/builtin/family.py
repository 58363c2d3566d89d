"""The builtin kernel's roles and rules for the analysis."""

from __future__ import annotations

from fa4top.analysis.trace.family import Family, StepRule
from fa4top.targets.fa4.family import HANDOFF_PASSED_BY, HANDOFF_SENDERS, SOFTMAX, SOFTMAX_WORK

_SOFTMAX_WAITS = frozenset({"wait S", "wait P free"})

BUILTIN = Family(
    name="builtin",
    roles=("mma", *SOFTMAX, "load"),
    lead="softmax0",
    mma=("mma",),
    steps={
        "mma": StepRule("step", True, per_stage=True),
        "softmax0": StepRule("step", True),
        "softmax1": StepRule("step", True),
    },
    waits={
        "*": {
            "mma": frozenset({"wait KV", "wait P", "wait P 2nd"}),
            "softmax0": _SOFTMAX_WAITS,
            "softmax1": _SOFTMAX_WAITS,
            "load": frozenset({"wait slot"}),
        }
    },
    senders={
        **HANDOFF_SENDERS,
        "wait P free": ("mma",),
        "wait slot": ("mma",),
        "wait sum": SOFTMAX,
        "wait S free": SOFTMAX,
    },
    passed_by=HANDOFF_PASSED_BY,
    work=dict.fromkeys(SOFTMAX, SOFTMAX_WORK),
    stage_role="softmax1",
)
