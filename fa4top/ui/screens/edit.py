"""Another shape or setting for the running session, from the same data as the command line."""

from __future__ import annotations

from collections.abc import Callable

from fa4top.analysis.view.words import shown_knobs
from fa4top.orders.presets import PRESETS
from fa4top.orders.shapes import DTYPES, parse_problem, shape_words
from fa4top.orders.typed import setting_words, settings
from fa4top.records import Plan, Shape
from fa4top.targets.base import Description
from fa4top.ui.screens.form import Field, KnobForm

FEW = 14


def change(plan: Plan, shape: str, knobs: str) -> tuple[Shape, dict[str, str]]:
    """What was typed, as a problem and changed knobs.

    Raises:
        ValueError: with the sentence for the person; every word is taken or named.
    """
    return parse_problem(shape, plan.shape), settings(knobs.split())


class EditScreen(KnobForm):
    """Sizes, mask and dtype in one line, knobs in another."""

    def __init__(self, plan: Plan, description: Description, send: Callable[[dict[str, str]], str]) -> None:
        # of a long list only what is set: the others stay as they are
        few = plan.knobs if len(plan.knobs) <= FEW else shown_knobs(plan)
        fields = (
            Field(
                "shape",
                "shape: b1,s8192,h24,d128; sq, sk, hk (kv heads), dv; add causal, and a dtype: " + ", ".join(DTYPES),
                shape_words(plan.shape),
            ),
            Field("knobs", "knobs: NAME=VALUE, with spaces between", setting_words(few)),
        )
        note = f"or a published shape: {', '.join(PRESETS)}"
        super().__init__("Another plan, in fresh workers", fields, description, send, note)
