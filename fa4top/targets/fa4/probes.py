"""Where probes stand in flash-attn-4's kernels, as data. Nothing here imports the DSL.

A probe is *slow-path* when it costs nothing while nobody waits: the barrier is tested without blocking, and only when
the test fails are two clocks read, around the blocking wait, when the role is idle anyway. A wait that was over at
the first look counts as 0 cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

from fa4top.analysis.chip.chips import BLACKWELL, CHIPS, HOPPER
from fa4top.analysis.trace.family import Family
from fa4top.analysis.trace.layout import BufferLayout
from fa4top.targets.fa4 import family
from fa4top.targets.launcher import TargetError

KNOWN_GOOD: dict[str, tuple[str, ...]] = {
    "4.0.0b36": ("4.8.1",)  # flash-attn-4: nvidia-cutlass-dsl versions that were seen to work
}


@dataclass(frozen=True)
class BarrierProbe:
    """A probe on one barrier array of a pipeline argument.

    ``side`` is ``full`` or ``empty``; ``operation`` is ``wait`` (slow-path pair) or ``arrive`` (a mark after it).
    ``also_mark``: an event marked on entry, before a wait, whether or not it blocks.
    """

    argument: str
    side: str
    operation: str
    event: str
    also_mark: str | None = None


@dataclass(frozen=True)
class NamedBarrierProbe:
    """A pair around the blocking call of a named-barrier argument."""

    argument: str
    method: str
    event: str


@dataclass(frozen=True)
class RoleProbes:
    """One role method of a kernel class.

    ``roles`` are the buffer's role names served by this method; with more than one, ``index_argument`` tells which
    (divided by ``index_divisor``). ``elected`` is the thread that records: lane 0 of one warp, or thread 0 of a group.
    ``gemms`` are functions of blackwell_helpers to bracket; ``steps`` are methods that are one step.
    """

    method: str
    roles: tuple[str, ...]
    elected: str
    barriers: tuple[BarrierProbe, ...] = ()
    named: tuple[NamedBarrierProbe, ...] = ()
    gemms: tuple[tuple[str, str], ...] = ()
    steps: tuple[str, ...] = ()
    spans: tuple[tuple[str, str], ...] = ()
    index_argument: str | None = None
    index_divisor: int = 1


@dataclass(frozen=True)
class ProbeSet:
    """Points that are compiled together. ``points`` is read by the injector; unknown names are an error there."""

    name: str
    points: frozenset[str]
    detail: bool = False
    text: str = ""


@dataclass(frozen=True)
class RegisterShift:
    """Registers a thread that the traced twin moves from the load and mma warps to the two softmax warpgroups."""

    softmax_at_most: int
    to_softmax: int
    least_other: int


@dataclass(frozen=True)
class KernelProbes:
    """All probes of one kernel class; ``wrapper`` names the module that puts them in (``module:function``).

    ``register_shift`` moves registers a thread to the softmax warps where the kernel's own budget leaves them none to
    spare for the probes' state (setmaxnreg; the launch's count stays the same).
    """

    family: Family
    wrapper: str
    module: str
    class_name: str
    roles: tuple[RoleProbes, ...]
    layout: BufferLayout
    sets: tuple[ProbeSet, ...]
    required_methods: tuple[str, ...] = ()
    register_shift: RegisterShift | None = None


SM90 = KernelProbes(
    family=family.SM90,
    wrapper="fa4top.targets.fa4.inject_sm90:wrap",
    module="flash_attn.cute.flash_fwd_sm90",
    class_name="FlashAttentionForwardSm90",
    roles=(
        RoleProbes(
            method="mma",
            roles=("mma0", "mma1", "mma2"),
            elected="warpgroup",
            index_argument="tidx",
            index_divisor=128,
            barriers=(
                BarrierProbe("pipeline_k", "full", "wait", "wait K"),
                BarrierProbe("pipeline_v", "full", "wait", "wait V"),
            ),
            steps=("mma_one_n_block", "mma_one_n_block_intrawg_overlap"),
        ),
    ),
    layout=BufferLayout(roles=family.SM90.roles, capacity=4096, stride=16),
    sets=(
        ProbeSet("coarse", frozenset({"turn", "waits", "tile"}), text="turn-taking, waits for K and V, tile ends"),
        ProbeSet("period", frozenset({"mark", "tile"}), text="one clock a step: the cheapest period"),
        ProbeSet(
            "detail",
            frozenset({"turn", "waits", "tile", "phases"}),
            detail=True,
            text="adds GEMMs issued and softmax done",
        ),
    ),
    required_methods=(
        "mma",
        "mma_one_n_block",
        "mma_one_n_block_intrawg_overlap",
        "warp_scheduler_barrier_sync",
        "warp_scheduler_barrier_arrive",
        "epilogue",
    ),
)

_SM100_MMA = RoleProbes(
    method="mma",
    roles=("mma",),
    elected="warp",
    barriers=(
        BarrierProbe("pipeline_kv", "full", "wait", "wait KV"),
        BarrierProbe("pipeline_s_p_o", "empty", "wait", "wait P"),
    ),
    gemms=(("gemm_ptx_partial", "PV"), ("gemm_ptx_precomputed_varname", "QK")),
)
_SM100_SOFTMAX = RoleProbes(
    method="softmax_loop",
    roles=("softmax0", "softmax1"),
    elected="warpgroup",
    index_argument="stage",
    barriers=(
        BarrierProbe("pipeline_s_p_o", "full", "wait", "wait S"),
        BarrierProbe("pipeline_s_p_o", "empty", "arrive", "P 1st part"),
        BarrierProbe("pipeline_sm_stats", "empty", "wait", "wait corr", also_mark="P rest"),
    ),
    steps=("softmax_step",),
)
_SM100_CORRECTION = RoleProbes(
    method="correction_loop",
    roles=("correction",),
    elected="warpgroup",
    named=(NamedBarrierProbe("sm_stats_barrier", "arrive_and_wait_w_index", "wait stats"),),
    spans=(("correction_rescale", "rescale"), ("correction_epilogue", "epilogue")),
)

SM100 = KernelProbes(
    family=family.SM100,
    wrapper="fa4top.targets.fa4.inject_sm100:wrap",
    module="flash_attn.cute.flash_fwd_sm100",
    class_name="FlashAttentionForwardSm100",
    roles=(_SM100_MMA, _SM100_SOFTMAX, _SM100_CORRECTION),
    # room for the MMA role at s32768 h24 on 148 SMs: 21 tiles x 256 steps x 16 events; a copy of 4 MiB a launch
    layout=BufferLayout(roles=family.SM100.roles, capacity=131072, stride=8, spread=True),
    sets=(
        ProbeSet(
            "coarse",
            frozenset({"waits", "tile", "gemms", "handover", "correction"}),
            text="waits, hand-over of P, GEMM issue, correction",
        ),
        ProbeSet("period", frozenset({"tile", "step"}), text="one clock a step: the cheapest period"),
        ProbeSet(
            "detail",
            frozenset({"waits", "tile", "gemms", "handover", "correction", "phases"}),
            detail=True,
            text="adds row max and exp2 inside the softmax step",
        ),
    ),
    required_methods=("mma", "softmax_loop", "softmax_step", "correction_loop"),
    # gives 184/80/64 and 184/64/80; the first is the package's own budget on sm_100a
    register_shift=RegisterShift(softmax_at_most=176, to_softmax=8, least_other=64),
)

_BY_GENERATION = {HOPPER: SM90, BLACKWELL: SM100}
PROBES: dict[str, KernelProbes] = {
    chip.arch: _BY_GENERATION[chip.generation] for chip in CHIPS if chip.generation in _BY_GENERATION
}


def choose_set(probes: KernelProbes, name: str, detail: bool = False) -> ProbeSet:
    """The probe set of this name; without one the first that is, or is not, for detail.

    Raises:
        TargetError: no set has that name.
    """
    if not name:
        return next(each for each in probes.sets if each.detail == detail)
    for candidate in probes.sets:
        if candidate.name == name:
            return candidate
    if "+" in name:  # points spelled out, for benchmarks
        return ProbeSet(name, frozenset(name.split("+")))
    known = ", ".join(each.name for each in probes.sets)
    raise TargetError("unknown probe set", f"no probe set {name}; there are {known}")
