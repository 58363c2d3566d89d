"""Basic blocks and natural loops of a SASS function. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fa4top.analysis.sass.listing import Instruction

ENDS = ("EXIT", "RET", "BRX", "KILL")


@dataclass(frozen=True)
class FlowGraph:
    """``blocks`` in address order, ``successors`` of each by index, ``loops`` as sets of block indices."""

    blocks: tuple[tuple[Instruction, ...], ...]
    successors: tuple[frozenset[int], ...]
    loops: tuple[frozenset[int], ...]

    def innermost(self, chosen: Sequence[frozenset[int]]) -> list[frozenset[int]]:
        """Those of the chosen loops that hold no other chosen one."""
        return [loop for loop in chosen if not any(other < loop for other in chosen)]

    def instructions(self, loop: frozenset[int]) -> list[Instruction]:
        """All of a loop, in address order."""
        return [instruction for number in sorted(loop) for instruction in self.blocks[number]]


def flow_graph(instructions: Sequence[Instruction]) -> FlowGraph:
    """Cut a function into blocks, join them, find its loops."""
    targets = {i.target for i in instructions if i.target is not None} | {t for i in instructions for t in i.table}
    blocks: list[list[Instruction]] = []
    for number, instruction in enumerate(instructions):
        before = instructions[number - 1] if number else None
        if before is None or instruction.address in targets or _leaves(before):
            blocks.append([])
        blocks[-1].append(instruction)
    starts = {block[0].address: number for number, block in enumerate(blocks)}
    successors = []
    for number, block in enumerate(blocks):
        last = block[-1]
        found = set()
        if last.target is not None and last.target in starts:
            found.add(starts[last.target])
        found |= {starts[target] for target in last.table if target in starts}
        if not _always_leaves(last) and number + 1 < len(blocks):
            found.add(number + 1)
        successors.append(frozenset(found))
    return FlowGraph(tuple(tuple(block) for block in blocks), tuple(successors), tuple(natural_loops(successors)))


def _leaves(instruction: Instruction) -> bool:
    return instruction.target is not None or instruction.opcode.split(".")[0] in ENDS


def _always_leaves(instruction: Instruction) -> bool:
    # BRA with a uniform predicate has it among its operands: "BRA.U UP0, `(...)"; BRA.DIV goes on where all agree
    opcode = instruction.opcode
    conditional = bool(instruction.predicate) or opcode.startswith(("BRA.U", "BRA.DIV")) or "UP" in instruction.operands
    return _leaves(instruction) and not conditional


def natural_loops(successors: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Bodies of all natural loops: an edge back to a block that dominates its source, and what lies between."""
    predecessors: list[set[int]] = [set() for _ in successors]
    for source, targets in enumerate(successors):
        for target in targets:
            predecessors[target].add(source)
    if not successors:
        return []
    reachable, stack = {0}, [0]
    while stack:
        for target in successors[stack.pop()] - reachable:
            reachable.add(target)
            stack.append(target)
    dominators = {n: ({0} if n == 0 else set(reachable)) for n in reachable}
    changed = True
    while changed:
        changed = False
        for n in sorted(reachable - {0}):
            known = [dominators[p] for p in predecessors[n] if p in reachable]
            new = {n} | set.intersection(*known)
            if new != dominators[n]:
                dominators[n], changed = new, True
    loops: dict[int, set[int]] = {}
    for source in reachable:
        for head in successors[source] & dominators[source]:
            body, stack = {head, source}, [source]
            while stack:
                here = stack.pop()
                if here == head:
                    continue
                for before in predecessors[here] & reachable - body:
                    body.add(before)
                    stack.append(before)
            loops.setdefault(head, set()).update(body)  # edges to one head make one loop
    return [frozenset(body) for body in loops.values()]
