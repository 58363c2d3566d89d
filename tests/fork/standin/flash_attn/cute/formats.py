"""Block-scaled numbers: E2M1 two to a byte, E4M3, and scale factors in tiles of 128 rows as 7-D views."""

from __future__ import annotations

import torch

E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
BLOCK = {"nvfp4": 16, "mxfp8": 32}


def to_e2m1(values):
    """Nearest E2M1, packed along the last dimension: the even element in the low half of a byte."""
    index = (values.abs()[..., None] - E2M1).abs().argmin(-1).to(torch.uint8) | (values < 0).to(torch.uint8) << 3
    return (index[..., 0::2] | index[..., 1::2] << 4).view(torch.float4_e2m1fn_x2)


def from_e2m1(packed):
    """Back to floats, twice as many along the last dimension."""
    bits = packed.view(torch.uint8)
    both = torch.stack((bits & 15, bits >> 4), dim=-1).flatten(-2)
    return torch.where(both >= 8, -1.0, 1.0) * E2M1[(both & 7).long()]


def quantise(values, mode):
    """Blocks along the last dimension: (quantised, scales as 7-D view).

    Args:
        values: (batch, heads, rows, columns); rows a multiple of 128.
    """
    block = BLOCK[mode]
    parts = values.unflatten(-1, (-1, block))
    largest = parts.abs().amax(-1)
    if mode == "nvfp4":
        scales = (largest / 6.0).clamp(min=2.0**-9).to(torch.float8_e4m3fn)
        return to_e2m1((parts / scales.float()[..., None]).flatten(-2)), tile(scales)
    scales = torch.exp2(torch.ceil(torch.log2(largest.clamp(min=2.0**-40) / 448.0))).to(torch.float8_e8m0fnu)
    return (parts / scales.float()[..., None]).flatten(-2).to(torch.float8_e4m3fn), tile(scales)


def dequantise(values, scales):
    """Floats again. Args: values (batch, heads, rows, columns, packed if E2M1), scales as ``quantise`` gave them."""
    real = from_e2m1(values) if values.dtype == torch.float4_e2m1fn_x2 else values.float()
    flat = untile(scales)
    return real * flat.repeat_interleave(real.shape[-1] // flat.shape[-1], dim=-1)


def tile(scales):
    """(batch, heads, rows, blocks) to the view (32, 4, rest_m, 4, rest_k, heads, batch)."""
    raw = scales.view(torch.uint8)
    batch, heads, rows, blocks = raw.shape
    padded = torch.zeros(batch, heads, rows, -(-blocks // 4) * 4, dtype=torch.uint8)
    padded[..., :blocks] = raw
    tiles = padded.view(batch, heads, rows // 128, 4, 32, padded.shape[-1] // 4, 4)
    stored = tiles.permute(0, 1, 2, 5, 4, 3, 6).contiguous()  # b, h, rest_m, rest_k, 32, 4, 4
    return stored.permute(4, 5, 2, 6, 3, 1, 0).view(scales.dtype)


def untile(scales):
    """Back to (batch, heads, rows, blocks) floats."""
    raw = scales.view(torch.uint8).permute(6, 5, 2, 1, 0, 4, 3)  # b, h, rest_m, 4, 32, rest_k, 4
    batch, heads, rest_m, _, _, rest_k, _ = raw.shape
    flat = raw.contiguous().view(batch, heads, rest_m * 128, rest_k * 4).view(scales.dtype)
    return flat.float()
