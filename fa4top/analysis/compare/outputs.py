"""Outputs of launches compared: bit for bit, by value, and where they differ. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
TILE_ROWS = 128
NAMED = 4


@dataclass(frozen=True, kw_only=True)
class OutputDifference:
    """Elements that differ between two outputs of shape (batch, queries, heads, head_dim), bit for bit. ``max`` is the
    largest absolute difference over the RMS of the first; infinite where one is not finite."""

    elements: int
    total: int
    max: float
    where: str

    @property
    def equal(self) -> bool:
        """Bit for bit?"""
        return not self.elements


def compare_outputs(first: F32, second: F32) -> OutputDifference:
    """What the second has that the first has not.

    Raises:
        ValueError: the shapes differ.
    """
    if first.shape != second.shape:
        raise ValueError(f"outputs of shapes {first.shape} and {second.shape}")
    differing = np.ascontiguousarray(first).view(np.uint32) != np.ascontiguousarray(second).view(np.uint32)
    count = int(np.count_nonzero(differing))
    if not count:
        return OutputDifference(elements=0, total=first.size, max=0.0, where="")
    a, b = first[differing].astype(np.float64), second[differing].astype(np.float64)
    scale = float(np.sqrt(np.mean(np.square(first, dtype=np.float64)))) or 1.0
    gaps = np.abs(a - b) / scale
    largest = float(gaps.max()) if np.isfinite(gaps).all() else float("inf")
    return OutputDifference(elements=count, total=first.size, max=largest, where=where(differing))


def where(differing: npt.NDArray[np.bool_]) -> str:
    """In words: how many rows, which batches and heads, which tiles of 128 rows."""
    rows = differing.any(axis=3)
    batches, queries, heads = (np.unique(index) for index in np.nonzero(rows))
    tiles = np.unique(queries // TILE_ROWS)
    count, first, last = int(np.count_nonzero(rows)), int(queries.min()), int(queries.max())
    parts = [
        f"{count} row{'s' * (count > 1)}",
        _named("batch", batches),
        _named("head", heads),
        _named("tile", tiles),
        f"rows {first} to {last}" if first < last else f"row {first}",
    ]
    return ", ".join(parts)


def _named(name: str, values: npt.NDArray[np.int64]) -> str:
    some = " ".join(str(value) for value in values[:NAMED])
    return f"{name} {some}" if len(values) <= NAMED else f"{len(values)} {name}{'es' if name == 'batch' else 's'}"
