"""Device buffers to events and spans: vectorised, and total on any bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.events import WIDE_PHASES, WIDE_STEP, WIDE_TILE, WIDE_WAIT_LIMIT, event_id
from fa4top.analysis.trace.layout import (
    BEGIN,
    END,
    GENERATION_SHIFT,
    H_CLOCK_BEGIN,
    H_CLOCK_END,
    H_CTA,
    H_DROPPED,
    H_GENERATION,
    H_SM,
    H_STATE,
    H_TIMER_BEGIN,
    H_TIMER_END,
    H_WRITTEN,
    MARK,
    STATE_FINISHED,
    WIDE,
    BufferLayout,
    Recorded,
)

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class RoleHeader:
    """One role's header. Anchors: globaltimer in ns, clock64 in cycles, at the role's start and end."""

    generation: int
    written: int
    dropped: int
    sm: int
    cta: int
    state: int
    timer_ns: tuple[int, int]
    clock: tuple[int, int]

    @property
    def finished(self) -> bool:
        """Did the role reach its end?"""
        return self.state == STATE_FINISHED

    @property
    def cycles(self) -> int | None:
        """Cycles between the anchors; None when they do not make sense."""
        cycles = self.clock[1] - self.clock[0]
        return cycles if self.finished and 0 < cycles < 1 << 48 else None

    @property
    def duration_ns(self) -> int | None:
        """Nanoseconds between the anchors; the timer ticks every 32 ns on Hopper and later."""
        duration = self.timer_ns[1] - self.timer_ns[0]
        return duration if self.finished and 0 < duration < 1 << 48 else None

    @property
    def sm_clock_mhz(self) -> float | None:
        """The SM clock of this very launch; None when the role was too short (under 10 us) to tell."""
        if self.cycles is None or self.duration_ns is None or self.duration_ns < 10_000:
            return None
        return self.cycles / self.duration_ns * 1000.0


@dataclass(frozen=True)
class Stream:
    """The events of one role in program order.

    ``key`` is event << 2 | kind (BEGIN, END, MARK); ``clock`` is cycles since ``first_clock``, 32-bit wraps undone.
    """

    key: U8
    clock: I64
    first_clock: int
    recorded: int
    stale: int
    backward: int


@dataclass(frozen=True)
class Pairs:
    """Matched begin/end pairs, grouped by event id; indices into the stream."""

    event: U8
    begin: I64
    end: I64
    unmatched: int

    def of(self, event: int) -> tuple[I64, I64]:
        """Begin and end indices of one event, in program order."""
        low, high = np.searchsorted(self.event, [event, event + 1])
        return self.begin[low:high], self.end[low:high]


def _join(words: U32, low: int) -> int:
    return int(words[low]) | int(words[low + 1]) << 32


def read_header(words: U32) -> RoleHeader:
    """Decode 16 header words; any bytes are taken."""
    return RoleHeader(
        int(words[H_GENERATION]),
        int(words[H_WRITTEN]),
        int(words[H_DROPPED]),
        int(words[H_SM]),
        int(words[H_CTA]),
        int(words[H_STATE]),
        (_join(words, H_TIMER_BEGIN), _join(words, H_TIMER_END)),
        (_join(words, H_CLOCK_BEGIN), _join(words, H_CLOCK_END)),
    )


def unwrap(clocks: U32) -> tuple[I64, int]:
    """Cycles since the first clock, and how often time ran backward (reordered or foreign slots).

    Differences are taken modulo 2**32 and read as signed: a wrap is undone, a step back stays visible.
    """
    out = np.zeros(len(clocks), dtype=np.int64)
    if len(clocks) < 2:
        return out, 0
    deltas = np.subtract(clocks[1:], clocks[:-1]).view(np.int32)
    np.cumsum(deltas, out=out[1:])
    return out, int(np.count_nonzero(deltas < 0))


def decode_events(slots: U32, generation: int, late: bool = False) -> Stream:
    """8-byte events of one role.

    Args:
        slots: (n, 2) of tag and clock; the first n slots that the header says were written.
        generation: what a fresh slot's tag carries; others count as stale.
        late: slots are put in the order of their clocks first.
    """
    tags = slots[:, 0]
    fresh = (tags >> np.uint32(GENERATION_SHIFT)) == np.uint32(generation)
    stale = len(tags) - int(np.count_nonzero(fresh))
    if stale:
        slots = slots[fresh]
        tags = slots[:, 0]
    key = tags.astype(np.uint8)
    clock, backward = unwrap(np.ascontiguousarray(slots[:, 1]))
    first = int(slots[0, 1]) if len(slots) else 0
    if late and backward:
        order = np.argsort(clock, kind="stable")
        key, clock = key[order], clock[order]
        first = (first + int(clock[0])) & 0xFFFFFFFF
        clock -= clock[0]
        backward = 0
    return Stream(key, clock, first, len(tags), stale, backward)


def decode_records(slots: U32, generation: int) -> Stream:
    """16-byte records of one role, expanded to the same events as 8-byte streams have.

    Args:
        slots: (n, 4) of tag and three words.

    A step record gives: wait K (ends where the turn begins), turn, a step mark (where the turn ends) and wait V (put
    right behind the step mark: only its length was recorded). A wait of 0 gives no span.
    """
    tags = slots[:, 0]
    fresh = ((tags >> np.uint32(GENERATION_SHIFT)) == np.uint32(generation)) & ((tags & np.uint32(3)) == WIDE)
    stale = len(tags) - int(np.count_nonzero(fresh))
    slots = np.ascontiguousarray(slots[fresh])
    kind = (slots[:, 0] >> np.uint32(2)) & np.uint32(63)
    if not len(slots):
        return Stream(np.zeros(0, np.uint8), np.zeros(0, np.int64), 0, 0, stale, 0)
    first = int(slots[0, 1])
    keys: list[U8] = []
    clocks: list[I64] = []

    def emit(event: str, event_kind: int, clock: I64) -> None:
        keys.append(np.full(len(clock), event_id(event) << 2 | event_kind, dtype=np.uint8))
        clocks.append(clock)

    # one time line over all records: the second word of every kind is a clock, in program order of its record
    base, backward = unwrap(np.ascontiguousarray(slots[:, 2]))
    base = base + int(np.subtract(slots[0, 2], slots[0, 1]).view(np.int32))

    def relative(rows: npt.NDArray[np.bool_], word: int) -> I64:
        offset: npt.NDArray[np.int32] = np.subtract(slots[rows, word], slots[rows, 2]).view(np.int32)
        moved: I64 = base[rows] + offset
        return moved

    steps = kind == WIDE_STEP
    if steps.any():
        turn_begin, turn_end = relative(steps, 1), base[steps]
        packed = slots[steps, 3]
        wait_k = (packed & np.uint32(WIDE_WAIT_LIMIT)).astype(np.int64)
        wait_v = (packed >> np.uint32(16)).astype(np.int64)
        waited = wait_k > 0
        emit("wait K", BEGIN, (turn_begin - wait_k)[waited])
        emit("wait K", END, turn_begin[waited])
        held = turn_end > turn_begin
        emit("turn", BEGIN, turn_begin[held])
        emit("turn", END, turn_end[held])
        emit("step", MARK, turn_end)
        waited = wait_v > 0
        emit("wait V", BEGIN, turn_end[waited])
        emit("wait V", END, (turn_end + wait_v)[waited])
    tiles = kind == WIDE_TILE
    if tiles.any():
        emit("epilogue", BEGIN, base[tiles])
        emit("epilogue", END, relative(tiles, 3))
        emit("tile", MARK, relative(tiles, 3))
    phases = kind == WIDE_PHASES
    if phases.any():
        emit("softmax", BEGIN, relative(phases, 1))
        emit("softmax", END, base[phases])
    if not clocks:
        return Stream(np.zeros(0, np.uint8), np.zeros(0, np.int64), first, 0, stale + len(slots), backward)
    clock = np.concatenate(clocks)
    order = np.argsort(clock, kind="stable")
    return Stream(np.concatenate(keys)[order], clock[order], first, len(slots), stale, backward)


def pair(stream: Stream) -> Pairs:
    """Match each begin with the end that follows it among the events of the same id."""
    event = stream.key >> 2
    order = np.argsort(event, kind="stable")
    key = stream.key[order]
    # a begin (kind 0) directly followed by the end (kind 1) of the same id
    follows = (key[1:] == key[:-1] + 1) & ((key[:-1] & 3) == BEGIN)
    where = np.flatnonzero(follows)
    begin, end = order[where], order[where + 1]
    kinds = np.bincount(key & 3, minlength=4)
    unmatched = int(kinds[BEGIN] + kinds[END]) - 2 * len(where)
    return Pairs((key[where] >> 2).astype(np.uint8), begin, end, unmatched)


@dataclass(frozen=True)
class RoleTrace:
    """One role, decoded."""

    role: str
    header: RoleHeader
    stream: Stream
    pairs: Pairs

    def marks(self, event: int) -> I64:
        """Clocks of a mark event."""
        clocks: I64 = self.stream.clock[self.stream.key == (event << 2 | MARK)]
        return clocks

    def spans(self, event: int) -> tuple[I64, I64]:
        """Begin and end clocks of a span event."""
        begin, end = self.pairs.of(event)
        return self.stream.clock[begin], self.stream.clock[end]


def decode_role(recorded: Recorded, layout: BufferLayout, role: int, generation: int) -> RoleTrace | None:
    """Decode one role of a launch; None when nothing of this role was ever written.

    A header of another generation is stale as a whole: its slots count as stale and none is decoded. A role that has
    started and not finished (read in flight) has no count: its slots are taken while their generation fits.
    """
    header = read_header(recorded.headers[role])
    if header.state == 0:
        return None
    slots = recorded.slots[role]

    def decode(slots: U32, generation: int) -> Stream:
        return (
            decode_events(slots, generation, layout.late) if layout.stride == 8 else decode_records(slots, generation)
        )

    written = min(header.written, layout.capacity)
    if header.generation != generation:
        empty = decode(slots[:0], generation)
        stream = Stream(empty.key, empty.clock, 0, 0, max(1, written), 0)
    elif header.finished:
        stream = decode(slots[:written], generation)
    else:
        fits = (slots[:, 0] >> np.uint32(GENERATION_SHIFT)) == np.uint32(generation)
        stream = decode(slots[: int(np.argmin(fits)) if not fits.all() else len(slots)], generation)
    return RoleTrace(layout.roles[role], header, stream, pair(stream))
