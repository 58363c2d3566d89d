"""The forward kernels of FA4: what the analysis must know of them. The simulated device has the same roles."""

from __future__ import annotations

from fa4top.analysis.trace.family import Family, StepRule, WorkSpan

SOFTMAX = ("softmax0", "softmax1")
_HOPPER_WAITS = frozenset({"wait K", "wait V", "turn"})
_HOPPER_ROLES = ("mma0", "mma1", "mma2")

# Hopper: consumer warpgroups take turns, and each does QK, softmax and PV of its own rows
SM90 = Family(
    name="sm90",
    roles=_HOPPER_ROLES,
    lead="mma0",
    mma=("mma0",),
    steps={role: StepRule("step", True) for role in _HOPPER_ROLES},
    waits={
        "coarse": dict.fromkeys(_HOPPER_ROLES, _HOPPER_WAITS),
        "detail": dict.fromkeys(_HOPPER_ROLES, _HOPPER_WAITS),
    },
    senders={"turn": _HOPPER_ROLES, "wait K": ("load",), "wait V": ("load",), "wait Q": ("load",)},
    work={role: (WorkSpan("step", "step", "turn", to_window=True),) for role in _HOPPER_ROLES},
)

SOFTMAX_WORK = (WorkSpan("softmax", "step", "P 1st part", after="wait S"), WorkSpan("P rest", "P 1st part", "P rest"))
# a softmax warpgroup that waits for the next S has passed both signals of P
HANDOFF_PASSED_BY = {"wait P 2nd": "wait S"}
HANDOFF_SENDERS: dict[str, tuple[str, ...]] = {
    "wait P": SOFTMAX,
    "wait P 2nd": SOFTMAX,
    "wait S": ("mma",),
    "wait corr": ("correction",),
    "wait stats": SOFTMAX,
    "wait KV": ("load",),
    "wait Q": ("load",),
}

# Blackwell: one MMA warp, two softmax warpgroups, correction
SM100 = Family(
    name="sm100",
    roles=("mma", *SOFTMAX, "correction"),
    lead="softmax0",
    mma=("mma",),
    steps={
        # with two Q stages one KV iteration is two PV GEMMs, and two looks at the softmax statistics
        "mma": StepRule("PV", False, per_stage=True),
        "softmax0": StepRule("step", True),
        "softmax1": StepRule("step", True),
        "correction": StepRule("wait stats", False, per_stage=True),
    },
    waits={
        "period": {},
        "*": {
            "mma": frozenset({"wait KV", "wait P", "wait P 2nd"}),
            "softmax0": frozenset({"wait S", "wait corr"}),
            "softmax1": frozenset({"wait S", "wait corr"}),
            "correction": frozenset({"wait stats"}),
        },
    },
    senders=HANDOFF_SENDERS,
    passed_by=HANDOFF_PASSED_BY,
    work=dict.fromkeys(SOFTMAX, SOFTMAX_WORK),
    stage_role="softmax1",
)
