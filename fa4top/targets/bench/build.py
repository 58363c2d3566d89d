"""Compile a microbenchmark and check in its SASS that the timed work is there. Needs no GPU."""

from __future__ import annotations

from fa4top.analysis.sass.listing import RegionError, parse_sass, region_problem, timed_region
from fa4top.targets.bench.suite import Kernel
from fa4top.targets.cuda.compile import Cubin, compile_kernel
from fa4top.targets.cuda.disassemble import disassemble

ENTRY = "bench"


def build(kernel: Kernel, arch: str) -> Cubin:
    """Compile for one architecture.

    Raises:
        CompileError: this compiler or architecture does not take it.
    """
    headers = {"step.inc": kernel.header} if kernel.header else {}
    return compile_kernel(kernel.source, arch, kernel.defines, headers)


def sass_problem(kernel: Kernel, cubin: Cubin) -> str | None:
    """Why the compiled code is not what was meant; None when it is.

    Raises:
        TargetError: there is no disassembler.
    """
    if cubin.serialised:
        return "the compiler serialised its wgmma instructions (C7514)"
    functions = parse_sass(disassemble(cubin))
    try:
        region = timed_region(functions.get(ENTRY, ()))
    except RegionError as error:
        return str(error)
    return region_problem(region, kernel.expected, kernel.others_share)
