"""Numbers of a sweep's settings, and the sentence about them. Medians with spread; no claims about significance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fa4top.records import CleanBurst, Geometry, RoleSample, SweepPoint, TraceSample

LEADS = ("softmax0", "mma0")
NEAR = 0.01  # within this of the best counts as its plateau


def measured_point(
    point: SweepPoint, bursts: Sequence[CleanBurst], samples: Sequence[TraceSample], geometry: Geometry, output: str
) -> SweepPoint:
    """The point with its numbers: medians and p5, p95 over bursts (time) and launches (period)."""
    times = np.array([float(np.median(burst.times_us)) for burst in bursts])
    tflops = geometry.flops / times / 1e6
    traced_us = float(np.median([sample.time_us for sample in samples]))
    time_us = float(np.median(times))
    clocks = [sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz]
    clock = float(np.median(clocks)) if clocks else None
    lead = next((name for name in LEADS if _roles(samples, name)), "")
    periods = [role.period_median_cycles for role in _roles(samples, lead) if role.period_median_cycles is not None]
    p5, period, p95 = (float(x) for x in np.percentile(periods, (5, 50, 95))) if periods else (None, None, None)
    mma = _roles(samples, "mma")
    step = _median([role.period_median_cycles for role in mma])
    first, rest = _median_wait(mma, "wait P"), _median_wait(mma, "wait P 2nd")
    return replace(
        point,
        time_us=time_us,
        tflops=float(np.median(tflops)),
        tflops_p5=float(np.percentile(tflops, 5)),
        tflops_p95=float(np.percentile(tflops, 95)),
        clean_period_cycles=time_us * clock / geometry.steps_longest if clock else None,
        period_cycles=period,
        period_p5_cycles=p5,
        period_p95_cycles=p95,
        wait_p_cycles=first,
        wait_p_rest_cycles=rest,
        wait_p_share=first / step if first is not None and step else None,
        wait_p_rest_share=rest / step if rest is not None and step else None,
        probe_effect=traced_us / time_us - 1.0,
        sm_clock_mhz=clock,
        bursts=len(bursts),
        traces=len(samples),
        output=output,
    )


def _roles(samples: Sequence[TraceSample], name: str) -> list[RoleSample]:
    return [role for sample in samples for role in sample.roles if role.role == name]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _median_wait(roles: Sequence[RoleSample], cause: str) -> float | None:
    return _median([role.waits_cycles.get(cause) for role in roles])


def plateau(points: Sequence[SweepPoint]) -> list[SweepPoint]:
    """Settings within one percent of the best median, in the order given."""
    measured = [point for point in points if point.status == "measured" and point.tflops]
    if not measured:
        return []
    best = max(point.tflops or 0.0 for point in measured)
    return [point for point in measured if (point.tflops or 0.0) >= (1.0 - NEAR) * best]


def sweep_verdict(knob: str, points: Sequence[SweepPoint]) -> str:
    """What the sweep says, one clause a series."""
    clauses = []
    for series in dict.fromkeys(point.series for point in points):
        own = [point for point in points if point.series == series]
        name = f"{series}: " if series else ""
        near = plateau(own)
        if not near:
            clauses.append(f"{name}nothing was measured")
            continue
        best = max(near, key=lambda point: point.tflops or 0.0)
        worst = min((p for p in own if p.tflops), key=lambda point: point.tflops or 0.0)
        if len(near) == len([p for p in own if p.tflops]) > 1:
            clauses.append(f"{name}{knob} makes no difference above 1% ({best.tflops:.0f} TFLOP/s)")
            continue
        others = ", ".join(point.value for point in near if point is not best)
        text = f"{name}{knob} {best.value} is best, {best.tflops:.0f} TFLOP/s"
        if others:
            text += f" (within 1%: {others})"
        if worst is not best and best.tflops and worst.tflops:
            text += f"; {worst.value} is {1.0 - worst.tflops / best.tflops:.1%} slower"
        failed = [point.value for point in own if point.status == "failed"]
        if failed:
            text += f"; failed: {', '.join(failed)}"
        clauses.append(text)
    return ". ".join(clauses)


def same_output(points: Sequence[SweepPoint]) -> dict[str, bool]:
    """By ``series/value``: is its output bit for bit that of the first measured setting of its series?"""
    first: dict[str, str] = {}
    result = {}
    for point in points:
        if point.status == "measured":
            first.setdefault(point.series, point.output)
            result[f"{point.series}/{point.value}"] = point.output == first[point.series]
    return result
