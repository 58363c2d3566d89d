"""A whole kernel's SASS: roles, their step loops, instructions by unit, MUFU/F2FP transitions, spills. Pure.

Static counts are not time: they say what must be issued, not when it waits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from fa4top.analysis.sass.flowgraph import FlowGraph, flow_graph
from fa4top.analysis.sass.listing import Instruction, parse_sass

# unit: opcodes (without modifiers), in the order of looking; what no pattern takes is "other"
UNITS: tuple[tuple[str, str], ...] = (
    ("MUFU", r"MUFU$"),
    ("tensor", r"(HGMMA|QGMMA|IGMMA|HMMA|IMMA|QMMA|UTC\w*MMA|UTCCP|UTC\w*)$"),
    ("TMA", r"(UTMA\w+|UBLK\w+)$"),
    ("convert", r"(F2FP|F2F|F2I|I2F|I2FP|F2IP)$"),
    ("TMEM", r"(LDTM|STTM|LDT|STT)$"),
    ("LSU", r"(LDS|STS|LDSM|STSM|LDG|STG|LDL|STL|LD|ST|ATOM\w*|RED\w*|LDC|LDCU)$"),
    ("barrier", r"(BAR|SYNCS|WARPSYNC|MEMBAR|FENCE|DEPBAR|ELECT|ERRBAR|UCGABAR\w*|WARPGROUP|ARRIVES|CCTL\w*)$"),
    ("control", r"(BRA|BRX|EXIT|CALL|RET|BSSY|BSYNC|BREAK|NOP|USETMAXREG|ACQ\w+|PREEXIT|KILL|YIELD|WARPSYNC\w*)$"),
    ("FMA", r"(FFMA2?|FMUL2?|FADD2?|HFMA2|HADD2|HMUL2|IMAD|FFMA32I|FMUL32I)$"),
    ("uniform", r"(U[A-Z]\w*|R2UR|S2UR|VOTEU)$"),
    (
        "ALU",
        r"(IADD3?|IADD|LOP3|PLOP3|ISETP|FSETP|FSET|FMNMX3?|IMNMX|VIMNMX\w*|VIADD\w*|SEL|FSEL|SHF|SHL|SHR|LEA|PRMT|MOV|P2R|"
        r"R2P|POPC|FLO|BREV|IABS|ISCADD|CS2R|S2R|VOTE|SGXT|BMSK|R2B|B2R|SHFL|MATCH|REDUX|LEPC|I2I|HMNMX2|HSETP2|FCHK)$",
    ),
)
_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in UNITS)
UNIT_NAMES = (*(name for name, _ in UNITS), "other")
EX2, PACK = "MUFU.EX2", "F2FP"
TENSOR = re.compile(r"(HGMMA|QGMMA|UTC[A-Z]*MMA)")
SPILLS = ("LDL", "STL")
ROLE_NAMES = ("softmax", "mma", "correction", "load", "epilogue")  # that a region of code can be told for


def unit_of(opcode: str) -> str:
    """Which unit issues it."""
    base = opcode.split(".")[0]
    return next((name for name, pattern in _COMPILED if pattern.match(base)), "other")


def count_units(instructions: Iterable[Instruction]) -> dict[str, int]:
    """Instructions by unit, units that have none left out."""
    found = Counter(unit_of(i.opcode) for i in instructions)
    return {name: found[name] for name in UNIT_NAMES if found[name]}


@dataclass(frozen=True)
class Mix:
    """The exponential/convert stream of some instructions: counts, transitions between the two kinds, run lengths."""

    ex2: int
    packs: int
    transitions: int
    runs: tuple[int, ...] = ()

    @property
    def longest_run(self) -> int:
        """Of one kind, instructions in a row."""
        return max(self.runs, default=0)


def mix_of(instructions: Iterable[Instruction]) -> Mix:
    """MUFU.EX2 and F2FP in program order; others between them do not matter."""
    kinds = [i.opcode.startswith(EX2) for i in instructions if i.opcode.startswith((EX2, PACK))]
    runs: list[int] = []
    for number, kind in enumerate(kinds):
        if number and kind == kinds[number - 1]:
            runs[-1] += 1
        else:
            runs.append(1)
    return Mix(sum(kinds), len(kinds) - sum(kinds), max(0, len(runs) - 1), tuple(runs))


def spill_sites(instructions: Iterable[Instruction]) -> int:
    """Local loads and stores."""
    return sum(i.opcode.split(".")[0] in SPILLS for i in instructions)


@dataclass(frozen=True, kw_only=True)
class RoleSass:
    """One role: its code, and its innermost loop that does the role's work (the step). ``register_limit``: what
    setmaxnreg gives it; None where the kernel has none."""

    name: str
    register_limit: int | None
    instructions: int
    units: dict[str, int]
    mix: Mix
    spills: int
    step: tuple[Instruction, ...] = ()
    step_units: dict[str, int] = field(default_factory=dict)
    step_mix: Mix = field(default_factory=lambda: Mix(0, 0, 0))
    step_spills: int = 0
    clock_reads: int = 0


@dataclass(frozen=True, kw_only=True)
class KernelSass:
    """A kernel. ``registers`` and ``stack_bytes`` are the compiler's; None where it was not asked."""

    name: str
    instructions: tuple[Instruction, ...]
    roles: tuple[RoleSass, ...]
    units: dict[str, int]
    mix: Mix
    spills: int
    clock_reads: int
    registers: int | None = None
    stack_bytes: int | None = None

    def role(self, name: str) -> RoleSass | None:
        """A role by name, or the first whose name begins so."""
        return next((role for role in self.roles if role.name.startswith(name)), None)


