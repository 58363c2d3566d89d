"""Another shape or setting for the running session, from the same data as the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from fa4top.records import Plan
from fa4top.targets.base import Description, format_shape
from fa4top.targets.catalog import shown_knobs
from fa4top.targets.presets import PRESETS

FEW = 14


@dataclass(frozen=True)
class Change:
    """What the person asked for."""

    shape: str
    causal: bool
    dtype: str
    knobs: dict[str, str]


class EditScreen(ModalScreen[None]):
    """A form; enter sends it, and a refusal is shown where it was typed."""

    BINDINGS = [("escape", "dismiss", "close")]
    AUTO_FOCUS = "#shape"

    def __init__(self, plan: Plan, description: Description, send: Callable[[Change], str]) -> None:
        super().__init__()
        self._plan = plan
        self._description = description
        self._send = send

    def compose(self) -> ComposeResult:
        """Shape, mask and dtype, one line of knobs, and what the knobs are."""
        plan = self._plan
        # of a long list only what is set: the others stay as they are
        few = plan.knobs if len(plan.knobs) <= FEW else shown_knobs(plan.target, plan.knobs)
        knobs = " ".join(f"{name}={value}" for name, value in few.items())
        with VerticalScroll(classes="dialog"):
            yield Label("Another plan, in fresh workers", classes="heading")
            yield Label("shape: b1,s8192,h24,d128; sq, sk, hk (kv heads), dv; add causal, and bf16, fp16 or fp8")
            yield Label(f"or a published one: {', '.join(PRESETS)}", classes="hint")
            extra = (" causal" if plan.shape.causal else "") + f" {plan.shape.dtype}"
            yield Input(format_shape(plan.shape) + extra, id="shape")
            yield Label("knobs: NAME=VALUE, with spaces between")
            yield Input(knobs, id="knobs")
            yield Label("", id="error", classes="error", markup=False)
            for knob in self._description.knobs:
                values = ", ".join(knob.values) or f"{knob.low}..{knob.high}"
                yield Label(f"{knob.name}: {values}", classes="hint", markup=False)
            yield Label("enter starts it, escape leaves all as it is", classes="hint")

    def on_mount(self) -> None:
        """A long list of knobs must not hide the first lines."""
        self.call_after_refresh(lambda: self.query_one(VerticalScroll).scroll_home(animate=False))

    def on_input_submitted(self) -> None:
        """Send; stay open with the reason when it is refused."""
        words = self.query_one("#shape", Input).value.split()
        shape = next((word for word in words if word not in ("causal", "bf16", "fp16", "fp8")), "")
        dtype = next((word for word in words if word in ("bf16", "fp16", "fp8")), self._plan.shape.dtype)
        knobs: dict[str, str] = {}
        for word in self.query_one("#knobs", Input).value.split():
            name, equals, value = word.partition("=")
            if not equals:
                self._refuse(f"'{word}': write NAME=VALUE")
                return
            knobs[name] = value
        error = self._send(Change(shape, "causal" in words, dtype, knobs))
        if error:
            self._refuse(error)
        else:
            self.dismiss()

    def _refuse(self, text: str) -> None:
        self.query_one("#error", Label).update(text)
