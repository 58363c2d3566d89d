"""How the fork lays a problem out on the chip (contract, section 0): 256 rows a CTA, persistent unless causal."""

from __future__ import annotations

from math import ceil

from fa4top.records import Geometry, Shape
from fa4top.targets.base import attention_flops
from fa4top.targets.fork.modes import KEYS_PER_STEP

ROWS = 256  # two Q stages of 128


def kernel_geometry(shape: Shape, sm_count: int) -> Geometry:
    """Grid, tiles and steps of one launch. Steps of a causal tile are averaged."""
    row_tiles = ceil(shape.seqlen_q / ROWS)
    steps = []
    for tile in range(row_tiles):
        last = min((tile + 1) * ROWS, shape.seqlen_q)
        keys = shape.seqlen_k - shape.seqlen_q + last if shape.causal else shape.seqlen_k
        steps.append(max(1, ceil(min(keys, shape.seqlen_k) / KEYS_PER_STEP)))
    tiles = shape.batch * shape.heads * row_tiles
    total = shape.batch * shape.heads * sum(steps)
    longest = ceil(total / min(sm_count, tiles)) if shape.causal else ceil(tiles / sm_count) * steps[0]
    return Geometry(
        grid_ctas=tiles if shape.causal else min(tiles, sm_count),
        sm_count=sm_count,
        ctas_per_sm=1,
        tiles=tiles,
        steps_per_tile=round(total / tiles),
        steps_longest=longest,
        persistent=not shape.causal,
        flops=attention_flops(shape),
    )
