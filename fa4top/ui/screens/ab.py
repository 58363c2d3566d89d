"""Screen 2: A against B; and the form that says what B is."""

from __future__ import annotations

from collections.abc import Callable

from fa4top.analysis.view.words import changed_knobs
from fa4top.orders.jobs import BURST, SUSTAINED, AbJob
from fa4top.orders.typed import margin_share, margin_text, setting_words, settings
from fa4top.records import AbState, Plan
from fa4top.targets.base import Description
from fa4top.ui.screens.form import Field, KnobForm
from fa4top.ui.screens.table import TableScreen
from fa4top.ui.widgets.ab_panes import AbIntervals, AbTable
from fa4top.ui.widgets.sentence import AbHead, AbSentence

TALL = 34


class AbScreen(TableScreen):
    """Arms above, intervals below, the verdict at the bottom."""

    PANES = ((AbHead, "head"), (AbTable, "table"), (AbIntervals, "intervals"), (AbSentence, "verdict"))

    def on_resize(self) -> None:
        """More lines of the table where there is room."""
        self.set_class(self.size.height >= TALL, "tall")


def ab_job(b: str, margin: str, mode: str = BURST) -> AbJob:
    """What was typed into the form, as a job.

    Raises:
        ValueError: with the sentence for the person.
    """
    if mode not in (BURST, SUSTAINED):
        raise ValueError(f"mode '{mode}': write {BURST} or {SUSTAINED}")
    return AbJob(b=settings(b.split()), margin=margin_share(margin), mode=mode)


class AbForm(KnobForm):
    """B as changes of the present setting, and the margin."""

    def __init__(
        self, plan: Plan, description: Description, send: Callable[[dict[str, str]], str], before: AbState | None = None
    ) -> None:
        """``before``: the A/B whose B is to be edited."""
        present = setting_words(plan.knobs)
        other = setting_words(changed_knobs(plan.knobs, before.b)) if before is not None else ""
        usual = AbJob()
        fields = (
            Field("b", "B differs by: KNOB=VALUE, with spaces between (nothing: A against A)", other),
            Field("margin", "margin: what counts as equal; it can not be changed later", margin_text(usual.margin)),
            Field("mode", "burst (speed at boost) or sustained (at power equilibrium)", usual.mode),
        )
        super().__init__("Compare the present setting (A) with another (B)", fields, description, send, f"A: {present}")
