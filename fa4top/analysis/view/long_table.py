"""A session's records as one long table, a figure a row: what CSV and Parquet hold. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fa4top.analysis.view.metrics import METRICS, metrics_of
from fa4top.records import (
    AbArm,
    AbBlock,
    AbPair,
    BenchResult,
    Body,
    Check,
    CleanBurst,
    Envelope,
    GpuSample,
    Repeats,
    RoleSample,
    SassReport,
    SweepPoint,
    TraceSample,
)

CLEAN, TRACED, NVML = "clean", "traced", "NVML"


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One figure. ``role`` is the role, the arm, the setting or the microbenchmark that it belongs to, '' where there
    is none; ``label`` says traced or clean, or the verdict that belongs to it; simulated data say so in every row."""

    time_s: float
    source: str
    plan_id: int
    kind: str
    role: str
    metric: str
    value: float
    unit: str
    label: str
    simulated: bool


@dataclass(frozen=True)
class _Figure:
    role: str
    metric: str
    value: float | None
    unit: str
    label: str


def table_rows(record: Envelope, time_s: float) -> list[TableRow]:
    """All figures of a record; those that are not known are left out."""
    figures = _FIGURES.get(type(record.body), lambda body: iter(()))(record.body)
    plan_id = int(getattr(record.body, "plan_id", 0))
    return [
        TableRow(
            time_s=time_s,
            source=record.source,
            plan_id=plan_id,
            kind=record.kind,
            role=figure.role,
            metric=figure.metric,
            value=figure.value,
            unit=figure.unit,
            label=figure.label,
            simulated=record.simulated,
        )
        for figure in figures
        if figure.value is not None
    ]


def _metrics(body: Any, role: str = "", label: str = "") -> Iterator[_Figure]:
    for metric in metrics_of(type(body)):
        said = label or {True: CLEAN, False: TRACED, None: ""}[metric.clean]
        yield _Figure(role, metric.name, metric.value(body), metric.unit, said)


def _clean(body: CleanBurst) -> Iterator[_Figure]:
    time = METRICS["time"]
    for time_us in body.times_us:
        yield _Figure("", time.name, time_us, time.unit, CLEAN)
    for figure in _metrics(body, label=CLEAN):
        if figure.metric != time.name:
            yield figure


def _trace(body: TraceSample) -> Iterator[_Figure]:
    time = METRICS["time"]
    yield _Figure("", time.name, body.time_us, time.unit, TRACED)
    yield _Figure("", METRICS["SM clock"].name, body.sm_clock_mhz, METRICS["SM clock"].unit, TRACED)
    for role in body.roles:
        yield from _role(role)


def _role(role: RoleSample) -> Iterator[_Figure]:
    for metric in metrics_of(RoleSample):
        name = metric.name if metric.name in ("period", "busy") else f"period {metric.name}"
        yield _Figure(role.role, name, metric.value(role), metric.unit, TRACED)
    for cause, cycles in role.waits_cycles.items():
        yield _Figure(role.role, cause, cycles, "cycles", TRACED)


def _bench(body: BenchResult) -> Iterator[_Figure]:
    yield _Figure(body.name, "figure", body.value, body.unit, body.status)
    yield _Figure(body.name, "share of limit", body.limit_share, "share", body.status)
    yield _Figure(body.name, "published", body.published, body.unit, "published")


def _sweep_point(body: SweepPoint) -> Iterator[_Figure]:
    name = f"{body.series} {body.value}".strip()
    if body.status == "measured":
        yield from _metrics(body, name)
    for metric, value in (
        ("change", body.change_percent),
        ("change, low", body.low_percent),
        ("change, high", body.high_percent),
        ("change in fresh processes", body.fresh_percent),
        ("change in fresh processes, low", body.fresh_low_percent),
        ("change in fresh processes, high", body.fresh_high_percent),
    ):
        yield _Figure(name, metric, value, "percent of time", body.word or body.status)


def _ab_arm(body: AbArm) -> Iterator[_Figure]:
    yield from _metrics(body, body.arm)
    for cause, cycles in body.waits_cycles.items():
        yield _Figure(body.arm, cause, cycles, "cycles", TRACED)


def _ab_unit(body: AbBlock | AbPair) -> Iterator[_Figure]:
    counts = not isinstance(body, AbBlock) or (body.accepted and not body.pilot)
    label = body.word if counts else ("pilot" if isinstance(body, AbBlock) and body.pilot else "rejected")
    name = f"{'block' if isinstance(body, AbBlock) else 'pair'} {body.number}"
    yield _Figure(name, "log ratio", body.log_ratio, "log(B/A)", label)
    for metric, value in (("estimate", body.estimate), ("low", body.low), ("high", body.high)):
        yield _Figure(name, metric, value, "log(B/A)", label)


def _repeats(body: Repeats) -> Iterator[_Figure]:
    label = body.verdict or "the worker's own"
    yield _Figure(body.setting, "launches", float(body.times), "launches", label)
    yield _Figure(body.setting, "launches that differ", float(body.flaky_launches), "launches", label)
    yield _Figure(body.setting, "elements that differ", float(body.differing_elements), "elements", label)
    yield _Figure(body.setting, "RMS error", body.rms_error, "of the reference's RMS", label)


def _check(body: Check) -> Iterator[_Figure]:
    yield _Figure(body.twin, "RMS error", body.rms_error, "of the reference's RMS", "ok" if body.passed else "FAILED")


def _sass(body: SassReport) -> Iterator[_Figure]:
    for name, value in body.figures.items():
        yield _Figure(body.setting, name, value, "instructions", body.arch)


_FIGURES: dict[type[Body], Callable[[Any], Iterator[_Figure]]] = {
    CleanBurst: _clean,
    TraceSample: _trace,
    GpuSample: lambda body: _metrics(body, label=NVML),
    BenchResult: _bench,
    SweepPoint: _sweep_point,
    AbArm: _ab_arm,
    AbBlock: _ab_unit,
    AbPair: _ab_unit,
    Repeats: _repeats,
    Check: _check,
    SassReport: _sass,
}
