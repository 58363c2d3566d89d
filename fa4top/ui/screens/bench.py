"""Screen 4: instruction throughputs."""

from __future__ import annotations

from fa4top.ui.screens.table import TableScreen
from fa4top.ui.widgets.bench_table import BenchTable
from fa4top.ui.widgets.sentence import BenchHead, BenchSentence


class BenchScreen(TableScreen):
    """The table, and what it means."""

    PANES = ((BenchHead, "head"), (BenchTable, "table"), (BenchSentence, "verdict"))
