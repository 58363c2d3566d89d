"""Screens 5 to 7: SASS, triage, check. Each a head, a table that scrolls, and a sentence."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Footer

from fa4top.ui.screens.bench import TableScreen
from fa4top.ui.widgets.report_panes import (
    CheckHead,
    CheckSentence,
    CheckTable,
    SassHead,
    SassSentence,
    SassTable,
    TriageHead,
    TriageSentence,
    TriageTable,
)
from fa4top.ui.widgets.title import Title


class SassScreen(TableScreen):
    """Counts of the compiled code."""

    def compose(self) -> ComposeResult:
        """Title, head, table, sentence."""
        yield Title(id="title")
        yield SassHead(id="head")
        yield SassTable(id="table")
        yield SassSentence(id="verdict")
        yield Footer(show_command_palette=False)


class TriageScreen(TableScreen):
    """The six steps."""

    def compose(self) -> ComposeResult:
        """Title, head, steps, answer."""
        yield Title(id="title")
        yield TriageHead(id="head")
        yield TriageTable(id="table")
        yield TriageSentence(id="verdict")
        yield Footer(show_command_palette=False)


class CheckScreen(TableScreen):
    """Outputs."""

    def compose(self) -> ComposeResult:
        """Title, head, table, sentence."""
        yield Title(id="title")
        yield CheckHead(id="head")
        yield CheckTable(id="table")
        yield CheckSentence(id="verdict")
        yield Footer(show_command_palette=False)
