"""What two kernels' SASS differ in, what a kernel is held against, and sentences about both. Pure."""

from __future__ import annotations

import difflib
import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fa4top.analysis.sass.kernel import UNIT_NAMES, KernelSass, RoleSass
from fa4top.analysis.sass.listing import Instruction

LIMITS = "static counts are not time: they say what must be issued, not when it waits"
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_EXPECTATION = re.compile(r"\s*([\w.+-]+?)\s*(<=|>=|==|!=|<|>)\s*(\d+(?:\.\d+)?)\s*$")


def figures(kernel: KernelSass) -> dict[str, float]:
    """All figures by name, as ``--expect`` takes them: registers, stack, spills, ..., softmax.step.transitions."""
    found: dict[str, float] = {
        "instructions": len(kernel.instructions),
        "spills": kernel.spills,
        "ex2": kernel.mix.ex2,
        "packs": kernel.mix.packs,
        "transitions": kernel.mix.transitions,
        "longest_run": kernel.mix.longest_run,
        "clock_reads": kernel.clock_reads,
    }
    if kernel.registers is not None:
        found["registers"] = kernel.registers
    if kernel.stack_bytes is not None:
        found["stack"] = kernel.stack_bytes
    found |= {unit: kernel.units.get(unit, 0) for unit in UNIT_NAMES}
    for role in kernel.roles:
        if role.register_limit is not None:
            found[f"{role.name}.registers"] = role.register_limit
        found[f"{role.name}.instructions"] = role.instructions
        found[f"{role.name}.spills"] = role.spills
        found[f"{role.name}.clock_reads"] = role.clock_reads
        found[f"{role.name}.step.instructions"] = len(role.step)
        found[f"{role.name}.step.spills"] = role.step_spills
        found[f"{role.name}.step.transitions"] = role.step_mix.transitions
        found[f"{role.name}.step.ex2"] = role.step_mix.ex2
        found |= {f"{role.name}.step.{unit}": role.step_units.get(unit, 0) for unit in UNIT_NAMES}
    return found


@dataclass(frozen=True)
class Expected:
    """One condition of ``--expect``; ``found`` is None where the kernel has no such figure."""

    text: str
    found: float | None
    holds: bool


class BadExpectation(ValueError):
    """A condition that can not be read; the text says how to write one."""


def hold(kernel: KernelSass, conditions: Sequence[str]) -> list[Expected]:
    """Hold a kernel against conditions such as ``no-spill``, ``registers<=128``, ``softmax.step.spills==0``.

    Raises:
        BadExpectation: one is not understood, or names a figure that there is not.
    """
    known = figures(kernel)
    result = []
    for text in conditions:
        match = _EXPECTATION.match("spills==0" if text.strip() == "no-spill" else text)
        if match is None:
            raise BadExpectation(f"'{text}': write no-spill, or a figure, a comparison and a number: registers<=128")
        name, sign, number = match[1], match[2], float(match[3])
        if name not in known and not _role_figure(name):
            near = difflib.get_close_matches(name, known, 4, 0.5)
            raise BadExpectation(f"'{text}': no figure {name}; near: {', '.join(near) or ', '.join(list(known)[:8])}")
        found = known.get(name)
        result.append(Expected(text.strip(), found, found is not None and _OPERATORS[sign](found, number)))
    return result


def _role_figure(name: str) -> bool:
    """Is it a figure of a role that another kernel may have?"""
    return re.fullmatch(r"(softmax|mma|correction|load|epilogue)\d*\.(step\.)?\w+", name) is not None


def spill_sentence(kernel: KernelSass) -> str:
    """Who spills; '' when nobody does."""
    if not kernel.spills:
        return ""
    parts = []
    for role in kernel.roles:
        if role.spills:
            step = f", {role.step_spills} of them in every step" if role.step_spills else ""
            limit = f", with {role.register_limit} registers" if role.register_limit else ""
            sites = "1 site" if role.spills == 1 else f"{role.spills} sites"
            parts.append(f"{role.name} ({sites}{step}{limit})")
    who = "; ".join(parts) or "code outside the roles"
    stack = f", {kernel.stack_bytes} bytes of stack" if kernel.stack_bytes else ""
    return f"spills: {kernel.spills} local loads and stores{stack}: {who}"


