"""Screen 2: A against B; and the form that says what B is."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label

from fa4top.records import Plan
from fa4top.targets.base import Description
from fa4top.ui.screens.bench import TableScreen
from fa4top.ui.widgets.ab_panes import AbIntervals, AbTable
from fa4top.ui.widgets.sentence import AbHead, AbSentence
from fa4top.ui.widgets.title import Title

TALL = 34


class AbScreen(TableScreen):
    """Arms above, intervals below, the verdict at the bottom."""

    def compose(self) -> ComposeResult:
        """Title, head, arms, intervals, verdict."""
        yield Title(id="title")
        yield AbHead(id="head")
        yield AbTable(id="table")
        yield AbIntervals(id="intervals")
        yield AbSentence(id="verdict")
        yield Footer(show_command_palette=False)

    def on_resize(self) -> None:
        """More lines of the table where there is room."""
        self.set_class(self.size.height >= TALL, "tall")


class AbForm(ModalScreen[None]):
    """B as changes of the present setting, and the margin; a refusal is shown where it was typed."""

    BINDINGS = [("escape", "dismiss", "close")]
    AUTO_FOCUS = "#b"

    def __init__(self, plan: Plan, description: Description, send: Callable[[str, str], str]) -> None:
        super().__init__()
        self._plan = plan
        self._description = description
        self._send = send

    def compose(self) -> ComposeResult:
        """What differs, the margin, and what the knobs are."""
        present = " ".join(f"{name}={value}" for name, value in self._plan.knobs.items())
        with VerticalScroll(classes="dialog"):
            yield Label("Compare the present setting (A) with another (B)", classes="heading")
            yield Label(f"A: {present}", classes="hint", markup=False)
            yield Label("B differs by: KNOB=VALUE, with spaces between (nothing: A against A)")
            yield Input("", id="b")
            yield Label("margin: what counts as equal; it can not be changed later")
            yield Input("1%", id="margin")
            yield Label("", id="error", classes="error", markup=False)
            for knob in self._description.knobs:
                legal = ", ".join(knob.values) or f"{knob.low}..{knob.high}"
                yield Label(f"{knob.name}: {legal}  ({knob.numerics})", classes="hint", markup=False)
            yield Label("enter starts it, escape leaves all as it is", classes="hint")

    def on_input_submitted(self) -> None:
        """Send; stay open with the reason when it is refused."""
        error = self._send(self.query_one("#b", Input).value, self.query_one("#margin", Input).value)
        if error:
            self.query_one("#error", Label).update(error)
        else:
            self.dismiss()
