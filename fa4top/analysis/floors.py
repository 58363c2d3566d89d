"""The floor of a step: how long the busiest unit needs for its instructions alone. Pure; rates and counts are data.

Assumed: units overlap perfectly, nothing waits, nothing else is issued. So a floor is a bound from below, never a
prediction; a measured period below its floor means that a rate or a count is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from fa4top.records import BenchResult, Geometry, Plan, Shape

SOFTMAX_THREADS = 256  # a step's rows are spread over two warpgroups, in every kernel here
WARPS_A_CYCLE = 4  # schedulers of an SM


@dataclass(frozen=True)
class Rates:
    """One chip: results (or lanes) a clock and SM. ``tensor``: dense FLOP by the narrower operand's format; ``source``
    says which figures were measured."""

    exp2: float
    fma: float
    alu: float
    convert: float
    tensor: Mapping[str, float]
    source: str


# Tensor: NVIDIA's dense peak over SMs and boost clock (H200 989 TFLOP/s bf16, 132 SMs, 1830 MHz; B200 and B300 2.25 to
# 2.5 PFLOP/s, 148 SMs). FMA and ALU lanes: the CUDA programming guide's table.
_HOPPER = {"bf16": 4096.0, "fp16": 4096.0, "fp8": 8192.0}
_BLACKWELL = {"bf16": 8192.0, "fp16": 8192.0, "fp8": 16384.0, "mxfp8": 16384.0, "fp4": 32768.0, "nvfp4": 32768.0}
RATES: dict[str, Rates] = {
    "sm_90a": Rates(16.0, 128.0, 64.0, 64.0, _HOPPER, "exp2 and convert measured by fa4top bench on an H200"),
    "sm_100a": Rates(16.0, 128.0, 64.0, 64.0, _BLACKWELL, "exp2 published for B200; not run here"),
    "sm_103a": Rates(32.0, 128.0, 64.0, 62.0, _BLACKWELL, "exp2 and convert published for GB300; not run here"),
}
# MUFU.EX2 for each element of S, from the SASS of the default setting (fa4top sass): the step's exponentials and one
# for a row's rescaling; sm_100a emulates part of them on the FMA pipes.
EXP2_A_ELEMENT: dict[tuple[str, str], float] = {
    ("fa4", "sm_90a"): 66 / 64,
    ("fa4", "sm_100a"): 105 / 128,
    ("fa4", "sm_103a"): 129 / 128,
    ("builtin", "sm_90a"): 66 / 64,
    ("sim", "sm_90a"): 66 / 64,
    ("sim", "sm_100a"): 105 / 128,
    ("sim", "sm_103a"): 129 / 128,
    ("fa4-fork", "sm_103a"): 129 / 128,
}
EMULATION_KNOBS = ("ex2_emu_freq", "ex2_emu_start_frg", "FA4_FORCE_E2E", "FA4_E2E_FREQ", "FA4_E2E_START_FRG")


# a rate: the microbenchmark that measures it
MEASURED: dict[str, str] = {
    "exp2": "ex2.approx.ftz.f32",
    "fma": "fma.rn.f32",
    "alu": "max.f32",
    "convert": "cvt.rn.bf16x2.f32",
}


def chip_rates(arch: str, bench: Sequence[BenchResult] = ()) -> Rates | None:
    """Rates of a chip: what this session measured on it, and the data above for the rest; None for an unknown chip."""
    rates = RATES.get(arch)
    if rates is None:
        return None
    known = {result.name: result.value for result in bench if result.status == "measured" and result.arch == arch}
    found = {rate: value for rate, name in MEASURED.items() if (value := known.get(name)) is not None}
    if not found:
        return rates
    return replace(rates, **found, source=f"{', '.join(found)} measured in this session")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Floors:
    """Cycles that each unit needs for one step of one CTA; units that can not be told are left out."""

    cycles: tuple[tuple[str, float], ...]
    source: str

    @property
    def unit(self) -> str:
        """The busiest unit."""
        return max(self.cycles, key=lambda item: item[1])[0]

    @property
    def floor(self) -> float:
        """Its cycles."""
        return max(cycles for _, cycles in self.cycles)

    def of(self, unit: str) -> float | None:
        """One unit's cycles."""
        return dict(self.cycles).get(unit)


