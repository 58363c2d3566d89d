"""What microbenchmark timings mean. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fa4top.analysis.chip.chips import ISSUE_PER_CLOCK


def timed_cycles(clocks: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Cycles of each repeat: earliest begin to latest end over the warps.

    Args:
        clocks: (repeats, warps, 2) of clock64 at begin and end; all warps on one SM.
    """
    begin = clocks[:, :, 0].min(axis=1)
    end = clocks[:, :, 1].max(axis=1)
    cycles: npt.NDArray[np.float64] = (end - begin).astype(np.float64)
    return cycles


def perfect_overlap(
    parts: Sequence[tuple[str, int]], units: Mapping[str, str], rates: Mapping[str, float]
) -> float | None:
    """Instructions per clock that a mix would reach if its units never waited for one another.

    The busiest unit, or the issue slots (one instruction a clock and scheduler), sets the time.

    Args:
        parts: (instruction, count of one round).
        units: unit of each instruction. rates: measured instructions per clock and SM of each alone.

    Returns:
        None when one of them was not measured.
    """
    busy: dict[str, float] = {}
    for name, count in parts:
        if not rates.get(name):
            return None
        busy[units[name]] = busy.get(units[name], 0.0) + count / rates[name]
    total = sum(count for _, count in parts)
    cycles = max(max(busy.values()), total / ISSUE_PER_CLOCK)
    return total / cycles
