"""Screen 3: a knob over its values; and the form that starts a sweep."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label

from fa4top.targets.base import Description, Knob
from fa4top.ui.screens.bench import TableScreen
from fa4top.ui.widgets.sentence import SweepHead, SweepSentence
from fa4top.ui.widgets.sweep_panes import SweepGraph, SweepTable
from fa4top.ui.widgets.title import Title

WIDE = 140


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
            yield SweepGraph("period_cycles", "period, cycles", 1.0, id="period")
        yield SweepTable(id="table")
        yield SweepSentence(id="verdict")
        yield Footer(show_command_palette=False)

    def on_resize(self) -> None:
        """The fourth graph only where it can be read."""
        self.set_class(self.size.width >= WIDE, "huge")
        self.set_class(self.size.width < 70, "narrow")


def offered(description: Description) -> Knob:
    """The knob that a person most likely wants to sweep: the split where there is one."""
    by_name = {knob.name: knob for knob in description.knobs}
    return by_name.get("p_split") or description.knobs[0]


class SweepForm(ModalScreen[None]):
    """KNOB=VALUE,VALUE,...; enter sends it, a refusal is shown where it was typed."""

    BINDINGS = [("escape", "dismiss", "close")]
    AUTO_FOCUS = "#values"

    def __init__(self, description: Description, send: Callable[[str, str], str]) -> None:
        super().__init__()
        self._description = description
        self._send = send

    def compose(self) -> ComposeResult:
        """Two lines, and what the knobs are."""
        knob = offered(self._description)
        values = ",".join(value for value in knob.values if value != "auto")
        with VerticalScroll(classes="dialog"):
            yield Label(
                "Sweep a knob: every value in fresh workers, the live plan goes on afterwards", classes="heading"
            )
            yield Label("KNOB=VALUE,VALUE,...")
            yield Input(f"{knob.name}={values}", id="values")
            yield Label("one curve for each value of another knob (may be empty): KNOB=VALUE,...")
            yield Input("", id="series")
            yield Label("", id="error", classes="error", markup=False)
            for each in self._description.knobs:
                legal = ", ".join(each.values) or f"{each.low}..{each.high}"
                yield Label(f"{each.name}: {legal}", classes="hint", markup=False)
            yield Label("enter starts it, escape leaves all as it is", classes="hint")

    def on_input_submitted(self) -> None:
        """Send; stay open with the reason when it is refused."""
        error = self._send(
            self.query_one("#values", Input).value.strip(), self.query_one("#series", Input).value.strip()
        )
        if error:
            self.query_one("#error", Label).update(error)
        else:
            self.dismiss()
