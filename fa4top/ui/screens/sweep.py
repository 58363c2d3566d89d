"""Screen 3: a knob over its values; and the form that starts a sweep."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Footer

from fa4top.analysis.compare.sweeps import GRID_FROM
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.orders.jobs import SweepJob
from fa4top.orders.typed import knob_values
from fa4top.targets.base import Description
from fa4top.ui.screens.form import Field, KnobForm
from fa4top.ui.screens.table import TableScreen
from fa4top.ui.view import View
from fa4top.ui.widgets.sentence import SweepHead, SweepSentence
from fa4top.ui.widgets.sweep_heat import SweepHeat
from fa4top.ui.widgets.sweep_panes import SweepGraph, SweepTable
from fa4top.ui.widgets.title import Title

WIDE = 140
TALL = 34


class SweepScreen(TableScreen):
    """Curves above, the settings below, the answer at the bottom."""

    def compose(self) -> ComposeResult:
        """Three graphs where there is room, two where there is less."""
        yield Title(id="title")
        yield SweepHead(id="head")
        with Horizontal(id="curves"):
            yield SweepGraph("tflops", "TFLOP/s, clean", 1.0, id="tflops")
            yield SweepGraph("wait_p_share", "wait P, % of MMA step", 100.0, id="wait_p")
            yield SweepGraph("wait_p_rest_share", "wait P 2nd, %", 100.0, id="wait_rest")
            yield SweepHeat(id="heat")
            yield SweepGraph("period_cycles", "period, cycles", 1.0, id="period")
        yield SweepTable(id="table")
        yield SweepSentence(id="verdict")
        yield Footer(show_command_palette=False)

    def show(self, snapshot: Snapshot, view: View) -> None:
        """A heat map in the place of the waits when there are many series."""
        self.set_class(snapshot.sweep is not None and len(snapshot.sweep.series) >= GRID_FROM, "grid")
        super().show(snapshot, view)

    def on_resize(self) -> None:
        """The fourth graph only where it can be read; more lines for the answer where there is room."""
        self.set_class(self.size.height >= TALL, "tall")
        self.set_class(self.size.width >= WIDE, "huge")
        self.set_class(self.size.width < 70, "narrow")


def sweep_job(values: str, series: str) -> SweepJob:
    """``KNOB=VALUE,VALUE`` twice, as a job; the second may be empty.

    Raises:
        ValueError: with the sentence for the person.
    """
    knob, chosen = knob_values(values)
    series_knob, of_series = knob_values(series) if series else ("", [])
    return SweepJob(knob=knob, values=chosen, series_knob=series_knob, series=of_series)


class SweepForm(KnobForm):
    """Which knob takes which values."""

    def __init__(self, description: Description, send: Callable[[dict[str, str]], str]) -> None:
        knob = description.offered()
        values = ",".join(knob.worth_trying)
        fields = (
            Field("values", "KNOB=VALUE,VALUE,...", f"{knob.name}={values}"),
            Field("series", "one curve for each value of another knob (may be empty): KNOB=VALUE,..."),
        )
        super().__init__(
            "Sweep a knob: every value in fresh workers, the live plan goes on afterwards", fields, description, send
        )
