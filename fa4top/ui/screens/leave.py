"""Leaving a live session: stop it, or let it go on."""

from __future__ import annotations

from typing import Literal

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Label

Answer = Literal["stop", "detach", "stay"]


class LeaveScreen(ModalScreen[Answer]):
    """Asks; never guesses."""

    BINDINGS = [
        ("s,q,enter", "answer('stop')", "stop"),
        ("d", "answer('detach')", "detach"),
        ("escape", "answer('stay')", "stay"),
    ]

    def __init__(self, session_id: str, recorded: bool, idle_limit_min: float) -> None:
        super().__init__()
        self._session_id = session_id
        self._recorded = recorded
        self._idle_limit_min = idle_limit_min

    def compose(self) -> ComposeResult:
        """Three answers, each with its consequence."""
        kept = "the recording is kept" if self._recorded else "nothing is kept (--no-record)"
        with Vertical(classes="dialog"):
            yield Label("Leave fa4top", classes="heading")
            yield Label(f"  s   stop the engine; {kept}")
            yield Label(f"  d   detach: it goes on, up to {self._idle_limit_min:g} min with nobody watching")
            yield Label(f"      fa4top attach {self._session_id}")
            yield Label("  esc stay")

    def action_answer(self, answer: Answer) -> None:
        """Give the answer."""
        self.dismiss(answer)
