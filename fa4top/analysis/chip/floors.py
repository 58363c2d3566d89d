"""The floor of a step: how long the busiest unit needs for its instructions alone. Pure; rates and counts are data.

Assumed: units overlap perfectly, nothing waits, nothing else is issued. So a floor is a bound from below, never a
prediction; a measured period below its floor means that a rate or a count is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fa4top.analysis.chip.chips import SCHEDULERS, Rates, chip_of
from fa4top.records import BenchResult, Geometry, Plan, Shape

SOFTMAX_THREADS = 256  # a step's rows are spread over two warpgroups, in every kernel here


# a rate: the microbenchmark that measures it
MEASURED_BY: dict[str, str] = {
    "exp2": "ex2.approx.ftz.f32",
    "fma": "fma.rn.f32",
    "alu": "max.f32",
    "convert": "cvt.rn.bf16x2.f32",
}


def chip_rates(arch: str, bench: Sequence[BenchResult] = ()) -> Rates | None:
    """Rates of a chip: what this session measured on it, and the data above for the rest; None for an unknown chip."""
    chip = chip_of(arch)
    if chip is None:
        return None
    rates = chip.rates
    known = {result.name: result.value for result in bench if result.status == "measured" and result.arch == arch}
    found = {rate: value for rate, name in MEASURED_BY.items() if (value := known.get(name)) is not None}
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


def plan_floors(plan: Plan, geometry: Geometry, bench: Sequence[BenchResult] = ()) -> Floors | None:
    """Tensor and exp2 floors of a plan, from its shape and the counts above; None for a chip without rates."""
    rates = chip_rates(plan.arch, bench)
    if rates is None:
        return None
    work = geometry.work
    if work is None:
        return None
    elements = elements_a_step(geometry, plan.shape)
    found: list[tuple[str, float]] = []
    qk, pv = work.qk_format, work.pv_format
    if qk in rates.tensor and pv in rates.tensor:
        flops = 2.0 * elements * plan.shape.head_dim, 2.0 * elements * plan.shape.head_dim_v
        found.append(("tensor", flops[0] / rates.tensor[qk] + flops[1] / rates.tensor[pv]))
    if work.exp2_per_element is not None:
        found.append(("exp2", elements * work.exp2_per_element / rates.exp2))
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
    issue = sum(step_units.values()) * (lanes / 32.0) / SCHEDULERS
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
    text = f"{floors.floor:.0f} cycles a step ({floors.unit}; {parts})"
    multiple = ratio(period_cycles, floors)
    return f"{text}; the clean period is {multiple:.2f} times that" if multiple is not None else text
