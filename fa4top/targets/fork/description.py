"""The fa4-fork target as data: a checkout of flash-attention-fp4, driven as it is."""

from __future__ import annotations

from collections.abc import Callable

from fa4top.records import Shape
from fa4top.targets.base import HANDICAP, Description, Knob, common_shape_problem
from fa4top.targets.fork.environment import AUTO, OWN, PROBES, chosen_knobs
from fa4top.targets.fork.knobs import KNOBS, SWITCH, WRONG, ForkKnob
from fa4top.targets.fork.modes import PV_MODES, QK_MODES, SM100, SM103, Case
from fa4top.targets.fork.rules import DANGER, NOTE, REFUSED, judge

NAME = "fa4-fork"
SCALE_ROWS = 128  # scale factors come in tiles of so many rows
# what a form offers for a number; any other legal number may be typed
OFFERED: dict[str, tuple[str, ...]] = {
    "FA4_FP8_PV_P_SPLIT_NUM": ("1", "2", "3", "5", "7"),
    "FA4_FP8_PV_P_SPLIT_DEN": ("2", "4", "8"),
    "FA4_FP4_PV_P_SPLIT_NUM": ("1", "3", "7"),
    "FA4_FP4_PV_P_SPLIT_DEN": ("2", "4", "8"),
    "FA4_FP8_PV_TMEM_STORE_REP": ("1", "2", "4", "8", "16", "32"),
    "FA4_FP4_PV_TMEM_STORE_REP": ("1", "2", "4", "8", "16"),
    "FA4_FP8_PV_KV_STAGE_CAP": ("0", "2", "3", "4", "5"),
    "FA4_E2E_FREQ": ("8", "9", "10", "12", "16"),
    "FA4_E2E_START_FRG": ("0", "1", "2"),
    "FA4_FP8_PV_RANGE_UNROLL": ("-1", "0", "2", "4"),
    "FA4_FP8_PV_P_LOG2_OFFSET": ("0.0", "4.0", "8.0"),
}


def _knob(knob: ForkKnob) -> Knob:
    text = f"{knob.text}; auto: {knob.default}" + (f". {knob.caution}" if knob.caution else "")
    offered = ("0", "1") if knob.kind == SWITCH else knob.values or OFFERED[knob.name]
    numerics = knob.numerics if knob.numerics != WRONG else "changes"
    return Knob(
        knob.name, AUTO, text, (AUTO, *offered), numerics=numerics, architectures=(SM100, SM103), check=_check(knob)
    )


def _check(knob: ForkKnob) -> Callable[[str], str | None]:
    return lambda value: None if value == AUTO else knob.problem(value)


_TARGET_KNOBS = (
    Knob("pv_mode", "bf16", "precision of P and V", tuple(PV_MODES), numerics="changes"),
    Knob("qk_mode", "nvfp4", "precision of Q and K", QK_MODES, numerics="changes"),
    Knob(
        "probes",
        "off",
        "what the timed kernel carries of the fork's trace, to tell what it costs: empty (scheduling barriers alone), "
        "coarse, detail, global (coarse, a global store an event)",
        tuple(PROBES),
    ),
)
TARGET_KNOBS = (*_TARGET_KNOBS, *(_knob(knob) for knob in KNOBS if knob.name not in OWN), HANDICAP)


def case_of(shape: Shape, arch: str, knobs: dict[str, str]) -> Case:
    """What the rules judge for."""
    return Case(knobs["pv_mode"], knobs["qk_mode"], shape.head_dim, arch or SM103)


def shape_problem(shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
    """Why this can not run at all; None when it can."""
    if message := common_shape_problem(shape):
        return message
    if arch and arch not in (SM100, SM103):
        return f"flash-attention-fp4's block-scaled kernels need {SM100} or {SM103}; this GPU is {arch}"
    if shape.dtype != "bf16":
        return "fa4-fork quantises bf16 itself: choose the precision by --set pv_mode=... and qk_mode=..., not --dtype"
    if shape.head_dim != shape.head_dim_v:
        return f"head dims {shape.head_dim} and {shape.head_dim_v} differ: the block-scaled kernels have one"
    for name, length in (("sq", shape.seqlen_q), ("sk", shape.seqlen_k)):
        if length % SCALE_ROWS:
            near = -(-length // SCALE_ROWS) * SCALE_ROWS
            return (
                f"{name} must be a multiple of {SCALE_ROWS} (tiles of scale factors): {length} is none, {near} would do"
            )
    if not knobs:
        return None
    case = case_of(shape, arch, knobs)
    if message := case.problem():
        return message
    return next((f.text for f in judge(case, chosen_knobs(knobs)) if f.level == REFUSED), None)


def setting_hazard(shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
    """What only --unsafe may launch."""
    found = [f.text for f in judge(case_of(shape, arch, knobs), chosen_knobs(knobs)) if f.level == DANGER]
    return "; ".join(found) or None


def notes(shape: Shape, arch: str, knobs: dict[str, str]) -> list[str]:
    """What is worth knowing of a setting that may run."""
    return [f.text for f in judge(case_of(shape, arch, knobs), chosen_knobs(knobs)) if f.level == NOTE]


DESCRIPTION = Description(
    name=NAME,
    summary="a checkout of flash-attention-fp4 (NVFP4/MXFP8 QK; PV in bf16, fp8, fp4, mxfp8), with its own trace",
    launcher="fa4top.targets.fork.launch:make_launcher",
    knobs=TARGET_KNOBS,
    default_shape=Shape(1, 4096, 4096, 24, 24, 128, 128),
    requires=("numpy", "torch"),
    simulated=False,
    shape_problem=shape_problem,
    hazard=setting_hazard,
    prepare="fa4top.targets.fork.import_ahead:import_ahead",
    notes=notes,
)
