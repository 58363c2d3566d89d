r"""Microbenchmarks under Nsight Compute: do its pipe counters agree with what the bench believes? Needs a GPU.

    ncu --clock-control none --metrics regex:smsp__inst_executed_pipe_.*sum -k regex:bench \
        python benchmarks/bench_ncu.py > ncu.txt
    python benchmarks/bench_ncu.py table ncu.txt

Each kernel is launched twice with 1024 threads; counters are warp instructions.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

NAMES = (
    "ex2.approx.ftz.f32",
    "rcp.approx.ftz.f32",
    "fma.rn.f32",
    "max.f32",
    "cvt.rn.bf16x2.f32",
    "cvt.rn.satfinite.e4m3x2.f32",
    "cvt.rn.f16x2.e4m3x2",
    "cvt.f32.f16",
    "iadd3",
    "4 ex2 + 4 e4m3x2",
)
THREADS = 1024
LEAST = 5000.0  # warp instructions that count as part of the timed work


def launch() -> int:
    from fa4top.targets.bench import run
    from fa4top.targets.bench.build import build
    from fa4top.targets.bench.suite import SUITE

    run.REPEATS = 1
    bench = run.Suite("ncu", 0, "", run=True)
    for name in NAMES:
        kernel = next(kernel for kernel in SUITE if kernel.name == name)
        cycles = bench.cycles(kernel, build(kernel, bench.arch), THREADS)
        meant = kernel.amount * kernel.iterations * THREADS / 32
        print(f"KERNEL {name} | {meant:.0f} | {kernel.value(float(cycles[0]), THREADS):.2f}", flush=True)
    return 0


def table(path: Path) -> int:
    """Its counters come after the program's own lines, one block a launch, in the order of the launches."""
    kernels = []
    blocks: list[dict[str, float]] = []
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("KERNEL "):
            words = line[len("KERNEL ") :].split(" | ")
            kernels.append((words[0], float(words[1]), float(words[2])))
        elif line.startswith("  bench"):
            blocks.append({})
        elif found := re.match(r"\s+smsp__inst_executed_pipe_(\S+)\.sum\s+inst\s+([\d.,]+)", line):
            counted = float(found[2].replace(",", ""))
            if blocks and counted > LEAST:
                blocks[-1][found[1]] = counted
    print(f"{'kernel':30} {'meant':>8} {'per clk':>8}  ncu: warp instructions by pipe")
    for (name, meant, rate), block in zip(kernels, blocks[1::2], strict=True):
        pipes = ", ".join(f"{pipe} {value:.0f}" for pipe, value in block.items())
        print(f"{name:30} {meant:8.0f} {rate:8.2f}  {pipes}")
    return 0


if __name__ == "__main__":
    sys.exit(table(Path(sys.argv[2])) if sys.argv[1:2] == ["table"] else launch())
