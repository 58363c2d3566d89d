"""The fork's published figures, for the reference column. Data.

Source: its README and analysis document at b9746361, table of 2026-07: GB300 SXM6 AC, SM 10.3, 2070 MHz, DSL 4.5.2,
not causal, TFLOP/s by its own benchmark (a rest of 0.8 s before each shape).
"""

from __future__ import annotations

from fa4top.analysis.chip.chips import chip_by_key, chip_named
from fa4top.orders.presets import PRESETS
from fa4top.records import Published, Shape

SOURCE = "its README, GB300, 2026-07"
MODES = (("nvfp4", "bf16"), ("nvfp4", "fp8"), ("nvfp4", "fp4"), ("nvfp4", "mxfp8"), ("mxfp8", "bf16"), ("mxfp8", "fp8"))
# by shape, in the order of MODES; None where there is no such kernel
TFLOPS: dict[str, tuple[float | None, ...]] = {
    "b1-s256-h16": (13, 11, 12, 12, 11, 12),
    "b1-s1024-h16": (232, 203, 200, 209, 221, 242),
    "b4-s4096-h16": (2227, 2502, 1524, 1612, 1849, 2291),
    "b1-s32768-h16": (2337, 2666, 1720, 1807, 2072, 2383),
    "b4-s4096-h32": (2196, 2540, 1544, 1638, 1879, 2290),
    "b1-s4096-h12": (1458, 1458, 942, 987, 1227, 1418),
    "b1-s32768-h12": (2276, 2582, 1646, 1726, 2021, 2350),
    "b1-s4096-h24": (1949, 2046, 1291, 1360, 1611, 1974),
    "b1-s32768-h24": (2235, 2677, 1725, 1809, 1974, 2362),
    "b1-s32768-h24-d64": (1209, 1203, None, None, None, None),
}


def published(device: str, shape: Shape, knobs: dict[str, str]) -> Published | None:
    """The published TFLOP/s for this chip, mode and shape; None when one of them was not published."""
    mode = (knobs.get("qk_mode", ""), knobs.get("pv_mode", ""))
    square = shape.seqlen_q == shape.seqlen_k and shape.heads == shape.kv_heads and shape.head_dim == shape.head_dim_v
    if chip_named(device) != chip_by_key("gb300") or mode not in MODES or shape.causal or not square:
        return None
    sizes = (shape.batch, shape.seqlen_q, shape.heads, shape.head_dim)
    name = next((name for name, preset in PRESETS.items() if preset == sizes), "")
    tflops = TFLOPS[name][MODES.index(mode)] if name in TFLOPS else None
    return Published(tflops=tflops, source=SOURCE) if tflops is not None else None
