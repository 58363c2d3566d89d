"""The decoder: right counts on broken buffers, agreement with a slow decoder, never an exception."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4top.analysis.trace.decode import decode_events, pair, read_header, unwrap
from fa4top.analysis.trace.events import WIDE_STEP, WIDE_TILE, event_id
from fa4top.analysis.trace.layout import (
    BEGIN,
    END,
    GENERATION_SHIFT,
    MARK,
    MAX_GENERATION,
    STATE_STARTED,
    WIDE,
    BufferLayout,
    next_generation,
)
from fa4top.targets.fa4.family import SM90, SM100
from fa4top.targets.sim.trace import LaunchFacts, RoleLog, write_buffer
from tests.traces import analysed, make_tag, role_of

LAYOUT = BufferLayout(roles=("mma", "softmax0"), capacity=64, stride=8)
WIDE_LAYOUT = BufferLayout(roles=("mma0", "mma1"), capacity=64, stride=16)


def slots(events: list[tuple[int, int, int]], generation: int = 5) -> npt.NDArray[np.uint32]:
    """(event, kind, clock) to slots."""
    return np.array([(make_tag(generation, e, k), c & 0xFFFFFFFF) for e, k, c in events], dtype=np.uint32).reshape(
        -1, 2
    )


def slow_decode(rows: npt.NDArray[np.uint32], generation: int) -> tuple[list[tuple[int, int, int]], int, int]:
    """One event at a time: (spans, unmatched, stale)."""
    open_at: dict[int, int] = {}
    spans, unmatched, stale = [], 0, 0
    last, total = None, 0
    for tag, clock in rows.tolist():
        if tag >> GENERATION_SHIFT != generation:
            stale += 1
            continue
        if last is not None:
            delta = (clock - last) & 0xFFFFFFFF
            total += delta - (1 << 32) if delta >= 1 << 31 else delta
        last = clock
        event, kind = tag >> 2 & 63, tag & 3
        if kind == BEGIN:
            unmatched += event in open_at
            open_at[event] = total
        elif kind == END:
            if event in open_at:
                spans.append((event, open_at.pop(event), total))
            else:
                unmatched += 1
        else:
            unmatched += open_at.pop(event, None) is not None  # something else of this id lies between
    return sorted(spans), unmatched + len(open_at), stale


EVENTS = st.tuples(st.integers(0, 5), st.sampled_from([BEGIN, END, MARK]), st.integers(0, 2**32 - 1))


@given(st.lists(EVENTS, max_size=60), st.sets(st.integers(0, 59)))
def test_agrees_with_the_slow_decoder(events: list[tuple[int, int, int]], stale_at: set[int]) -> None:
    rows = slots(events)
    for index in stale_at & set(range(len(events))):
        rows[index, 0] = make_tag(4, 1, BEGIN)
    stream = decode_events(rows, 5)
    pairs = pair(stream)
    spans = sorted(
        zip(pairs.event.tolist(), stream.clock[pairs.begin].tolist(), stream.clock[pairs.end].tolist(), strict=True)
    )
    expected, unmatched, stale = slow_decode(rows, 5)
    assert (spans, pairs.unmatched, stream.stale) == (expected, unmatched, stale)


@given(st.binary(max_size=LAYOUT.total_bytes), st.integers(1, MAX_GENERATION))
@settings(max_examples=200)
def test_arbitrary_bytes_never_crash_it(data: bytes, generation: int) -> None:
    for layout, family in ((LAYOUT, SM100), (WIDE_LAYOUT, SM90)):
        buffer = np.zeros(layout.total_bytes, dtype=np.uint8)
        buffer[: len(data)] = np.frombuffer(data[: layout.total_bytes], dtype=np.uint8)
        result = analysed(buffer, layout, family, generation, timeline=True)
        assert min(result.losses.recorded, result.losses.dropped, result.losses.unmatched, result.losses.stale) >= 0


@given(st.lists(st.integers(0, 2**31 - 1), min_size=2, max_size=50), st.integers(0, 2**32 - 1))
def test_wraps_are_undone(deltas: list[int], start: int) -> None:
    truth = np.cumsum([0, *deltas])
    clocks = ((truth + start) & 0xFFFFFFFF).astype(np.uint32)
    got, backward = unwrap(clocks)
    assert got.tolist() == truth.tolist() and backward == 0


def test_reordered_slots_are_counted() -> None:
    rows = slots([(1, MARK, 100), (1, MARK, 300), (1, MARK, 200), (1, MARK, 400)])
    assert decode_events(rows, 5).backward == 1


def test_missing_begins_and_ends_are_counted() -> None:
    rows = slots([(6, END, 10), (6, BEGIN, 20), (6, BEGIN, 30), (6, END, 40), (7, BEGIN, 50)])
    pairs = pair(decode_events(rows, 5))
    assert pairs.unmatched == 3 and pairs.event.tolist() == [6]


def write(
    logs: dict[str, RoleLog],
    layout: BufferLayout,
    generation: int = 5,
    capacity: int | None = None,
    buffer: npt.NDArray[np.uint8] | None = None,
    clock_base: int = 0xFFFFFF00,
) -> npt.NDArray[np.uint8]:
    buffer = np.zeros(layout.total_bytes, dtype=np.uint8) if buffer is None else buffer
    facts = LaunchFacts(generation, 3, 17, clock_base, 64_000, 2000.0)
    write_buffer(buffer, layout, logs, facts, layout.capacity if capacity is None else capacity)
    return buffer


def marks(count: int) -> RoleLog:
    log = RoleLog(end_cycles=100_000.0)
    for number in range(count):
        log.event(event_id("step"), MARK, number * 100.0)
    return log


def test_overflow_is_counted_and_keeps_the_first_events() -> None:
    buffer = write({"softmax0": marks(200)}, LAYOUT)
    result = analysed(buffer, LAYOUT, SM100, 5)
    assert (result.losses.recorded, result.losses.dropped) == (64, 136)
    assert result.roles[0].period_median_cycles == 100


def test_a_stale_header_gives_no_numbers_and_counts() -> None:
    buffer = write({"mma": marks(10), "softmax0": marks(10)}, LAYOUT, generation=5)
    buffer = write({"mma": marks(10)}, LAYOUT, generation=6, buffer=buffer)
    result = analysed(buffer, LAYOUT, SM100, 6)
    assert [role.role for role in result.roles] == ["mma"] and result.losses.stale == 10


def test_slots_of_an_older_launch_are_not_decoded_in_flight() -> None:
    buffer = write({"mma": marks(40)}, LAYOUT, generation=5)
    log = marks(7)
    log.finished = False
    buffer = write({"mma": log}, LAYOUT, generation=6, buffer=buffer)
    trace = role_of(buffer, LAYOUT, 0, 6)
    assert trace is not None and trace.header.state == STATE_STARTED and trace.stream.recorded == 7


def test_anchors_give_the_clock_and_survive_short_roles() -> None:
    buffer = write({"mma": marks(10)}, LAYOUT)
    header = read_header(LAYOUT.header(buffer, 0))
    assert header.sm == 17 and header.cta == 3 and header.cycles == 100_000
    assert header.sm_clock_mhz == pytest.approx(2000.0, rel=1e-3)
    short = RoleLog(end_cycles=50.0)
    assert read_header(LAYOUT.header(write({"mma": short}, LAYOUT), 0)).sm_clock_mhz is None


def test_step_records_become_the_same_events() -> None:
    log = RoleLog(end_cycles=10_000.0)
    for number in range(4):
        start = 1000.0 * number
        packed = (30 | 50 << 16) if number == 2 else 0
        log.wide(WIDE_STEP, start, start + 20, float(packed), False)
    log.wide(WIDE_TILE, 0.0, 5000.0, 6000.0, True)
    trace = role_of(write({"mma0": log}, WIDE_LAYOUT), WIDE_LAYOUT, 0, 5)
    assert trace is not None and trace.stream.stale == 0 and trace.stream.recorded == 5
    assert np.diff(trace.marks(event_id("step"))).tolist() == [1000, 1000, 1000]
    for name, expected in (("turn", [20] * 4), ("wait K", [30]), ("wait V", [50]), ("epilogue", [1000])):
        begin, end = trace.spans(event_id(name))
        assert (end - begin).tolist() == expected, name
    assert trace.pairs.unmatched == 0


def test_a_record_of_an_unknown_layout_counts_as_stale() -> None:
    log = RoleLog(end_cycles=10.0)
    log.rows.append((63 << 2 | WIDE, 1.0, 2.0, 3.0, 0.0))
    trace = role_of(write({"mma0": log}, WIDE_LAYOUT), WIDE_LAYOUT, 0, 5)
    assert trace is not None and trace.stream.recorded == 0 and trace.stream.stale == 1


def test_tags_are_never_zero_and_refuse_what_does_not_fit() -> None:
    assert make_tag(1, 0, BEGIN) != 0
    for bad in ((0, 1, 0), (MAX_GENERATION + 1, 1, 0), (1, 64, 0), (1, 1, 4)):
        with pytest.raises(ValueError, match="out of range"):
            make_tag(*bad)


def test_generations_never_reach_zero() -> None:
    seen, generation = set(), MAX_GENERATION - 1
    for _ in range(4):
        generation = next_generation(generation)
        seen.add(generation)
    assert seen == {MAX_GENERATION, 1, 2, 3}
