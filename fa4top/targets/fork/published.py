"""The fork's published figures, for the reference column. Data.

Source: its README and analysis document at b9746361, table of 2026-07: GB300 SXM6 AC, SM 10.3, 2070 MHz, DSL 4.5.2,
not causal, TFLOP/s by its own benchmark (a rest of 0.8 s before each shape).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fa4top.records import Shape

SOURCE = "fork's README, GB300, 2026-07"
MODES = (("nvfp4", "bf16"), ("nvfp4", "fp8"), ("nvfp4", "fp4"), ("nvfp4", "mxfp8"), ("mxfp8", "bf16"), ("mxfp8", "fp8"))


@dataclass(frozen=True)
class Row:
    """One shape: batch, length, heads, head dim, and TFLOP/s in the order of MODES; None where there is no such kernel.
    ``reference`` is the package's own bf16 kernel."""

    batch: int
    seqlen: int
    heads: int
    head_dim: int
    tflops: tuple[float | None, ...]
    reference: float

    @property
    def name(self) -> str:
        """Name of the preset."""
        dim = "" if self.head_dim == 128 else f"-d{self.head_dim}"
        return f"b{self.batch}-s{self.seqlen}-h{self.heads}{dim}"


ROWS: tuple[Row, ...] = (
    Row(1, 256, 16, 128, (13, 11, 12, 12, 11, 12), 17),
    Row(1, 1024, 16, 128, (232, 203, 200, 209, 221, 242), 289),
    Row(4, 4096, 16, 128, (2227, 2502, 1524, 1612, 1849, 2291), 1508),
    Row(1, 32768, 16, 128, (2337, 2666, 1720, 1807, 2072, 2383), 1585),
    Row(4, 4096, 32, 128, (2196, 2540, 1544, 1638, 1879, 2290), 1475),
    Row(1, 4096, 12, 128, (1458, 1458, 942, 987, 1227, 1418), 1017),
    Row(1, 32768, 12, 128, (2276, 2582, 1646, 1726, 2021, 2350), 1584),
    Row(1, 4096, 24, 128, (1949, 2046, 1291, 1360, 1611, 1974), 1322),
    Row(1, 32768, 24, 128, (2235, 2677, 1725, 1809, 1974, 2362), 1533),
    Row(1, 32768, 24, 64, (1209, 1203, None, None, None, None), 1221),
)
PRESETS: dict[str, Row] = {row.name: row for row in ROWS}


def preset_shape(name: str, default: Shape) -> Shape | None:
    """The shape of a published row; None when there is no such preset."""
    row = PRESETS.get(name)
    if row is None:
        return None
    return replace(
        default,
        batch=row.batch,
        seqlen_q=row.seqlen,
        seqlen_k=row.seqlen,
        heads=row.heads,
        kv_heads=row.heads,
        head_dim=row.head_dim,
        head_dim_v=row.head_dim,
        causal=False,
    )


def published_tflops(device: str, shape: Shape, knobs: dict[str, str]) -> float | None:
    """The published TFLOP/s for this chip, mode and shape; None when one of them was not published."""
    mode = (knobs.get("qk_mode", ""), knobs.get("pv_mode", ""))
    if "B300" not in device or mode not in MODES or shape.causal or shape.heads != shape.kv_heads:
        return None
    for row in ROWS:
        if shape == preset_shape(row.name, shape):
            return row.tflops[MODES.index(mode)]
    return None
