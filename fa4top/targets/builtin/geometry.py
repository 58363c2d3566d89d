"""How the builtin kernel lays a problem out: a persistent grid over tiles of 128 rows."""

from __future__ import annotations

import numpy as np

from fa4top.records import Geometry, Shape
from fa4top.targets.base import attention_flops
from fa4top.targets.builtin.description import BLOCK, ROWS

ORDERS = {"rows": 0, "heads": 1, "longest": 2}


def tile_order(knobs: dict[str, str], causal: bool) -> int:
    """TILE_ORDER of the kernel."""
    name = knobs["tile_order"]
    return ORDERS[("longest" if causal else "rows") if name == "auto" else name]


def kernel_geometry(shape: Shape, knobs: dict[str, str], sm_count: int) -> Geometry:
    """Grid, tiles and steps of one launch. CTA c works on tiles c, c + grid, c + 2 grid, ..."""
    row_tiles, groups = shape.seqlen_q // ROWS, shape.batch * shape.heads
    tiles = row_tiles * groups
    grid = min(tiles, sm_count)
    index = np.arange(tiles)
    order = tile_order(knobs, shape.causal)
    row = index % row_tiles if order == 0 else index // groups
    if order == 2:
        row = row_tiles - 1 - row
    blocks = shape.seqlen_k // BLOCK
    steps = (row * ROWS + shape.seqlen_k - shape.seqlen_q) // BLOCK + 1 if shape.causal else np.full(tiles, blocks)
    longest = int(np.bincount(index % grid, weights=steps, minlength=grid).max())
    return Geometry(
        grid_ctas=grid,
        sm_count=sm_count,
        ctas_per_sm=1,
        tiles=tiles,
        steps_per_tile=round(float(steps.mean())),
        steps_longest=longest,
        persistent=True,
        flops=attention_flops(shape),
    )
