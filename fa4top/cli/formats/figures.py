"""Curves of a session as SVG, by matplotlib (the `report` extra)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.records import SweepPoint


def figures(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(name, SVG) of the step period over time and of the sweep; [] without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("svg")
        from matplotlib import pyplot
    except ImportError:
        return []
    found = []

    def save(name: str) -> None:
        text = io.StringIO()
        pyplot.tight_layout()
        pyplot.savefig(text, format="svg", metadata={"Date": None})
        pyplot.close()
        found.append((name, text.getvalue()))

    lead = snapshot.lead
    if lead is not None and len(lead.series) > 2:
        start = lead.series[0].time_s
        pyplot.figure(figsize=(7, 2.6))
        pyplot.plot([p.time_s - start for p in lead.series], [p.value for p in lead.series], lw=1)
        if snapshot.floors is not None:
            pyplot.axhline(snapshot.floors.floor, ls="--", lw=1, color="grey", label=f"floor ({snapshot.floors.unit})")
            pyplot.legend()
        pyplot.xlabel("s")
        pyplot.ylabel("cycles")
        pyplot.title(f"step period of {lead.role}, traced{snapshot.suffix}")
        save("period")
    own = [point for point in snapshot.sweep_points if point.status == "measured" and point.tflops]
    if own and snapshot.sweep is not None:
        pyplot.figure(figsize=(7, 2.6))
        for series in dict.fromkeys(point.series for point in own):
            _curve(pyplot, [point for point in own if point.series == series], series)
        pyplot.ylabel("TFLOP/s")
        pyplot.xlabel(snapshot.sweep.knob)
        pyplot.title(f"sweep of {snapshot.sweep.knob}{snapshot.suffix}")
        save("sweep")
    return found


def _curve(pyplot: Any, points: Sequence[SweepPoint], name: str) -> None:
    values = [point.value for point in points]
    pyplot.plot(values, [point.tflops for point in points], marker="o", lw=1, label=name or None)
