"""The fa4 target as data: flash-attn-4, unmodified."""

from __future__ import annotations

from fa4top.records import Shape
from fa4top.targets.base import Description, Knob, common_shape_problem

_BOTH = ("auto", "on", "off")
_BLACKWELL = ("sm_100a", "sm_103a")

KNOBS = (
    Knob(
        "intra_wg_overlap",
        "auto",
        "softmax of a block overlaps the GEMMs of the next inside a warpgroup",
        _BOTH,
        numerics="unknown",
        architectures=("sm_90a",),
    ),
    Knob(
        "mma_pv_is_rs",
        "auto",
        "PV reads P from registers (on) or from shared memory (off)",
        _BOTH,
        numerics="unknown",
        architectures=("sm_90a",),
    ),
    Knob("pack_gqa", "auto", "query heads that share a kv head are packed into one tile", _BOTH, numerics="unknown"),
    Knob(
        "FA_CLC",
        "0",
        "the package's cluster-launch-control scheduler",
        ("0", "1"),
        numerics="unknown",
        architectures=_BLACKWELL,
    ),
    Knob(
        "FA_DISABLE_2CTA",
        "0",
        "never use 2-CTA MMA instructions",
        ("0", "1"),
        numerics="unknown",
        architectures=_BLACKWELL,
    ),
    Knob(
        "FA_DISABLE_S_PING_PONG",
        "0",
        "no S ping-pong for one Q stage",
        ("0", "1"),
        numerics="unknown",
        architectures=_BLACKWELL,
    ),
)


def shape_problem(shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
    """Why flash-attn-4 can not run this here; None when it can."""
    if message := common_shape_problem(shape):
        return message
    if shape.dtype not in ("bf16", "fp16", "fp8"):
        return f"dtype {shape.dtype} is unknown; choose bf16, fp16 or (Blackwell) fp8"
    if shape.dtype == "fp8" and arch not in _BLACKWELL:
        return f"fp8 needs Blackwell (sm_100a, sm_103a); this GPU is {arch}"
    if arch and arch not in ("sm_90a", *_BLACKWELL):
        return f"probes exist for Hopper and datacenter Blackwell (sm_90a, sm_100a, sm_103a); this GPU is {arch}"
    limit = 256 if arch == "sm_90a" else 128
    if shape.head_dim % 8 or shape.head_dim > limit or shape.head_dim_v % 8 or shape.head_dim_v > limit:
        return f"head dims must be multiples of 8 up to {limit} on {arch or 'this GPU'}"
    for knob in KNOBS:
        value = knobs.get(knob.name, knob.default)
        if value != knob.default and knob.architectures and arch not in knob.architectures:
            return f"knob {knob.name} has no effect on {arch}; it is for {', '.join(knob.architectures)}"
    return None


DESCRIPTION = Description(
    name="fa4",
    summary="flash-attn-4, unmodified, with probes put in at trace time",
    launcher="fa4top.targets.fa4.launch:make_launcher",
    knobs=KNOBS,
    default_shape=Shape(1, 8192, 8192, 24, 24, 128, 128),
    requires=("numpy", "cupy", "torch", "cutlass", "flash_attn.cute.interface"),
    simulated=False,
    shape_problem=shape_problem,
)