def elements_a_step(geometry: Geometry, shape: Shape) -> float:
    """Elements of S that one CTA computes in a step: rows times keys, from the FLOPs of the whole launch."""
    steps = geometry.tiles * geometry.steps_per_tile
    return geometry.flops / (2.0 * (shape.head_dim + shape.head_dim_v)) / max(1, steps)


def operand_formats(shape: Shape, knobs: Mapping[str, str]) -> tuple[str, str]:
    """(QK, PV): what the tensor cores multiply."""
    return knobs.get("qk_mode", shape.dtype), knobs.get("pv_mode", shape.dtype)


def exp2_share(plan: Plan) -> float | None:
    """MUFU.EX2 for each element of S; None where a knob changes it in a way that only SASS tells."""
    if any(plan.knobs.get(knob, "auto") != "auto" for knob in EMULATION_KNOBS):
        return None
    share = EXP2_A_ELEMENT.get((plan.target, plan.arch))
    try:
        emulated = Fraction(plan.knobs.get("exp2_emulation", "0"))  # of the exponentials, on the FMA pipes instead
    except ValueError:
        return None  # a log of another version
    return share - float(emulated) if share is not None else None


def plan_floors(plan: Plan, geometry: Geometry, bench: Sequence[BenchResult] = ()) -> Floors | None:
    """Tensor and exp2 floors of a plan, from its shape and the counts above; None for a chip without rates."""
    rates = chip_rates(plan.arch, bench)
    if rates is None:
        return None
    elements = elements_a_step(geometry, plan.shape)
    found: list[tuple[str, float]] = []
    qk, pv = operand_formats(plan.shape, plan.knobs)
    if qk in rates.tensor and pv in rates.tensor:
        flops = 2.0 * elements * plan.shape.head_dim, 2.0 * elements * plan.shape.head_dim_v
        found.append(("tensor", flops[0] / rates.tensor[qk] + flops[1] / rates.tensor[pv]))
    if (share := exp2_share(plan)) is not None:
        found.append(("exp2", elements * share / rates.exp2))
    return Floors(tuple(found), rates.source) if found else None


def sass_floors(
    step_units: Mapping[str, int], step_ex2: int, arch: str, bench: Sequence[BenchResult] = ()
) -> Floors | None:
    """Floors of the softmax step's own instructions, by pipe.

    Args:
        step_units: instructions of a softmax warp's step, by unit (analysis.sass_kernel).
        step_ex2: its MUFU.EX2.
        bench: what was measured on this chip; the data above stand in for the rest.
    """
    rates = chip_rates(arch, bench)
    if rates is None:
        return None
    lanes = float(SOFTMAX_THREADS)
    issue = sum(step_units.values()) * (lanes / 32.0) / WARPS_A_CYCLE
    return Floors(
        (
            ("exp2", step_ex2 * lanes / rates.exp2),
            ("fma", step_units.get("FMA", 0) * lanes / rates.fma),
            # F2FP goes through the ALU too: only so do the published utilisations come out (benchmarks/floors_table.py)
            ("alu", (step_units.get("ALU", 0) + step_units.get("convert", 0)) * lanes / rates.alu),
            ("convert", step_units.get("convert", 0) * lanes / rates.convert),
            ("issue", issue),
        ),
        rates.source,
    )


def ratio(period_cycles: float | None, floors: Floors | None) -> float | None:
    """The clean period as a multiple of the floor."""
    return period_cycles / floors.floor if period_cycles and floors is not None else None


def floor_sentence(period_cycles: float | None, floors: Floors | None) -> str:
    """In words; '' where there is nothing to say."""
    if floors is None:
        return ""
    parts = ", ".join(f"{unit} {cycles:.0f}" for unit, cycles in floors.cycles)
    text = f"floor of a step: {floors.floor:.0f} cycles ({floors.unit}; {parts})"
    multiple = ratio(period_cycles, floors)
    return f"{text}; the clean period is {multiple:.2f} times that" if multiple is not None else text
