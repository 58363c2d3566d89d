"""nvdisasm's text to instructions; what stands between two clock reads. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
_LABEL = re.compile(r"^\s*(\.L_[\w$]+):")
_SECTION = re.compile(r"^\.text\.(\S+):")
_CLOCK = re.compile(r"CS2R|S2UR|S2R")
_CLOCK_NAME = "SR_CLOCK"


@dataclass(frozen=True)
class Instruction:
    """One SASS instruction. ``opcode`` has its modifiers, as in ``MUFU.EX2``; ``target`` is a branch's address,
    ``table`` those of an indexed branch."""

    address: int
    predicate: str
    opcode: str
    operands: str
    target: int | None = None
    table: tuple[int, ...] = ()

    @property
    def is_clock_read(self) -> bool:
        """Does it read the SM's clock?"""
        return _CLOCK_NAME in self.operands and _CLOCK.match(self.opcode) is not None


def parse_sass(text: str) -> dict[str, tuple[Instruction, ...]]:
    """Instructions of every function, by name, from ``nvdisasm -c``; branch labels become addresses."""
    functions: dict[str, list[tuple[int, str, str, str]]] = {}
    labels: dict[str, dict[str, int]] = {}
    pending: list[str] = []
    name = ""
    for line in text.splitlines():
        if section := _SECTION.match(line):
            name = section[1]
            functions[name], labels[name], pending = [], {}, []
        elif not name:
            continue
        elif label := _LABEL.match(line):
            pending.append(label[1])
        elif found := _LINE.search(line):
            address = int(found[1], 16)
            for each in pending:
                labels[name][each] = address
            pending = []
            functions[name].append((address, found[2] or "", found[3], found[4].strip()))
    return {
        function: tuple(
            Instruction(*row, _target(row[2], row[3], labels[function]), _table(row[2], row[3], labels[function]))
            for row in rows
        )
        for function, rows in functions.items()
    }


def _target(opcode: str, operands: str, labels: dict[str, int]) -> int | None:
    if not opcode.startswith("BRA"):
        return None
    found = re.search(r"\.L_[\w$]+", operands)
    return labels.get(found[0]) if found else None


def _table(opcode: str, operands: str, labels: dict[str, int]) -> tuple[int, ...]:
    if not opcode.startswith("BRX"):
        return ()
    return tuple(sorted({labels[name] for name in re.findall(r"\.L_[\w$]+", operands) if name in labels}))


class RegionError(ValueError):
    """The timed region is not what the method needs; the text says what was found."""


@dataclass(frozen=True)
class TimedRegion:
    """What runs between the two clock reads: ``loop`` once an iteration, ``outside`` once."""

    loop: tuple[Instruction, ...]
    outside: tuple[Instruction, ...]

    def in_loop(self, pattern: str) -> int:
        """How many of the loop's opcodes match."""
        return sum(re.match(pattern, i.opcode) is not None for i in self.loop)

    def around(self, pattern: str) -> int:
        """How many opcodes match between the clock reads, but outside the loop."""
        return sum(re.match(pattern, i.opcode) is not None for i in self.outside)


def timed_region(instructions: tuple[Instruction, ...]) -> TimedRegion:
    """The outermost loop between the first and the last clock read.

    Raises:
        RegionError: not two clock reads, or no loop between them.
    """
    clocks = [i for i in instructions if i.is_clock_read]
    if len(clocks) != 2:
        raise RegionError(f"{len(clocks)} clock reads instead of 2")
    between = [i for i in instructions if clocks[0].address < i.address < clocks[1].address]
    loops = [
        (i.target, i.address) for i in between if i.target is not None and clocks[0].address < i.target < i.address
    ]
    if not loops:
        raise RegionError(
            f"no loop between the clock reads ({len(between)} instructions there): the timed work has moved"
        )
    first, last = max(loops, key=lambda loop: loop[1] - loop[0])
    loop = tuple(i for i in between if first <= i.address <= last)
    return TimedRegion(loop, tuple(i for i in between if not first <= i.address <= last))


@dataclass(frozen=True)
class Expectation:
    """What a loop body must hold: exactly ``count`` opcodes that match ``pattern``."""

    pattern: str
    count: int


def region_problem(region: TimedRegion, expected: tuple[Expectation, ...], others_share: float) -> str | None:
    """Why this region is not what was meant; None when it is.

    Args:
        others_share: how many instructions besides the expected ones the loop may hold, as a share of these (the loop's
            own arithmetic and branch: four at least).
    """
    for want in expected:
        found, stray = region.in_loop(want.pattern), region.around(want.pattern)
        if found != want.count:
            return f"{found} {_plain(want.pattern)} in the loop instead of {want.count}"
        if stray:
            return f"{stray} {_plain(want.pattern)} outside the loop, between the clock reads"
    meant = sum(want.count for want in expected)
    others = len(region.loop) - meant
    allowed = max(4, round(others_share * meant))
    if others > allowed:
        names = sorted({i.opcode for i in region.loop if not any(re.match(w.pattern, i.opcode) for w in expected)})
        return f"{others} other instructions in the loop ({', '.join(names[:6])}); at most {allowed} were meant"
    return None


def _plain(pattern: str) -> str:
    return re.sub(r"\\", "", pattern).replace("$", "")
