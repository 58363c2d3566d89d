"""Numbers of a sweep's settings, and the sentence about them. Medians with spread; no claims about significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fa4top.analysis.compare.evidence import e_bh
from fa4top.records import CleanBurst, Geometry, RoleMap, RoleSample, SweepPoint, TraceSample

GRID_FROM = 3  # values of the second knob: two are better as curves
NEAR = 0.01  # within this of the best counts as its plateau


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One setting's numbers: medians with p5 and p95, over bursts (time) and launches (period). Waits are those of the
    MMA role, cycles a step by cause; ``step_cycles`` its step."""

    time_us: float
    tflops: float
    tflops_p5: float
    tflops_p95: float
    clean_period_cycles: float | None
    period_cycles: float | None
    period_p5_cycles: float | None
    period_p95_cycles: float | None
    waits_cycles: dict[str, float]
    step_cycles: float | None
    probe_effect: float
    sm_clock_mhz: float | None
    bursts: int
    traces: int

    def wait_share(self, cause: str) -> float | None:
        """Part of the MMA role's step; None where it is not measured."""
        cycles = self.waits_cycles.get(cause)
        return cycles / self.step_cycles if cycles is not None and self.step_cycles else None


def figures(
    bursts: Sequence[CleanBurst], samples: Sequence[TraceSample], geometry: Geometry, roles: RoleMap | None
) -> Figures:
    """What these bursts and traced launches say."""
    times = np.array([float(np.median(burst.times_us)) for burst in bursts])
    tflops = geometry.flops / times / 1e6
    traced_us = float(np.median([sample.time_us for sample in samples]))
    time_us = float(np.median(times))
    clocks = [sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz]
    clock = float(np.median(clocks)) if clocks else None
    lead = _roles(samples, roles.lead if roles else "")
    periods = [role.period_median_cycles for role in lead if role.period_median_cycles is not None]
    p5, period, p95 = (float(x) for x in np.percentile(periods, (5, 50, 95))) if periods else (None, None, None)
    mma = _roles(samples, roles.mma[0] if roles and roles.mma else "")
    causes = {cause for role in mma for cause in role.waits_cycles}
    return Figures(
        time_us=time_us,
        tflops=float(np.median(tflops)),
        tflops_p5=float(np.percentile(tflops, 5)),
        tflops_p95=float(np.percentile(tflops, 95)),
        clean_period_cycles=time_us * clock / geometry.steps_longest if clock else None,
        period_cycles=period,
        period_p5_cycles=p5,
        period_p95_cycles=p95,
        waits_cycles={cause: _median([role.waits_cycles.get(cause) for role in mma]) or 0.0 for cause in causes},
        step_cycles=_median([role.period_median_cycles for role in mma]),
        probe_effect=traced_us / time_us - 1.0,
        sm_clock_mhz=clock,
        bursts=len(bursts),
        traces=len(samples),
    )


def measured_point(point: SweepPoint, found: Figures, output: str) -> SweepPoint:
    """The point with its numbers."""
    return replace(
        point,
        time_us=found.time_us,
        tflops=found.tflops,
        tflops_p5=found.tflops_p5,
        tflops_p95=found.tflops_p95,
        clean_period_cycles=found.clean_period_cycles,
        period_cycles=found.period_cycles,
        period_p5_cycles=found.period_p5_cycles,
        period_p95_cycles=found.period_p95_cycles,
        wait_p_share=found.wait_share("wait P"),
        wait_p_rest_share=found.wait_share("wait P 2nd"),
        probe_effect=found.probe_effect,
        sm_clock_mhz=found.sm_clock_mhz,
        bursts=found.bursts,
        traces=found.traces,
        output=output,
    )


def _roles(samples: Sequence[TraceSample], name: str) -> list[RoleSample]:
    return [role for sample in samples for role in sample.roles if role.role == name]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def plateau(points: Sequence[SweepPoint]) -> list[SweepPoint]:
    """Settings not worse than the best by more than the margin, in the order given: as the blocks say, or, in
    recordings from before there were blocks, within one percent of the best median."""
    measured = [point for point in points if point.status == "measured" and point.tflops]
    if not measured:
        return []
    if any(point.plateau for point in measured):
        return [point for point in measured if point.plateau == "in"]
    best = max(point.tflops or 0.0 for point in measured)
    return [point for point in measured if (point.tflops or 0.0) >= (1.0 - NEAR) * best]


