"""Screen 1: the live panes."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.screen import Screen
from textual.widgets import Footer

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.view import View
from fa4top.ui.widgets.facts import Facts
from fa4top.ui.widgets.histogram import Histogram
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.period_graph import PeriodGraph
from fa4top.ui.widgets.recent import Recent
from fa4top.ui.widgets.roles_table import RolesTable
from fa4top.ui.widgets.sm_map import SmMap
from fa4top.ui.widgets.step_waits import StepWaits
from fa4top.ui.widgets.timeline import TimelinePane
from fa4top.ui.widgets.title import Title
from fa4top.ui.widgets.verdict_line import VerdictLine

WIDE, HUGE, NARROW = 110, 170, 76
TALL, SHORT = 34, 20


class LiveScreen(Screen[None]):
    """The answer at the bottom, the graph above, then the cause, then how it looks in time."""

    def __init__(self) -> None:
        super().__init__()
        self._timeline_rows = 0
        self._panes: list[Lines] = []

    def on_mount(self) -> None:
        """They do not change any more."""
        self._panes = list(self.query(Lines))

    def compose(self) -> ComposeResult:
        """Panes in the order of the eye from top to bottom."""
        yield Title(id="title")
        with Horizontal(id="top"):
            yield PeriodGraph(id="graph")
            yield StepWaits(id="waits")
        with Container(id="wide"):
            yield RolesTable(id="roles")
            yield Histogram(id="histogram")
            yield SmMap(id="sm_map")
        yield TimelinePane(id="timeline")
        yield Recent(id="recent")
        yield Facts(id="facts")
        yield VerdictLine(id="verdict")
        yield Footer(show_command_palette=False)

    def on_resize(self) -> None:
        """Classes by size; the style sheet does the rest."""
        width, height = self.size
        self.set_class(width >= WIDE, "wide")
        self.set_class(width >= HUGE and height >= TALL, "huge")
        self.set_class(width < NARROW, "narrow")
        self.set_class(height >= TALL, "tall")
        self.set_class(height < SHORT, "short")

    def show(self, snapshot: Snapshot, view: View) -> None:
        """Hand the snapshot to all panes that can be seen, in one repaint."""
        rows = len(snapshot.timeline.rows) if snapshot.timeline else 0
        if rows and rows != self._timeline_rows:
            self._timeline_rows = rows
            self.query_one(TimelinePane).styles.height = rows + 2
        self.set_class(bool(snapshot.own), "own")
        with self.app.batch_update():
            for pane in self._panes:
                if pane.display:
                    pane.update(snapshot, view)
