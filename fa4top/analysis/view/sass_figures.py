"""Figures of compiled code in the order that people read them: what a table of SASS shows."""

from __future__ import annotations

from collections.abc import Sequence

from fa4top.analysis.sass.kernel import ROLE_NAMES, UNIT_NAMES
from fa4top.records import SassReport

WHOLE = (
    ("instructions", "instructions"),
    ("registers", "registers"),
    ("stack", "stack, bytes"),
    ("spills", "spills (local loads and stores)"),
    ("ex2", "MUFU.EX2"),
    ("packs", "F2FP"),
    ("transitions", "MUFU/F2FP transitions"),
    ("longest_run", "longest run of one of them"),
    ("clock_reads", "clock reads (probes)"),
)
STEP = (
    ("instructions", "instructions"),
    ("ex2", "MUFU.EX2"),
    ("transitions", "transitions"),
    ("spills", "spills"),
    *((unit, unit) for unit in UNIT_NAMES),
)
ALWAYS = ("spills", "stack", "clock_reads")  # zero is news, too

Cells = tuple[str, ...]
Line = tuple[str, str, Cells]  # key of the figure, label, a cell for each report


def number(value: float | None) -> str:
    """A count, or a dash where there is none."""
    return "-" if value is None else f"{value:g}"


def _line(reports: Sequence[SassReport], key: str, label: str) -> list[Line]:
    values = [report.figures.get(key) for report in reports]
    if not any(values) and key not in ALWAYS:
        return []
    return [(key, label, tuple(number(value) for value in values))]


def sass_rows(reports: Sequence[SassReport]) -> list[tuple[str, list[Line]]]:
    """(heading, lines): the whole kernel, then a step of each role; figures that nobody has are left out."""
    if not reports:
        return []
    whole = [line for key, label in WHOLE for line in _line(reports, key, label)]
    found = [("the whole kernel", whole)]
    for role in ROLE_NAMES:
        if not any(report.figures.get(f"{role}.step.instructions") for report in reports):
            continue
        lines = _line(reports, f"{role}.registers", "registers of the role")
        for key, label in STEP:
            lines += _line(reports, f"{role}.step.{key}", label)
        found.append((f"a step of {role}", lines))
    return found
