"""What the simulated roles record, and how it gets into a device buffer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.layout import (
    GENERATION_SHIFT,
    H_CLOCK_BEGIN,
    H_CTA,
    H_DROPPED,
    H_GENERATION,
    H_LAYOUT,
    H_SM,
    H_STATE,
    H_TIMER_BEGIN,
    H_WRITTEN,
    STATE_FINISHED,
    STATE_STARTED,
    WIDE,
    BufferLayout,
)


@dataclass
class RoleLog:
    """Slots of one role while it is simulated: rows of (event << 2 | kind, words...), times in cycles."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    end_cycles: float = 0.0
    finished: bool = True

    def event(self, event: int, kind: int, cycles: float) -> None:
        """One 8-byte event."""
        self.rows.append((event << 2 | kind, cycles))

    def span(self, event: int, begin: float, end: float) -> None:
        """A slow-path wait: nothing is recorded when it did not block."""
        if end > begin:
            self.rows.append((event << 2, begin))
            self.rows.append((event << 2 | 1, end))

    def wide(self, event: int, first: float, second: float, third: float, third_is_clock: bool) -> None:
        """One 16-byte record."""
        self.rows.append((event << 2 | WIDE, first, second, third, float(third_is_clock)))


@dataclass(frozen=True)
class LaunchFacts:
    """What a launch's headers say besides the counts."""

    generation: int
    cta: int
    sm: int
    clock_base: int
    timer_base_ns: int
    clock_mhz: float


def write_buffer(
    buffer: npt.NDArray[np.uint8], layout: BufferLayout, logs: dict[str, RoleLog], facts: LaunchFacts, capacity: int
) -> None:
    """Write roles the way the device does: slots from 0, tags with the generation, 32-bit clocks that wrap.

    Args:
        buffer: layout.total_bytes bytes, changed in place; what a launch does not overwrite stays stale.
        capacity: slots a role has (at most the layout's); the rest is dropped and counted.
    """
    for number, role in enumerate(layout.roles):
        log = logs.get(role)
        if log is None:
            continue
        header = layout.header(buffer, number)
        kept = log.rows[:capacity]
        header[:] = 0
        header[H_LAYOUT], header[H_GENERATION] = 1, facts.generation
        header[H_SM], header[H_CTA] = facts.sm, facts.cta
        header[H_STATE] = STATE_FINISHED if log.finished else STATE_STARTED
        _join(header, H_TIMER_BEGIN, facts.timer_base_ns)
        _join(header, H_CLOCK_BEGIN, facts.clock_base)
        if log.finished:
            header[H_WRITTEN], header[H_DROPPED] = len(kept), len(log.rows) - len(kept)
            # the timer ticks every 32 ns
            end_ns = facts.timer_base_ns + int(log.end_cycles * 1000.0 / facts.clock_mhz) // 32 * 32
            _join(header, H_TIMER_BEGIN + 4, end_ns)
            _join(header, H_CLOCK_BEGIN + 4, facts.clock_base + int(log.end_cycles))
        if not kept:
            continue
        slots = layout.slots(buffer, number)
        rows = np.asarray(kept, dtype=np.float64)
        tags = rows[:, 0].astype(np.int64) | facts.generation << GENERATION_SHIFT
        slots[: len(kept), 0] = tags.astype(np.uint32)
        clocks = (rows[:, 1:].astype(np.int64) + facts.clock_base) & 0xFFFFFFFF
        if layout.stride == 8:
            slots[: len(kept), 1] = clocks[:, 0].astype(np.uint32)
        else:
            raw = rows[:, 3].astype(np.int64)
            slots[: len(kept), 1] = clocks[:, 0].astype(np.uint32)
            slots[: len(kept), 2] = clocks[:, 1].astype(np.uint32)
            slots[: len(kept), 3] = np.where(rows[:, 4] > 0, clocks[:, 2], raw & 0xFFFFFFFF).astype(np.uint32)


def _join(header: npt.NDArray[np.uint32], low: int, value: int) -> None:
    header[low], header[low + 1] = value & 0xFFFFFFFF, value >> 32
