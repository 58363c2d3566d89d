"""Two swept knobs as a heat map of TFLOP/s."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.glyphs import Row, frame
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines

NAME_WIDTH = 9


class SweepHeat(Lines):
    """A cell for each pair of values: the figure, and a column as high as it lies between the least and the most."""

    HELP = (
        "One knob down, the other across; TFLOP/s of the clean twin. The column's height: between the least and the "
        "most of all cells. The best cell and those of the plateau of its row stand out; x: refused or failed."
    )

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with a table of cells."""
        state = snapshot.sweep
        if state is None:
            return frame([], width, height, "heat map", self.g)
        points = {(point.series, point.value): point for point in snapshot.sweep_points}
        known = [point.tflops for point in points.values() if point.tflops]
        low, high = (min(known), max(known)) if known else (0.0, 0.0)
        cell = max(5, min(10, (width - 2 - NAME_WIDTH) // max(1, len(state.values))))
        row: Row = [(f"{state.series_knob[: NAME_WIDTH - 1]:{NAME_WIDTH}}", "dim")]
        row += [(f"{value[: cell - 1]:>{cell}}", "dim") for value in state.values]
        body: list[Row] = [row]
        for series in state.series:
            line: Row = [(f"{series[: NAME_WIDTH - 1]:{NAME_WIDTH}}", "text")]
            for value in state.values:
                point = points.get((series, value))
                if point is None or not point.tflops:
                    line.append((f"{'x' if point is not None else self.g.dot:>{cell}}", "dim"))
                    continue
                share = (point.tflops - low) / (high - low) if high > low else 1.0
                step = self.g.steps[1 + round(share * (len(self.g.steps) - 2))]
                style = "good" if point.tflops == high else "role-a" if point.plateau == "in" else "text"
                line.append((f"{point.tflops:>{cell - 1}.0f}", style))
                line.append((step, style))
            body.append(line)
        return frame(body, width, height, f"TFLOP/s, {state.knob} across", self.g)
