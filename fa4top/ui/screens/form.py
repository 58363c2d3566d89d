"""A form of a few lines beside the list of a target's knobs: what sweeps and A/Bs are started from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from fa4top.targets.base import Description


@dataclass(frozen=True)
class Field:
    """One line: its id, what it is, and what stands in it at first."""

    id: str
    label: str
    value: str = ""


class KnobForm(ModalScreen[None]):
    """Enter sends all fields; a refusal is shown where it was typed."""

    BINDINGS = [("escape", "dismiss", "close")]
    AUTO_FOCUS = "Input"

    def __init__(
        self,
        heading: str,
        fields: Sequence[Field],
        description: Description,
        send: Callable[[dict[str, str]], str],
        note: str = "",
    ) -> None:
        super().__init__()
        self._heading = heading
        self._fields = tuple(fields)
        self._description = description
        self._send = send
        self._note = note

    def compose(self) -> ComposeResult:
        """The fields, the reason of a refusal, what the knobs are."""
        with VerticalScroll(classes="dialog"):
            yield Label(self._heading, classes="heading")
            if self._note:
                yield Label(self._note, classes="hint", markup=False)
            for field in self._fields:
                yield Label(field.label, markup=False)
                yield Input(field.value, id=field.id)
            yield Label("", id="error", classes="error", markup=False)
            for knob in self._description.knobs:
                legal = ", ".join(knob.values) or f"{knob.low}..{knob.high}"
                yield Label(f"{knob.name}: {legal}  ({knob.numerics})", classes="hint", markup=False)
            yield Label("enter starts it, escape leaves all as it is", classes="hint")

    def on_mount(self) -> None:
        """A long list of knobs must not hide the first lines."""
        self.call_after_refresh(lambda: self.query_one(VerticalScroll).scroll_home(animate=False))

    def on_input_submitted(self) -> None:
        """Send; stay open with the reason when it is refused."""
        error = self._send({field.id: self.query_one(f"#{field.id}", Input).value.strip() for field in self._fields})
        if error:
            self.query_one("#error", Label).update(error)
        else:
            self.dismiss()