@dataclass(frozen=True)
class SassDifference:
    """Two kernels: ``word`` is identical, same instructions (in another order or with other registers), or different.
    ``units`` and ``figures`` map what differs to (A, B)."""

    word: str
    units: dict[str, tuple[int, int]]
    figures: dict[str, tuple[float | None, float | None]]
    text: str


SHOWN = (
    "instructions", "registers", "stack", "spills", "ex2", "packs", "transitions", "softmax.registers",
    "softmax.spills", "softmax.step.instructions", "softmax.step.transitions", "softmax.step.spills",
    "mma.step.instructions",
)  # fmt: skip


def compare(a: KernelSass, b: KernelSass) -> SassDifference:
    """What B's SASS has that A's has not."""
    same_text = [(i.opcode, i.operands, i.predicate) for i in a.instructions] == [
        (i.opcode, i.operands, i.predicate) for i in b.instructions
    ]
    same_order = [i.opcode for i in a.instructions] == [i.opcode for i in b.instructions]
    same_bag = Counter(i.opcode for i in a.instructions) == Counter(i.opcode for i in b.instructions)
    units = {
        unit: (a.units.get(unit, 0), b.units.get(unit, 0))
        for unit in UNIT_NAMES
        if a.units.get(unit, 0) != b.units.get(unit, 0)
    }
    known_a, known_b = figures(a), figures(b)
    different = {n: (known_a.get(n), known_b.get(n)) for n in SHOWN if known_a.get(n) != known_b.get(n)}
    if same_text:
        return SassDifference("identical", units, different, "identical: every instruction, operand and predicate")
    if same_order:
        return SassDifference(
            "identical schedule", units, different, "identical schedule: other registers or constants only"
        )
    if same_bag:
        return SassDifference("same instructions", units, different, "the same instructions in another order")
    more = sum(y - x for x, y in units.values())
    text = "; ".join(f"{unit} {x} -> {y}" for unit, (x, y) in units.items()) or "the same counts by unit"
    return SassDifference("different", units, different, f"{more:+d} instructions: {text}")


def side_by_side(a: Sequence[Instruction], b: Sequence[Instruction], context: int = 2) -> list[tuple[str, str, str]]:
    """(mark, A, B) of two pieces of code aligned by their opcodes; equal stretches are cut to ``context`` lines. Marks:
    ' ' equal, '<' only A, '>' only B, '|' changed, '.' left out."""
    rows: list[tuple[str, str, str]] = []
    matcher = difflib.SequenceMatcher(None, [i.opcode for i in a], [i.opcode for i in b], autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            own = [(" ", x.opcode, y.opcode) for x, y in zip(a[a0:a1], b[b0:b1], strict=True)]
            if len(own) > 2 * context + 1:
                own = [*own[:context], (".", f"{len(own) - 2 * context} equal", ""), *own[len(own) - context :]]
            rows += own
            continue
        left, right = [i.opcode for i in a[a0:a1]], [i.opcode for i in b[b0:b1]]
        for k in range(max(len(left), len(right))):
            x, y = left[k] if k < len(left) else "", right[k] if k < len(right) else ""
            rows.append(("|" if x and y else "<" if x else ">", x, y))
    return rows


def headline(kernel: KernelSass) -> str:
    """The kernel in one sentence: what stands out, or that nothing does."""
    if text := spill_sentence(kernel):
        return text
    softmax = kernel.role("softmax") or kernel.role("mma")
    if softmax is None or not softmax.step:
        return "no spills; no softmax step found"
    mix = softmax.step_mix
    well = mix.transitions >= mix.packs
    woven = "well woven" if well else "in long runs"
    return (
        f"no spills; a step of {softmax.name} has {len(softmax.step)} instructions, its {mix.ex2} MUFU.EX2 and "
        f"{mix.packs} F2FP are {woven} ({mix.transitions} transitions, longest run {mix.longest_run})"
    )


def step_of(kernel: KernelSass) -> RoleSass | None:
    """The role whose step is the softmax step: softmax where it is a role of its own, else mma (Hopper)."""
    return next((role for role in kernel.roles if role.step_mix.ex2), None)
