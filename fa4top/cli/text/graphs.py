"""Curves of a result in a terminal, through plotext."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.plots import MARKS, Curve, curves_plot, line_plot

WIDTH, HEIGHT = 76, 11
PERIOD_WIDTH, PERIOD_HEIGHT = 100, 10


def graphs(kind: str, snapshot: Snapshot) -> list[str]:
    """Lines of the curves that belong to a kind of result; [] where there are none."""
    return {"live": period, "sweep": sweep}.get(kind, lambda _: [])(snapshot)


def period(snapshot: Snapshot) -> list[str]:
    """The step period of the lead role over time."""
    lead = snapshot.lead
    if lead is None or len(lead.series) <= 2:
        return []
    start = lead.series[0].time_s
    seconds, values = [p.time_s - start for p in lead.series], [p.value for p in lead.series]
    head = f"step period of {lead.role}, cycles, over seconds"
    return [head, line_plot(seconds, values, PERIOD_WIDTH, PERIOD_HEIGHT), ""]


def curves(snapshot: Snapshot, metric: str) -> list[Curve]:
    """One curve a series: ``tflops`` or ``wait_p_share`` and so on over the swept values."""
    state = snapshot.sweep
    assert state is not None
    by_place = {(point.series, point.value): point for point in snapshot.sweep_points}
    result = []
    for number, series in enumerate(state.series):
        values = tuple(getattr(by_place.get((series, value)), metric, None) for value in state.values)
        result.append(Curve(MARKS[number % len(MARKS)], values))
    return result


def sweep(snapshot: Snapshot) -> list[str]:
    """TFLOP/s and the waits over the swept values."""
    state = snapshot.sweep
    assert state is not None
    lines = []
    if len(state.series) > 1:
        lines.append("  ".join(f"{MARKS[i % len(MARKS)]} {name}" for i, name in enumerate(state.series)))
    for metric, name in (
        ("tflops", "TFLOP/s (clean)"),
        ("wait_p_share", "MMA waits for P, share of its step (traced)"),
        ("wait_p_rest_share", "MMA waits for the second part of P, share of its step (traced)"),
    ):
        if graph := curves_plot(state.values, curves(snapshot, metric), WIDTH, HEIGHT):
            lines += [name, graph]
    return lines