class NoKernel(ValueError):
    """The text holds no function; it says what was looked at."""


def read_kernel(text: str, registers: int | None = None, stack_bytes: int | None = None, name: str = "") -> KernelSass:
    """Describe a kernel from ``nvdisasm -c``: the one named (a part of its name), or the largest.

    Raises:
        NoKernel: there is none.
    """
    functions = {key: value for key, value in parse_sass(text).items() if value and name in key}
    if not functions:
        raise NoKernel(f"no kernel{f' whose name holds {name}' if name else ''} in what nvdisasm printed")
    chosen = max(functions, key=lambda key: len(functions[key]))
    instructions = functions[chosen]
    return KernelSass(
        name=chosen,
        instructions=instructions,
        roles=tuple(_roles(instructions)),
        units=count_units(instructions),
        mix=mix_of(instructions),
        spills=spill_sites(instructions),
        clock_reads=sum(i.is_clock_read for i in instructions),
        registers=registers,
        stack_bytes=stack_bytes,
    )


def _roles(instructions: Sequence[Instruction]) -> list[RoleSass]:
    graph = flow_graph(instructions)
    regions = _regions(graph)
    roles = []
    for limit, numbers in regions:
        own = [i for number in sorted(numbers) for i in graph.blocks[number]]
        name = _name(own)
        if not name:
            continue
        step = _step(graph, numbers, name)
        roles.append(
            RoleSass(
                name=name,
                register_limit=limit,
                instructions=len(own),
                units=count_units(own),
                mix=mix_of(own),
                spills=spill_sites(own),
                step=tuple(step),
                step_units=count_units(step),
                step_mix=mix_of(step),
                step_spills=spill_sites(step),
                clock_reads=sum(i.is_clock_read for i in own),
            )
        )
    merged: dict[str, RoleSass] = {}
    for role in roles:
        number = sum(other.name.rstrip("0123456789") == role.name for other in merged.values())
        key = role.name if not number else f"{role.name}{number + 1}"
        merged[key] = replace(role, name=key)
    return list(merged.values())


def _regions(graph: FlowGraph) -> list[tuple[int | None, set[int]]]:
    """Blocks by role. A warp-specialised kernel sets its register limit where a role begins, so the code from one such
    place to the next is a role's; out-of-line pieces at the end belong to where they go back to."""
    starts: list[tuple[int, int | None]] = []
    for number, block in enumerate(graph.blocks):
        for instruction in block:
            if instruction.opcode.startswith("USETMAXREG"):
                digits = re.findall(r"0x[0-9a-f]+|\b\d+\b", instruction.operands)
                starts.append((number, int(digits[-1], 0) if digits else None))
    if not starts:
        return [(None, set(range(len(graph.blocks))))]
    region_of: dict[int, int] = {}
    for number in range(len(graph.blocks)):
        region_of[number] = max((k for k, (start, _) in enumerate(starts) if start <= number), default=-1)
    # short pieces at the end that only go back into another region: a wait's slow path, moved out of the way
    for number in reversed(range(len(graph.blocks))):
        onward = {region_of[s] for s in graph.successors[number] if s != number}
        if len(onward) == 1 and len(graph.blocks[number]) <= OUT_OF_LINE:
            region_of[number] = onward.pop()
    return [
        (limit, {number for number, owner in region_of.items() if owner == k}) for k, (_, limit) in enumerate(starts)
    ]


OUT_OF_LINE = 12


def _name(instructions: Sequence[Instruction]) -> str:
    """What a region does, by the instructions that only this role has; '' for a few lines between two roles."""
    opcodes = [i.opcode for i in instructions]
    ex2 = sum(op.startswith(EX2) for op in opcodes)
    tensor = sum(TENSOR.match(op) is not None for op in opcodes)
    if tensor >= 2:
        return "mma"
    if ex2 >= 8:
        return "softmax"
    if any(op.startswith("LDTM") for op in opcodes):
        return "correction"
    if any(op.startswith("UTMALDG") for op in opcodes):
        return "load"
    if any(op.startswith(("UTMASTG", "STG")) for op in opcodes) and len(opcodes) > 20:
        return "epilogue"
    return ""


def _step(graph: FlowGraph, numbers: set[int], role: str) -> list[Instruction]:
    """The innermost loop that does the role's work; of several the one with most of it."""

    def work(loop: frozenset[int]) -> int:
        opcodes = [i.opcode for i in graph.instructions(loop)]
        if role == "mma":
            return sum(TENSOR.match(op) is not None for op in opcodes)
        if role == "softmax":
            return sum(op.startswith(EX2) for op in opcodes)
        wanted = {"correction": ("LDTM",), "load": ("UTMALDG",), "epilogue": ("UTMASTG", "STG")}[role]
        return sum(op.startswith(wanted) for op in opcodes)

    # nearly all of it: a block that two roles share may be counted with the other
    own = [loop for loop in graph.loops if len(loop & numbers) >= 0.8 * len(loop) and work(loop)]
    inner = graph.innermost(own)
    return graph.instructions(max(inner, key=work)) if inner else []
