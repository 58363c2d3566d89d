"""How flash-attn-4 lays a problem out on the chip, from the kernel object's own attributes."""

from __future__ import annotations

from math import ceil
from typing import Any

from fa4top.records import Geometry, Shape
from fa4top.targets.base import attention_flops


def kernel_geometry(kernel: Any, shape: Shape, sm_count: int) -> Geometry:
    """Grid, tiles and steps of one launch.

    ``kernel`` is a FlashAttentionForwardSm90 (tile_m, tile_n) or FlashAttentionForwardSm100 (m_block_size, q_stage,
    n_block_size, is_persistent). Steps of a causal tile are averaged; the longest SM is then the even share.
    """
    if hasattr(kernel, "m_block_size"):
        cluster = getattr(kernel, "cta_group_size", 1)
        rows = kernel.m_block_size * kernel.q_stage * cluster
        columns = kernel.n_block_size
        persistent = bool(getattr(kernel, "is_static_persistent", False) or getattr(kernel, "is_persistent", False))
    else:
        cluster, rows, columns, persistent = 1, kernel.tile_m, kernel.tile_n, False
    packed = shape.heads // shape.kv_heads if getattr(kernel, "pack_gqa", False) else 1
    row_tiles = ceil(shape.seqlen_q * packed / rows)
    heads = shape.heads // packed
    steps = []
    for tile in range(row_tiles):
        last_row = min((tile + 1) * rows // packed, shape.seqlen_q)
        keys = shape.seqlen_k - shape.seqlen_q + last_row if shape.causal else shape.seqlen_k
        steps.append(max(1, ceil(min(keys, shape.seqlen_k) / columns)))
    tiles = shape.batch * heads * row_tiles
    total_steps = shape.batch * heads * sum(steps)
    # a tile takes the two SMs of a cluster with 2-CTA instructions
    places = sm_count // cluster
    longest = ceil(total_steps / min(places, tiles)) if shape.causal else ceil(tiles / places) * steps[0]
    return Geometry(
        grid_ctas=(min(tiles, places) if persistent else tiles) * cluster,
        sm_count=sm_count,
        ctas_per_sm=1,
        tiles=tiles,
        steps_per_tile=round(total_steps / tiles),
        steps_longest=longest,
        persistent=persistent,
        flops=attention_flops(shape),
        cta_stride=cluster,
    )
