"""Screen 2: A against B; and the form that says what B is."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.widgets import Footer

from fa4top.records import AbState, Plan
from fa4top.targets.base import Description
from fa4top.ui.screens.bench import TableScreen
from fa4top.ui.screens.form import Field, KnobForm
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


class AbForm(KnobForm):
    """B as changes of the present setting, and the margin."""

    def __init__(
        self, plan: Plan, description: Description, send: Callable[[dict[str, str]], str], before: AbState | None = None
    ) -> None:
        """``before``: the A/B whose B is to be edited."""
        present = " ".join(f"{name}={value}" for name, value in plan.knobs.items())
        kept = before.b if before is not None else {}
        other = " ".join(f"{name}={kept[name]}" for name, value in plan.knobs.items() if kept.get(name, value) != value)
        fields = (
            Field("b", "B differs by: KNOB=VALUE, with spaces between (nothing: A against A)", other),
            Field("margin", "margin: what counts as equal; it can not be changed later", "1%"),
            Field("mode", "burst (speed at boost) or sustained (at power equilibrium)", "burst"),
        )
        super().__init__("Compare the present setting (A) with another (B)", fields, description, send, f"A: {present}")
