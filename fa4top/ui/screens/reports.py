"""Screens 5 to 7: SASS, triage, check. Each a head, a table that scrolls, and a sentence."""

from __future__ import annotations

from fa4top.ui.screens.table import TableScreen
from fa4top.ui.widgets.check_panes import CheckHead, CheckSentence, CheckTable
from fa4top.ui.widgets.sass_panes import SassHead, SassSentence, SassTable
from fa4top.ui.widgets.triage_panes import TriageHead, TriageSentence, TriageTable


class SassScreen(TableScreen):
    """Counts of the compiled code."""

    PANES = ((SassHead, "head"), (SassTable, "table"), (SassSentence, "verdict"))


class TriageScreen(TableScreen):
    """The six steps."""

    PANES = ((TriageHead, "head"), (TriageTable, "table"), (TriageSentence, "verdict"))


class CheckScreen(TableScreen):
    """Outputs."""

    PANES = ((CheckHead, "head"), (CheckTable, "table"), (CheckSentence, "verdict"))
