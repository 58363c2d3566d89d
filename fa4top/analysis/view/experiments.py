"""What a triage proposes to run next."""

from __future__ import annotations

from collections.abc import Sequence

from fa4top.records import TriageFinding, TriageStep


def next_experiments(steps: Sequence[TriageStep]) -> list[TriageFinding]:
    """The findings that propose an experiment, in the steps' order, each experiment once."""
    found: dict[str, TriageFinding] = {}
    for step in steps:
        for finding in step.findings:
            if finding.command:
                found.setdefault(finding.command, finding)
    return list(found.values())
