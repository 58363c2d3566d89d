"""Slow graphs through plotext: the one module that knows it. Returns text without colour codes."""

from __future__ import annotations

import math
from collections.abc import Sequence


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
    text = plotext.uncolorize(figure.build().string())
    figure.clear()
    return "\n".join(line.rstrip() for line in text.splitlines())
