"""Text graphics without an app."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4top.records import Span, TimelineRow
from fa4top.ui.glyphs import ASCII, UNICODE, bar, blocks, buckets, fit, frame, length, nice_range, number
from fa4top.ui.widgets.lines import changed
from fa4top.ui.widgets.timeline import paint


def test_blocks_fill_from_below() -> None:
    assert blocks([0.0, 0.5, 1.0, None], 2, 0.0, 1.0) == ["  █ ", "▁██ "]
    assert blocks([1.0], 1, 0.0, 1.0, ASCII.steps) == ["#"]


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=40), st.integers(1, 6))
def test_blocks_have_the_asked_size(values: list[float | None], height: int) -> None:
    rows = blocks(values, height, 0.0, 100.0)
    assert len(rows) == height and all(len(row) == len(values) for row in rows)


def test_buckets_are_anchored_in_time() -> None:
    points = [(t / 10, float(t)) for t in range(100)]
    first = buckets(points, 9.95, 10.0, 10)
    second = buckets(points, 10.4, 10.0, 10)  # half a bucket later: the same columns, one further left
    assert first[1:] == second[:-1] and second[-1] is None


@given(st.floats(1, 1e6), st.floats(0, 1e4))
def test_a_nice_range_holds_its_values(low: float, span: float) -> None:
    bottom, top = nice_range(low, low + span)
    assert bottom <= low and top >= low + span and top > bottom


def test_bars_never_hide_a_small_share() -> None:
    assert bar(0.01, 10, "#") == "#" and bar(0.0, 10, "#") == "" and bar(1.2, 10, "#") == "#" * 10


@given(st.lists(st.tuples(st.text("ab ", max_size=9), st.just("dim")), max_size=5), st.integers(0, 30))
def test_fit_gives_the_exact_width(row: list[tuple[str, str]], width: int) -> None:
    assert length(fit(row, width)) == width


@pytest.mark.parametrize("g", [UNICODE, ASCII])
@pytest.mark.parametrize(("width", "height"), [(20, 4), (80, 10), (12, 2)])
def test_frames_have_the_exact_size(g: object, width: int, height: int) -> None:
    rows = frame([[("x" * 200, "text")]], width, height, "a title", g, "12 345 cycles", "a foot")  # type: ignore[arg-type]
    assert len(rows) == height and {length(row) for row in rows} == {width}


def test_changed_finds_the_smallest_part() -> None:
    before, after = [("abc", "x"), ("def", "y")], [("abc", "x"), ("dXf", "y")]
    assert changed(before, after) == (4, 5)
    assert changed([("aa", "x")], [("aa", "y")]) == (0, 2)


def test_numbers_are_separated_and_unknown_ones_say_so() -> None:
    assert number(12345.6) == "12 346" and number(None) == "?" and number(float("nan")) == "?"


def test_waits_are_thin_and_work_is_solid() -> None:
    row = TimelineRow("mma0", [Span("step", 0, 800), Span("turn", 800, 1000, True), Span("wait K", 100, 110, True)])
    waits = {"turn": "wait-a", "wait K": "wait-b"}
    cells = paint(row, 1000, 50, UNICODE, "role-a", waits)
    assert sum(len(text) for text, _ in cells) == 50
    assert cells[-1] == ("───turn───", "wait-a") and cells[0][1] == "on-role-a"
    assert paint(TimelineRow("mma", []), 1000, 10, UNICODE, "role-a", {}) == [(" " * 10, "dim")]
