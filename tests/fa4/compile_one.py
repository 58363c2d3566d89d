"""Compile one kernel without a GPU and print what was made, as JSON: run in a process of its own.

compile_one.py ARCH SET CAUSAL SHAPE DTYPE KNOBS
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from fa4top.analysis.sass.flowgraph import flow_graph
from fa4top.analysis.sass.kernel import TENSOR, read_kernel, spill_sites
from fa4top.orders.shapes import parse_shape
from fa4top.targets.cuda.tools import disassembly, resources
from fa4top.targets.fa4.compile_only import compile_only
from fa4top.targets.fa4.description import DESCRIPTION


def main(arch: str, probe_set: str, causal: bool, shape_text: str, dtype: str, chosen: dict[str, str]) -> None:
    """Compile and describe."""
    knobs, problems = DESCRIPTION.setting(chosen)
    assert not problems, problems
    shape = replace(parse_shape(shape_text, DESCRIPTION.default_shape), causal=causal, dtype=dtype)
    made = compile_only(shape, arch, knobs, "" if probe_set == "clean" else probe_set)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.cubin)
        file.flush()
        text, usage = disassembly(Path(file.name)), resources(Path(file.name))
    kernel = read_kernel(text)
    registers, stack = usage[kernel.name]
    graph = flow_graph(kernel.instructions)
    # step loops: the innermost ones that hold exponentials or tensor-core instructions
    steps = [
        loop
        for loop in graph.loops
        if any(i.opcode.startswith("MUFU.EX2") or TENSOR.match(i.opcode) for i in graph.instructions(loop))
    ]
    inner = graph.innermost(steps)
    assert inner, "no step loop found"
    print(
        json.dumps(
            {
                "counts": made.probe_counts,
                "notes": made.notes,
                "ptx": made.ptx,
                "registers": registers,
                "stack": stack,
                "clocks": len(re.findall("SR_CLOCK", text)),
                "local_accesses": kernel.spills,
                "local_in_loops": sum(spill_sites(graph.instructions(loop)) for loop in inner),
                "geometry": asdict(made.geometry) if made.geometry else {},
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "1", sys.argv[4], sys.argv[5], json.loads(sys.argv[6]))
