"""Bottom line: the answer, with its label."""

from __future__ import annotations

import textwrap

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.glyphs import Row
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines


class VerdictLine(Lines):
    """What limits the kernel now, or what stands in the way of knowing. SIMULATED and REPLAY are repeated here."""

    HELP = "The answer in a sentence, by rules on the numbers above; it names the evidence."

    def text(self, snapshot: Snapshot) -> str:
        """The sentence."""
        return snapshot.verdict.text

    def bad(self, snapshot: Snapshot) -> bool:
        """Does it say that something is wrong?"""
        return snapshot.verdict.bad

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """Up to ``height`` rows of wrapped text."""
        answer = self.text(snapshot)
        text, style = answer, "strong"
        if view.blocked:
            text, style = view.blocked, "bad"
        elif view.ended:
            # of a recording the answer matters more than that it is over
            text = f"{answer} ({view.ended})" if view.replay else f"{view.ended}. Last known: {answer}"
            style = "warn"
        elif self.bad(snapshot):
            style = "bad"
        labels = [*snapshot.label.split(), *(["REPLAY"] if view.replay else [])]
        prefix: Row = [(f" {self.g.arrow} ", "good")]
        used = 3
        for label in labels:
            prefix += [(f"{label}", "inverse"), (" ", "text")]
            used += len(label) + 1
        lines = textwrap.wrap(text, max(10, width - used - 1), max_lines=height, placeholder=" ...")
        rows: list[Row] = []
        for number, line in enumerate(lines):
            head: Row = prefix if number == 0 else [(" " * used, "text")]
            rows.append([*head, (line, style)])
        return rows
