"""Screen 3's panes: curves of the swept knob, and the table of its settings."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.tables import null_lines, sweep_rows
from fa4top.ui.glyphs import Row, frame
from fa4top.ui.plots import MARKS, Curve, curves_plot
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.scrolled import Scrolled

ASCII_MARKS = ("A", "B", "C", "D", "E", "F")
SERIES_STYLES = ("role-a", "role-b", "role-c", "role-d")


def marks(ascii_only: bool) -> tuple[str, ...]:
    """One mark a series."""
    return ASCII_MARKS if ascii_only else MARKS


class SweepGraph(Lines):
    """One metric over the swept values, one curve a series."""

    HELP = (
        "The swept knob's values from left to right; one mark a series. Values without a mark were refused or failed."
    )

    def __init__(self, metric: str, title: str, scale: float, *, id: str) -> None:
        super().__init__(id=id)
        self._metric, self._title, self._scale = metric, title, scale

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """A frame with plotext's curves."""
        state = snapshot.sweep
        body: list[Row] = [[("  no sweep yet: s starts one", "dim")]]
        if state is not None:
            points = {(point.series, point.value): point for point in snapshot.sweep_points}
            signs = marks(view.ascii_only)
            curves = []
            for number, series in enumerate(state.series):
                found = [getattr(points.get((series, value)), self._metric, None) for value in state.values]
                scaled = tuple(value * self._scale if value is not None else None for value in found)
                curves.append(Curve(signs[number % len(signs)], scaled))
            text = curves_plot(state.values, curves, width - 2, height - 2, view.ascii_only)
            body = [self._coloured(line, signs) for line in text.splitlines()] if text else [[("  -", "dim")]]
        return frame(body, width, height, self._title, self.g)

    def _coloured(self, line: str, signs: tuple[str, ...]) -> Row:
        if self._view.ascii_only:
            return [(line.translate(_PLAIN), "text")]
        row: Row = []
        for char in line:
            style = "frame"
            if char in signs:
                style = SERIES_STYLES[signs.index(char) % len(SERIES_STYLES)]
            elif char.isalnum() or char in "./":
                style = "dim"
            row.append((char, style))
        return row


_PLAIN = str.maketrans("┌┐└┘─│┤┬├┴┼", "++++-|||||+")


class SweepTable(Scrolled):
    """Every setting: clean TFLOP/s, change of time against the baseline with interval and verdict, waits."""

    HELP = (
        "time: change against the baseline (the present value), negative is faster; the intervals of all values hold "
        "together at 95%, however often one looks. fresh: the best again in fresh processes on fresh data, the number "
        "to quote. wait P, P 2nd: share of the MMA role's step (traced). output: bit for bit the baseline's, or not. "
        "plateau: not worse than the best by more than the margin. The null arm is the baseline again: if it differs, "
        "nothing here may be believed."
    )

    def table(self, snapshot: Snapshot, view: View, width: int) -> tuple[list[Row], list[Row]]:
        """Head and one row a setting."""
        state = snapshot.sweep
        if state is None:
            return [], []
        wide, huge = width >= 100, width >= 118
        series_width = 6 if state.series_knob else 0
        head = f" {'':2}{state.series_knob[: max(0, series_width - 1)]:{series_width}}{state.knob[:7]:8}{'TFLOP/s':>8}"
        head += f"{'time':>9}{'interval':>17} " if wide else f"{'time':>9} "
        head += f"{'verdict':11}{'fresh':>8}" if wide else f"{'verdict':10}"
        head += f"{'period':>8}" if huge else ""
        head += f"{'wait P':>8}{'P 2nd':>7}  output"
        signs = marks(view.ascii_only)
        body: list[Row] = []
        for row in sweep_rows(state, snapshot.sweep_points):
            number = state.series.index(row.series)
            start: Row = [
                (f" {signs[number % len(signs)]} ", SERIES_STYLES[number % len(SERIES_STYLES)]),
                (f"{row.series[: max(0, series_width - 1)]:{series_width}}{row.value[:7]:8}", "text"),
            ]
            if row.status != "measured":
                style = {"refused": "warn", "failed": "bad"}.get(row.status, "dim")
                body.append([*start, (f" {row.status}  {row.note}", style)])
                continue
            word = row.verdict
            style = {"faster": "good", "slower": "bad"}.get(word, "dim")
            body.append(
                [
                    *start,
                    (f"{row.tflops:>8}", "strong"),
                    (f"{row.against:>9}", "text"),
                    (f"{row.interval:>17} " if wide else " ", "dim"),
                    (f"{word:11}" if wide else f"{word:10}", style),
                    (f"{row.fresh:>8}" if wide else "", "strong"),
                    (f"{row.period:>8}" if huge else "", "text"),
                    (f"{row.wait_p:>8}{row.wait_rest:>7}", "text"),
                    (f"  {row.output:8}", "bad" if row.differs else "dim"),
                    (f" {'<' if view.ascii_only else '◀'} {row.plateau}" if row.plateau else "", "good"),
                ]
            )
        body += [[(f"   {line}", "dim")] for line in null_lines(snapshot.sweep_points)]
        return [[(head, "dim")]], body
