"""Knobs to macros, macros to a cubin. Needs no GPU."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fa4top.analysis.trace.layout import BufferLayout
from fa4top.records import Shape
from fa4top.targets.builtin.description import ARCH
from fa4top.targets.builtin.family import BUILTIN
from fa4top.targets.builtin.geometry import tile_order
from fa4top.targets.builtin.split import handoff
from fa4top.targets.cuda.compile import Cubin, compile_kernel
from fa4top.targets.launcher import Compiled, TargetError

SOURCE = "attention_sm90.cu"
LAYOUT = BufferLayout(roles=BUILTIN.roles, capacity=131072, stride=8, late=True)
THREADS = 512
# the kernel's struct Problem
PROBLEM = np.dtype(
    [("batch", "i4"), ("heads", "i4"), ("kv_heads", "i4"), ("queries", "i4"), ("keys", "i4"), ("scale_log2", "f4")]
)
TRACE_LEVELS = {"": 0, "coarse": 1, "detail": 2}


def macros(shape: Shape, knobs: dict[str, str], trace: int) -> dict[str, int | str]:
    """The kernel's compile-time settings. ``trace``: 0 clean, 1 coarse, 2 detail."""
    split = handoff(knobs)
    return {
        "PV_FP8": int(knobs["pv_mode"] == "fp8"),
        "CAUSAL": int(shape.causal),
        "KV_STAGES": int(knobs["kv_stages"]),
        "P_CHUNKS": split.chunks,
        "P_FIRST": split.producer,
        "PV_FIRST": split.consumer,
        "S_EARLY": int(knobs["s_handover"] == "early"),
        "EXP2_EIGHTHS": int(8 * Fraction(knobs["exp2_emulation"])),
        "FOLD_SCALE": int(knobs["fp8_scale"] == "folded"),
        "TILE_ORDER": tile_order(knobs, shape.causal),
        "LOST_SIGNAL": int(knobs["lost_signal"] == "on"),
        "SHARED_BYTES": shared_bytes(knobs),
        "PROBLEM_BYTES": PROBLEM.itemsize,
        "FA4TOP_TRACE": trace,
        "FA4TOP_ROLES": len(LAYOUT.roles),
        "FA4TOP_CAPACITY": LAYOUT.capacity,
    }


def build(shape: Shape, knobs: dict[str, str], trace: int) -> Cubin:
    """Compile one setting.

    Raises:
        TargetError: the compiler refused, or made the wgmma instructions wait for one another.
    """
    cubin = compile_kernel(SOURCE, ARCH, macros(shape, knobs, trace))
    if cubin.serialised:
        raise TargetError(
            "serialised wgmma",
            f"{cubin.compiler} serialises this kernel's wgmma instructions (C7514): its times would mean nothing",
            "use another NVRTC 13, and tell us which one did this",
        )
    return cubin


def compile_only(shape: Shape, arch: str, knobs: dict[str, str], probe_set: str) -> Compiled:
    """Compile one setting without a GPU.

    Raises:
        TargetError: there is no such probe set, or the compiler refused.
    """
    if probe_set not in TRACE_LEVELS:
        known = ", ".join(filter(None, TRACE_LEVELS))
        raise TargetError("unknown probe set", f"no probe set {probe_set}; there are {known}")
    cubin = build(shape, knobs, TRACE_LEVELS[probe_set])
    return Compiled(cubin=cubin.data, ptx="", versions={"compiler": cubin.compiler})


def shared_bytes(knobs: dict[str, str]) -> int:
    """Dynamic shared memory of one CTA: Q, the K/V ring, S, P, row factors and sums, barriers."""
    stages = int(knobs["kv_stages"])
    return 2 * 16384 + stages * 32768 + 2 * 32768 + 2 * 16384 + 4 * 256 + 8 * (18 + 2 * stages)
