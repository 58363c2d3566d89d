"""A form of a few lines beside the list of a target's knobs: what sweeps and A/Bs are started from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from fa4top.targets.base import Description

CATCH_UP_S = 1.0  # a callback that is lost must not hold the form


@dataclass(frozen=True)
class Field:
    """One line: its id, what it is, and what stands in it at first."""

    id: str
    label: str
    value: str = ""


class KnobForm(ModalScreen[None]):
    """Enter sends all fields; a refusal is shown where it was typed."""

    class Opened(Message):
        """Its first line has the focus: it can be typed into."""

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
        self._opened = False

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
                yield Label(f"{knob.name}: {knob.legal}  ({knob.numerics})", classes="hint", markup=False)
            yield Label("enter starts it, escape leaves all as it is", classes="hint")

    def on_mount(self) -> None:
        """A long list of knobs must not hide the first lines."""
        self.call_after_refresh(self._to_the_top)

    def _to_the_top(self) -> None:
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def on_descendant_focus(self) -> None:
        """From the first focus on, keys can be handed on."""
        if not self._opened:
            self._opened = True
            self.app.post_message(self.Opened())

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send; stay open with the reason when it is refused."""
        typed = {}
        for field in self._fields:
            line = self.query_one(f"#{field.id}", Input)
            if line is event.input:
                typed[field.id] = event.value.strip()  # as it was at enter: more may have been typed since
                continue
            # each line has a queue of its own: let it finish what was typed into it
            caught_up = asyncio.Event()
            line.call_later(caught_up.set)
            with suppress(TimeoutError):
                await asyncio.wait_for(caught_up.wait(), CATCH_UP_S)
            typed[field.id] = line.value.strip()
        error = self._send(typed)
        if error:
            self.query_one("#error", Label).update(error)
        else:
            self.dismiss()
