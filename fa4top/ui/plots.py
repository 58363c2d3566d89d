"""Slow graphs through plotext: the one module that knows it. Returns text without colour codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MARKS = ("●", "○", "◆", "◇", "■", "□")  # one a series


@dataclass(frozen=True)
class Curve:
    """One series: a value for each place on the axis, None where there is none."""

    mark: str
    values: tuple[float | None, ...]


def line_plot(x: Sequence[float], y: Sequence[float], width: int, height: int, marker: str = "braille") -> str:
    """A line over x, ``width`` x ``height`` cells. Values that are not finite are left out; '' when none is left."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if not points:
        return ""
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, height)
    signal = figure.signal([a for a, _ in points], [b for _, b in points], marker=marker)
    signal.lines()
    figure.draw(signal)
    return _text(figure)


def curves_plot(
    places: Sequence[str], curves: Sequence[Curve], width: int, height: int, ascii_only: bool = False
) -> str:
    """Series over named places (a swept knob's values), ``width`` x ``height`` cells; '' when there is no value.

    Lines are drawn first, so that each series' mark stays on top of them.
    """
    known = [
        [(place, value) for place, value in enumerate(curve.values) if value is not None and math.isfinite(value)]
        for curve in curves
    ]
    if not any(known):
        return ""
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, height)
    for points in known:
        if len(points) > 1:
            line = figure.signal(
                [p for p, _ in points], [v for _, v in points], marker="." if ascii_only else "braille"
            )
            line.lines()
            figure.draw(line)
    for curve, points in zip(curves, known, strict=True):
        if points:
            figure.draw(figure.signal([p for p, _ in points], [v for _, v in points], marker=curve.mark))
    ticks = list(range(len(places)))
    figure.ruler("x").ticks(ticks, list(places))
    figure.ruler("x").lim(-0.2, len(places) - 0.8)
    return _text(figure)


def _text(figure: object) -> str:
    import plotext

    text = plotext.uncolorize(figure.build().string())  # type: ignore[attr-defined]
    figure.clear()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())
