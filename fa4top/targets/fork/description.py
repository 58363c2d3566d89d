"""The fa4-fork target as data: a checkout of flash-attention-fp4, driven as it is."""

from __future__ import annotations

from collections.abc import Callable

from fa4top.records import Shape, StepWork
from fa4top.targets.base import HANDICAP, Description, Knob, common_shape_problem
from fa4top.targets.fa4.work import EXP2_PER_ELEMENT
from fa4top.targets.fork.environment import AUTO, OWN, PATH_VARIABLE, PROBES, chosen_knobs
from fa4top.targets.fork.knobs import KNOBS, SWITCH, WRONG, ForkKnob
from fa4top.targets.fork.modes import PV_MODES, QK_MODES, SM100, SM103, Case
from fa4top.targets.fork.published import published
from fa4top.targets.fork.rules import DANGER, NOTE, REFUSED, judge

NAME = "fa4-fork"
EMULATION = ("FA4_FORCE_E2E", "FA4_E2E_FREQ", "FA4_E2E_START_FRG")
SCALE_ROWS = 128  # scale factors come in tiles of so many rows


def _knob(knob: ForkKnob) -> Knob:
    text = f"{knob.text}; auto: {knob.default}" + (f". {knob.caution}" if knob.caution else "")
    offered = ("0", "1") if knob.kind == SWITCH else knob.values or knob.offered
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


def step_work(shape: Shape, arch: str, knobs: dict[str, str]) -> StepWork:
    """Operands by the modes; where exp2 may be emulated, SASS alone knows how many stay on MUFU."""
    known = not any(knobs.get(name, AUTO) != AUTO for name in EMULATION)
    return StepWork(
        qk_format=knobs["qk_mode"],
        pv_format=knobs["pv_mode"],
        exp2_per_element=EXP2_PER_ELEMENT[SM103] if known and arch == SM103 else None,
    )


DESCRIPTION = Description(
    name=NAME,
    summary="a checkout of flash-attention-fp4 (NVFP4/MXFP8 QK; PV in bf16, fp8, fp4, mxfp8), with its own trace",
    launcher="fa4top.targets.fork.launch:make_launcher",
    knobs=TARGET_KNOBS,
    default_shape=Shape(batch=1, seqlen_q=4096, seqlen_k=4096, heads=24, kv_heads=24, head_dim=128, head_dim_v=128),
    requires=("numpy", "torch"),
    simulated=False,
    shape_problem=shape_problem,
    hazard=setting_hazard,
    extra="cuda13",
    notes=notes,
    work=step_work,
    prepare="fa4top.targets.fork.import_ahead:import_ahead",
    path_variable=PATH_VARIABLE,
    locate="fa4top.targets.fork.find:locate",
    published=published,
)
