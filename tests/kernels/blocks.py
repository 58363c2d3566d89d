"""Basic blocks of one function as nvdisasm itself draws them, in a form that ours can be held against."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fa4top.analysis.sass.flowgraph import FlowGraph

Edges = dict[tuple[int, int], frozenset[int]]  # (first instruction, instructions) of a block: first ones of the next

_NODE = re.compile(r'^"([^"]+)"\n\[label="\{(.*)\}"\]$', re.MULTILINE)
_EDGE = re.compile(r'^"([^"]+)":(\w+):(\w) -> "([^"]+)":\w+:\w', re.MULTILINE)


def drawn_by(nvdisasm: str, cubin: Path, function: str, labels: Mapping[str, int]) -> Edges:
    """Blocks and edges of ``nvdisasm -bbcfg``; ``labels``: number of the instruction that each label stands at."""
    done = subprocess.run([nvdisasm, "-bbcfg", "-c", str(cubin)], capture_output=True, text=True, check=True)
    cluster = next(part for part in done.stdout.split("subgraph ") if part.startswith(f'"cluster_{function}"'))
    lengths = {name: text.count(";\\l") for name, text in _NODE.findall(cluster)}
    starts = {name: at for name, at in labels.items() if name in lengths} | {function: 0}
    edges = _EDGE.findall(cluster)
    while missing := set(lengths) - set(starts):
        # a block without a label is where the one before it falls through
        known = {to: starts[name] + lengths[name] for name, _, side, to in edges if side == "s" and name in starts}
        found = {name: known[name] for name in missing if name in known}
        assert found, f"no place for {missing}"
        starts |= found
    nodes = {name: (starts[name], length) for name, length in lengths.items() if length}
    targets: dict[str, set[int]] = {name: set() for name in nodes}
    for name, _, _, to in edges:
        targets[name].add(starts[to])
    return merged({nodes[name]: frozenset(targets[name]) for name in nodes})


def of_graph(graph: FlowGraph) -> Edges:
    """The same of our own graph."""
    starts, at = [], 0
    for block in graph.blocks:
        starts.append(at)
        at += len(block)
    found = zip(starts, graph.blocks, graph.successors, strict=True)
    return merged({(start, len(block)): frozenset(starts[n] for n in after) for start, block, after in found})


def merged(edges: Edges) -> Edges:
    """Without cuts in straight lines: where a block has one next one, right behind it, that nothing else enters."""
    entries: dict[int, int] = {}
    for targets in edges.values():
        for target in targets:
            entries[target] = entries.get(target, 0) + 1
    found: Edges = {}
    for (start, length), targets in sorted(edges.items()):
        before = next(reversed(found), None)
        joins = before is not None and sum(before) == start and found[before] == {start} and entries[start] == 1
        if before is not None and joins:
            del found[before]
            found[before[0], before[1] + length] = targets
        else:
            found[start, length] = targets
    return found
