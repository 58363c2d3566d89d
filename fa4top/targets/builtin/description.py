"""The builtin target as data: our attention kernel for Hopper, with FA4's topology and its two-signal P handoff."""

from __future__ import annotations

from fractions import Fraction

from fa4top.records import Shape, StepWork
from fa4top.targets.base import HANDICAP, Description, Knob, common_shape_problem
from fa4top.targets.builtin.split import K_TILES, handoff
from fa4top.targets.fa4.work import EXP2_PER_ELEMENT

ARCH = "sm_90a"  # its instructions exist on this one architecture
ROWS, BLOCK, HEAD_DIM = 128, 128, 128

_SPLITS = ("1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8")

KNOBS = (
    Knob("pv_mode", "bf16", "precision of P and V; Q and K are bf16", ("bf16", "fp8"), numerics="changes"),
    Knob(
        "p_split",
        "auto",
        "fraction of P handed over at the first of the two signals; auto: 1/2 for bf16, 3/4 for fp8, within "
        "1% of the best on an H200",
        ("auto", *_SPLITS),
        tries=("3/8", "1/2", "5/8", "3/4"),
    ),
    Knob(
        "consumer_split",
        "auto",
        "fraction of PV's K-tiles issued before waiting for the second signal; auto follows p_split",
        ("auto", *_SPLITS),
    ),
    Knob("p_chunks", "auto", "stores that P is written in; auto: one a K-tile", ("auto", "1", "2", "4", "8")),
    Knob(
        "s_handover",
        "after_p",
        "when S of the next block goes to softmax: after P of this block has come, as in FA4, or early",
        ("after_p", "early"),
    ),
    Knob("kv_stages", "3", "slots of the ring that K and V pass through", ("2", "3")),
    Knob(
        "exp2_emulation",
        "0",
        "share of exp2 computed by a polynomial on the FMA pipes instead of MUFU",
        ("0", "1/8", "1/4", "1/2"),
        numerics="changes",
    ),
    Knob(
        "fp8_scale",
        "folded",
        "P's scale for e4m3: folded into exp2's argument, or a multiply pass of its own (fp8 only)",
        ("folded", "multiply"),
        numerics="changes",
    ),
    Knob(
        "tile_order",
        "auto",
        "which tiles run side by side: rows of a head, heads of a row, or heads with the longest rows first; "
        "auto: rows, and longest under a causal mask",
        ("auto", "rows", "heads", "longest"),
    ),
    Knob(
        "lost_signal",
        "off",
        "a wrong build for tests of hang handling: one second signal is never sent (--unsafe)",
        ("off", "on"),
        numerics="unknown",
    ),
    HANDICAP,
)


def shape_problem(shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
    """Why the builtin kernel can not run this here; None when it can."""
    if message := common_shape_problem(shape):
        return message
    if arch and arch != ARCH:
        return f"the builtin kernel is for Hopper ({ARCH}); this GPU is {arch}: use --target fa4 or sim"
    if shape.dtype != "bf16":
        return f"the builtin kernel takes bf16 inputs, not {shape.dtype}; --set pv_mode=fp8 makes P and V e4m3"
    if shape.head_dim != HEAD_DIM or shape.head_dim_v != HEAD_DIM:
        return f"the builtin kernel has head dim {HEAD_DIM} only"
    for name, length in (("queries", shape.seqlen_q), ("keys", shape.seqlen_k)):
        if length % BLOCK:
            near = max(BLOCK, round(length / BLOCK) * BLOCK)
            return f"the builtin kernel wants {name} in multiples of {BLOCK}; {length} is none, {near} would do"
    mode = knobs.get("pv_mode", "bf16")
    chunks = knobs.get("p_chunks", "auto")
    if chunks != "auto" and int(chunks) > K_TILES[mode]:
        return f"p_chunks={chunks} is too many for {mode}: a chunk is at least one of its {K_TILES[mode]} K-tiles"
    if mode == "bf16" and knobs.get("fp8_scale", "folded") != "folded":
        return "fp8_scale has no effect with pv_mode=bf16; set pv_mode=fp8"
    return None


def setting_hazard(shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
    """A setting that is known to be wrong; only --unsafe launches it."""
    split = handoff(knobs)
    if not split.safe:
        return split.sentence()
    if knobs["lost_signal"] == "on":
        return "lost_signal=on hangs the kernel: a signal that the MMA role waits for is never sent"
    return None


def step_work(shape: Shape, arch: str, knobs: dict[str, str]) -> StepWork:
    """Operands, and what ``exp2_emulation`` leaves to MUFU."""
    exp2 = EXP2_PER_ELEMENT.get(arch)
    if exp2 is not None:
        exp2 -= float(Fraction(knobs["exp2_emulation"]))
    return StepWork(qk_format=shape.dtype, pv_format=knobs["pv_mode"], exp2_per_element=exp2)


DESCRIPTION = Description(
    name="builtin",
    summary="our own Hopper kernel with FA4's roles and its two-signal P handoff (kernels/attention_sm90.cu)",
    launcher="fa4top.targets.builtin.launch:make_launcher",
    knobs=KNOBS,
    default_shape=Shape(batch=1, seqlen_q=8192, seqlen_k=8192, heads=24, kv_heads=24, head_dim=128, head_dim_v=128),
    requires=("numpy", "cupy"),
    simulated=False,
    shape_problem=shape_problem,
    hazard=setting_hazard,
    extra="cuda13,sass",
    distributions=(
        "numpy",
        "cupy-cuda13x",
        "cupy-cuda12x",
        "cupy",
        "nvidia-cuda-nvrtc",
        "nvidia-cuda-nvrtc-cu12",
        "nvidia-cuda-nvcc",
        "nvidia-cuda-nvdisasm",
        "nvidia-cuda-cuobjdump",
    ),
    work=step_work,
    prepare="fa4top.targets.cuda.import_ahead:import_ahead",
    compile_only="fa4top.targets.builtin.build:compile_only",
    default_arch=ARCH,
    tries={"handoff": "p_split", "load": "kv_stages"},
)
