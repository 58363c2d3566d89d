"""Compile one kernel without a GPU and print what was made, as JSON: run in a process of its own.

compile_one.py ARCH SET CAUSAL SHAPE DTYPE
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

BUFFER, CONFIG, SMS = 0x7FFF_0000_0000, 0x7FFE_0000_0000, 148


def tool(name: str) -> str:
    """nvdisasm and cuobjdump from the `sass` extra's wheels, or from PATH."""
    site = Path(sysconfig.get_paths()["purelib"])
    for candidate in (*site.glob(f"nvidia/cu13/bin/{name}"), *site.glob(f"nvidia/*/bin/{name}")):
        return str(candidate)
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"no {name}: pip install 'fa4top[sass]'")
    return found


def blocks_of(sass: str) -> tuple[list[list[str]], list[set[int]]]:
    """Basic blocks of the listing, and their successors."""
    blocks: list[list[str]] = [[]]
    names: dict[str, int] = {}
    for line in sass.splitlines():
        if match := re.match(r"\s*(\.L_x_\d+):", line):
            if blocks[-1]:
                blocks.append([])
            names[match.group(1)] = len(blocks) - 1
        elif re.match(r"\s+/\*[0-9a-f]{4,}\*/", line):
            blocks[-1].append(line)
            if re.search(r"\b(BRA|EXIT|RET|BRX|CALL)\b", line):
                blocks.append([])
    successors: list[set[int]] = []
    for number, lines in enumerate(blocks):
        last = lines[-1] if lines else ""
        found = {names[m] for m in re.findall(r"`\((\.L_x_\d+)\)", last) if m in names}
        conditional = re.search(r"@!?U?P\d|BRA\.U|CALL", last)
        ends = re.search(r"\b(BRA|EXIT|RET|BRX)\b", last)
        if (not ends or conditional) and number + 1 < len(blocks):
            found.add(number + 1)
        successors.append(found)
    return blocks, successors


def natural_loops(successors: list[set[int]]) -> list[set[int]]:
    """Bodies of all natural loops: an edge back to a block that dominates its source, and what lies between."""
    count = len(successors)
    predecessors: list[set[int]] = [set() for _ in range(count)]
    for source, targets in enumerate(successors):
        for target in targets:
            predecessors[target].add(source)
    reachable, stack = {0}, [0]
    while stack:
        for target in successors[stack.pop()] - reachable:
            reachable.add(target)
            stack.append(target)
    everything = set(reachable)
    dominators = {n: ({0} if n == 0 else everything) for n in reachable}
    changed = True
    while changed:
        changed = False
        for n in sorted(reachable - {0}):
            known = [dominators[p] for p in predecessors[n] if p in reachable]
            new = {n} | set.intersection(*known)
            if new != dominators[n]:
                dominators[n], changed = new, True
    loops = []
    for source in reachable:
        for head in successors[source] & dominators[source]:
            body, stack = {head, source}, [source]
            while stack:
                for before in predecessors[stack.pop()] & reachable - body:
                    body.add(before)
                    stack.append(before)
            loops.append(body)
    return loops


def local_in_loops(sass: str) -> list[str]:
    """Local loads and stores in step loops: the innermost loops that hold exponentials or tensor-core instructions."""
    blocks, successors = blocks_of(sass)
    work = re.compile(r"MUFU\.EX2|UTCHMMA|UTCQMMA|HGMMA|QGMMA")
    steps = [loop for loop in natural_loops(successors) if any(work.search(x) for n in loop for x in blocks[n])]
    inner = [loop for loop in steps if not any(other < loop for other in steps)]
    assert inner, "no step loop found"
    return [x.strip() for loop in inner for n in sorted(loop) for x in blocks[n] if re.search(r"\b(LDL|STL)\b", x)]


def main(arch: str, probe_set: str, causal: bool, shape_text: str, dtype: str, chosen: dict[str, str]) -> None:
    """Compile and describe."""
    dump = Path(tempfile.mkdtemp(prefix="fa4top-compile-"))
    os.environ.update(
        CUTE_DSL_ARCH=arch, FLASH_ATTENTION_ARCH=arch, FLASH_ATTENTION_NUM_SMS=str(SMS), CUTE_DSL_KEEP_PTX="1",
        CUTE_DSL_KEEP_CUBIN="1", CUTE_DSL_DUMP_DIR=str(dump),
    )  # fmt: skip
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
    from fa4top.targets.base import parse_shape
    from fa4top.targets.fa4 import environment, inject, package
    from fa4top.targets.fa4.description import DESCRIPTION
    from fa4top.targets.fa4.geometry import kernel_geometry
    from fa4top.targets.fa4.launch import keywords
    from fa4top.targets.fa4.probes import FAMILIES

    knobs, problems = DESCRIPTION.setting(chosen)
    assert not problems, problems
    environment.prepare(knobs, str(dump))
    import cutlass.utils
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    class Hardware:
        """Answers the DSL's question without a driver."""

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

        def get_max_active_clusters(self, size: int, *args: Any, **kwargs: Any) -> int:
            return SMS // size

        def get_device_multiprocessor_count(self) -> int:
            return SMS

    cutlass.utils.HardwareInfo = Hardware
    kernels = package.Kernels(knobs)
    injection = None
    if probe_set != "clean":
        probes = FAMILIES[arch]
        injection = inject.install(probes, next(s for s in probes.sets if s.name == probe_set), BUFFER, CONFIG)
    shape = replace(parse_shape(shape_text, DESCRIPTION.default_shape), causal=causal, dtype=dtype)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}[dtype]
    with FakeTensorMode():
        q, k, v = (
            torch.empty(shape.batch, length, heads, dim, dtype=kind, device="cuda")
            for length, heads, dim in (
                (shape.seqlen_q, shape.heads, shape.head_dim), (shape.seqlen_k, shape.kv_heads, shape.head_dim),
                (shape.seqlen_k, shape.kv_heads, shape.head_dim_v),
            )
        )  # fmt: skip
        kernels.forward(q, k, v, causal=causal, **keywords(knobs))
    cubin = next(dump.glob("*.cubin"))
    sass = subprocess.run([tool("nvdisasm"), "-c", str(cubin)], capture_output=True, text=True, check=True).stdout
    usage = subprocess.run(
        [tool("cuobjdump"), "--dump-resource-usage", str(cubin)], capture_output=True, text=True, check=True
    ).stdout
    resources = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert resources
    print(
        json.dumps(
            {
                "counts": injection.probe_counts() if injection else {},
                "notes": injection.notes if injection else [],
                "ptx": next(dump.glob("*.ptx")).read_text().replace("\0", ""),
                "registers": int(resources.group(1)),
                "stack": int(resources.group(2)),
                "clocks": len(re.findall(r"SR_CLOCK", sass)),
                "local_accesses": len(re.findall(r"\b(?:LDL|STL)\b", sass)),
                "local_in_loops": local_in_loops(sass),
                "geometry": asdict(kernel_geometry(kernels.kernel, shape, SMS)),
            }
        )
    )
    shutil.rmtree(dump)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "1", sys.argv[4], sys.argv[5], json.loads(sys.argv[6]))
