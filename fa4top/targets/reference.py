"""Attention in FP32 on sampled rows, for output checks. NumPy only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.records import Shape

# RMS error that rounding explains, relative to the reference's RMS: P and O are rounded to the dtype
RMS_LIMITS: dict[str, float] = {"bf16": 0.01, "fp16": 0.002, "fp8": 0.08}


def digest_of(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """A short hash of all bytes."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).view(np.uint8).data)
    return found.hexdigest()[:16]


def sample_rows(shape: Shape, count: int, seed: int) -> list[tuple[int, int, int]]:
    """(batch, head, row) of the rows to check: the corners, and random ones."""
    random = np.random.default_rng(seed)
    corners = [(0, 0, 0), (shape.batch - 1, shape.heads - 1, shape.seqlen_q - 1)]
    drawn = [
        (int(random.integers(shape.batch)), int(random.integers(shape.heads)), int(random.integers(shape.seqlen_q)))
        for _ in range(max(0, count - len(corners)))
    ]
    return (corners + drawn)[:count]


def reference_row(
    q: npt.NDArray[np.float32], k: npt.NDArray[np.float32], v: npt.NDArray[np.float32], row: int, shape: Shape
) -> npt.NDArray[np.float32]:
    """One output row.

    Args:
        q: (head_dim,) of this row. k: (seqlen_k, head_dim). v: (seqlen_k, head_dim_v).
        row: index of the query, for the causal mask aligned at the end.
    """
    keys = shape.seqlen_k - shape.seqlen_q + row + 1 if shape.causal else shape.seqlen_k
    scores = (k[:keys] @ q) / np.float32(np.sqrt(shape.head_dim))
    weights = np.exp(scores - scores.max())
    result: npt.NDArray[np.float32] = (weights @ v[:keys]) / weights.sum()
    return result


def relative_errors(outputs: npt.NDArray[np.float32], references: npt.NDArray[np.float32]) -> tuple[float, float]:
    """(max, RMS) error over the RMS of the reference; NaN or infinity anywhere gives infinity."""
    if not np.isfinite(outputs).all():
        return float("inf"), float("inf")
    scale = float(np.sqrt(np.mean(np.square(references, dtype=np.float64)))) or 1.0
    error = np.abs(outputs.astype(np.float64) - references)
    return float(error.max()) / scale, float(np.sqrt(np.mean(np.square(error)))) / scale


def bf16_to_float(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """bfloat16 bit patterns as float32, same shape."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


UNWRITTEN = 0x7FFF  # NaN in bf16 and in fp16: what a kernel does not write shows


def bf16_bits(bits: Any, xp: Any) -> Any:
    """Bit patterns of finite float32 values (uint32) as those of bfloat16 (uint16), rounded to nearest even.

    Args:
        xp: NumPy, or CuPy for arrays on a GPU.
    """
    return ((bits + xp.uint32(0x7FFF) + ((bits >> 16) & xp.uint32(1))) >> 16).astype(xp.uint16)


def float_to_bf16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """float32 to bfloat16 bits, round to nearest even; finite input."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded: npt.NDArray[np.uint16] = bf16_bits(bits, np)
    return rounded


def _e4m3_values() -> npt.NDArray[np.float32]:
    """The 256 values of e4m3 (finite, one NaN each sign), by bit pattern."""
    bits = np.arange(256)
    exponent, mantissa = (bits >> 3) & 15, bits & 7
    values = np.where(exponent == 0, mantissa / 512.0, (1.0 + mantissa / 8.0) * 2.0 ** (exponent - 7.0))
    values[(bits & 0x7F) == 0x7F] = np.nan
    result: npt.NDArray[np.float32] = np.where(bits & 0x80, -values, values).astype(np.float32)
    return result


E4M3_VALUES = _e4m3_values()


def e4m3_to_float(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """e4m3 bit patterns as float32, same shape."""
    return E4M3_VALUES[bits]


def bf16_bits_to_e4m3(bits: Any, module: Any) -> Any:
    """bf16 bit patterns to e4m3 bit patterns, round to nearest even, saturating: one look into a table of 65 536.

    Args:
        bits: uint16 array of ``module`` (NumPy or CuPy).
    """
    exact = bf16_to_float(np.arange(65536, dtype=np.uint32).astype(np.uint16))
    magnitude = np.minimum(np.nan_to_num(np.abs(exact), nan=0.0, posinf=448.0), 448.0)
    positive = E4M3_VALUES[:127].astype(np.float64)
    upper = np.searchsorted(positive, magnitude, side="left").clip(1, 126)
    lower = upper - 1
    below, above = magnitude - positive[lower], positive[upper] - magnitude
    nearest = np.where((below < above) | ((below == above) & (lower % 2 == 0)), lower, upper)
    table = (nearest | ((np.arange(65536) >> 8) & 0x80)).astype(np.uint8)
    return module.asarray(table)[bits]