def quoted(point: SweepPoint) -> tuple[float, float, float] | None:
    """Change of time against the baseline in percent with its interval: the fresh figures where there are any."""
    if point.fresh_percent is not None and point.fresh_low_percent is not None and point.fresh_high_percent is not None:
        return point.fresh_percent, point.fresh_low_percent, point.fresh_high_percent
    if point.change_percent is None or point.low_percent is None or point.high_percent is None:
        return None
    return point.change_percent, point.low_percent, point.high_percent


def sweep_verdict(knob: str, points: Sequence[SweepPoint], baselines: Mapping[str, str], margin: float) -> str:
    """What the sweep says, a sentence for each series. Below the margin the baseline is kept."""
    return ". ".join(
        (f"{series}: " if series else "")
        + _series_verdict(knob, [p for p in points if p.series == series], baselines.get(series, ""), margin)
        for series in dict.fromkeys(point.series for point in points)
    )


def _series_verdict(knob: str, points: Sequence[SweepPoint], baseline: str, margin: float) -> str:
    measured = [point for point in points if point.status == "measured" and point.tflops]
    failed = [point.value for point in points if point.status == "failed"]
    tail = f"; failed: {', '.join(failed)}" if failed else ""
    if not measured:
        return "nothing was measured" + tail
    base = next((point for point in measured if point.value == baseline), None)
    within = f"{100 * margin:g}%"
    near = plateau(measured)
    if base is None or all(point.change_percent is None for point in measured if point is not base):
        best = max(measured, key=lambda point: point.tflops or 0.0)
        return f"no comparison yet; {knob} {best.value} has the highest median, {best.tflops:.0f} TFLOP/s" + tail
    compared = [point for point in measured if quoted(point) is not None]
    # measured again beats measured once: the others did not come near
    candidates = [point for point in compared if point.fresh_percent is not None] or compared
    best = min([base, *candidates], key=lambda point: (quoted(point) or (0.0,))[0] if point is not base else 0.0)
    word = best.fresh_word or best.word
    found = quoted(best)
    if best is base or word != "faster" or found is None:
        text = f"keep {knob} {baseline} ({base.tflops:.0f} TFLOP/s): nothing is faster for certain"
        best = base
    else:
        again = ", in fresh processes" if best.fresh_percent is not None else ""
        text = (
            f"{knob} {best.value} is best, {best.tflops:.0f} TFLOP/s: {-found[0]:.2f}% faster than {baseline} "
            f"({-found[2]:.2f} to {-found[1]:.2f}{again})"
        )
        if -found[0] < 100 * margin:
            text += f"; below the margin of {within}, {baseline} may stay"
    others = [point.value for point in near if point is not best]
    if len(near) == len(measured) > 1:
        text += f"; {knob} makes no difference above {within}"
    elif others:
        text += f"; within {within} of it: {', '.join(others)}"
    slower = [point for point in compared if point.word == "slower" and not _within(point, margin)]
    if slower:
        worst = max(slower, key=lambda point: point.change_percent or 0.0)
        text += f"; {worst.value} is {worst.change_percent:.1f}% slower than {baseline}"
    undecided = [point.value for point in compared if point.word == "undecided"]
    shortlist = e_bh({point.value: point.log_e for point in compared if point.log_e is not None})
    likely = [value for value in undecided if value in shortlist]
    if likely:
        text += f"; likely different, worth a sweep of its own (false discovery rate 5%): {', '.join(likely)}"
    if open_ := [value for value in undecided if value not in likely]:
        text += f"; undecided: {', '.join(open_)}"
    return text + tail


def _within(point: SweepPoint, margin: float) -> bool:
    return abs(point.change_percent or 0.0) < 100 * margin


def same_output(points: Sequence[SweepPoint], baselines: Mapping[str, str] | None = None) -> dict[str, bool]:
    """By ``series/value``: is its output bit for bit the baseline's (without one: the first measured setting's)?"""
    measured = [point for point in points if point.status == "measured"]
    reference: dict[str, str] = {}
    for point in measured:
        if point.series not in reference or point.value == (baselines or {}).get(point.series):
            reference[point.series] = point.output
    return {f"{point.series}/{point.value}": point.output == reference[point.series] for point in measured}
