"""Help: keys from the registry, and what each pane shows."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Label

from fa4top.ui.actions import ACTIONS, key_map
from fa4top.ui.widgets.lines import Lines

NAMES = {"plus": "+", "minus": "-", "comma": ",", "full_stop": ".", "question_mark": "?"}


class HelpScreen(ModalScreen[None]):
    """Any of the usual keys closes it."""

    BINDINGS = [("escape,q,question_mark,h,enter", "dismiss", "close")]

    def __init__(self, panes: list[Lines], keys: dict[str, str]) -> None:
        super().__init__()
        self._panes = panes
        self._keys = key_map(keys)

    def compose(self) -> ComposeResult:
        """Keys, then panes."""
        with VerticalScroll(classes="dialog"):
            yield Label("fa4top: keys", classes="heading")
            for action in ACTIONS:
                keys = " ".join(NAMES.get(key.strip(), key.strip()) for key in self._keys[action.id].split(","))
                yield Label(f"  {keys:12} {action.description}", markup=False)
            yield Label("")
            yield Label("What the panes show", classes="heading")
            for pane in self._panes:
                if pane.HELP:
                    yield Label(f"{type(pane).__name__}: {pane.HELP}", markup=False)
            yield Label("")
            yield Label("escape closes this", classes="hint")

    def on_mount(self) -> None:
        """Scrolling needs the focus."""
        self.query_one(VerticalScroll).focus()
