"""The builtin kernel's machine code: as it was when it was measured; its blocks those that nvdisasm sees."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fa4top.analysis.sass.flowgraph import flow_graph
from fa4top.analysis.sass.listing import parse_sass
from fa4top.targets.bench.build import build as build_bench
from fa4top.targets.bench.suite import SUITE
from fa4top.targets.cuda.compile import Cubin
from fa4top.targets.cuda.disassemble import disassemble
from fa4top.targets.cuda.tools import find_tool
from tests.kernels.blocks import drawn_by, merged, of_graph
from tests.kernels.golden import CASES, GOLDEN, built, code_hash, name_of

pytestmark = pytest.mark.kernels

KEPT = json.loads(GOLDEN.read_text())
ANEW = "if that is meant: python -m tests.kernels.golden, and measure it again"


@pytest.mark.parametrize("case", CASES, ids=[name_of(*case) for case in CASES])
def test_the_code_is_bit_for_bit_what_was_measured(case: tuple[int, bool, int]) -> None:
    cubin = built(*case)
    assert cubin.compiler == KEPT["compiler"], f"the hashes are of another compiler (pyproject.toml pins it); {ANEW}"
    assert code_hash(cubin.data) == KEPT["code"][name_of(*case)], ANEW


def test_every_case_has_its_hash() -> None:
    assert set(KEPT["code"]) == {name_of(*case) for case in CASES}


def cubins() -> dict[str, Cubin]:
    """Settings with and without probes, and microbenchmarks: small loops, a chip without its machine here too."""
    found = {name_of(*case): built(*case) for case in CASES if case[0] < 2 and case[2] < 2}
    chosen = [next(k for k in SUITE if k.name == name) for name in ("ex2.approx.ftz.f32", "fma.rn.f32")]
    return found | {f"{kernel.name} {arch}": build_bench(kernel, arch) for kernel in chosen for arch in kernel.archs}


def labels_of(listing: str, function: str) -> dict[str, int]:
    """Which instruction each label of a function stands at."""
    found: dict[str, int] = {}
    number = 0
    for line in listing[listing.index(f".text.{function}:") :].splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            found[label[1]] = number
        number += bool(re.match(r"\s+/\*[0-9a-f]{4,}\*/", line))
    return found


def test_blocks_and_edges_are_those_of_nvdisasm(tmp_path: Path) -> None:
    nvdisasm = find_tool("nvdisasm")
    assert nvdisasm is not None
    for name, cubin in cubins().items():
        listing = disassemble(cubin)
        (function, instructions), *_ = parse_sass(listing).items()
        path = tmp_path / "code.cubin"
        path.write_bytes(cubin.data)
        graph = flow_graph(instructions)
        theirs, ours = drawn_by(nvdisasm, path, function, labels_of(listing, function)), of_graph(graph)
        # it leaves out what only a call enters, and the padding behind the end
        reached, todo = {0}, [0]
        while todo:
            for after in graph.successors[todo.pop()] - reached:
                reached.add(after)
                todo.append(after)
        first = [sum(len(block) for block in graph.blocks[:number]) for number in range(len(graph.blocks))]
        entered = {first[number] for number in reached}
        assert theirs == {block: after for block, after in ours.items() if block[0] in entered}, name
        assert len(theirs) >= 3


def test_a_straight_line_is_one_block_however_it_is_cut() -> None:
    line = {(0, 2): frozenset({2}), (2, 3): frozenset({5}), (5, 1): frozenset({2, 6}), (6, 1): frozenset[int]()}
    assert merged(line) == {(0, 2): {2}, (2, 4): {2, 6}, (6, 1): set()}, "2 is entered from its end too"
    assert merged({(0, 2): frozenset({2}), (2, 3): frozenset()}) == {(0, 5): frozenset()}
