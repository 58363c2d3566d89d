"""The log's format: round trips, tolerance, refusal."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4top.records import KINDS, SCHEMA_MAJOR, SCHEMA_MINOR, Body, Header, Notice, stamp, to_line
from fa4top.session.reading import LogError, Skipped, decode_line, read_log


def example(kind: Any) -> Any:
    """A value of a type, by its annotations."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{f.name: example(hints[f.name]) for f in dataclasses.fields(kind)})
    if kind is Any:
        return "anything"
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return [example(arguments[0])]
    if origin is tuple:
        return tuple(example(argument) for argument in arguments)
    if origin is dict:
        return {"wait P": example(arguments[1])}
    if type(None) in arguments:
        return example(next(a for a in arguments if a is not type(None)))
    return {str: "text", int: 0, float: 2.5, bool: True}[kind]


def header(major: int = SCHEMA_MAJOR, minor: int = SCHEMA_MINOR) -> bytes:
    body = Header(
        session_id="id",
        schema_major=major,
        schema_minor=minor,
        fa4top_version="9.9",
        argv=["fa4top"],
        python="3.12",
        platform="Linux aarch64",
        simulated=False,
    )
    return to_line(stamp(body, "engine", 1))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_survives_a_round_trip(kind: str) -> None:
    body: Body = example(KINDS[kind])
    skipped = Skipped()
    record = decode_line(to_line(stamp(body, "w1", 3)), skipped)
    assert record is not None and record.body == body and record.source == "w1" and record.seq == 3
    assert record.wall_ns > 10**18 and record.mono_ns > 0
    assert skipped == Skipped()


def test_all_kinds_are_registered() -> None:
    assert set(KINDS) == {
        "header",
        "plan",
        "worker",
        "check",
        "clean",
        "trace",
        "gpu",
        "fault",
        "hang",
        "notice",
        "output",
        "engine",
        "bench",
        "sweep",
        "sweep_point",
        "sweep_block",
        "ab",
        "ab_block",
        "ab_arm",
        "ab_pair",
        "check_run",
        "repeats",
        "sass",
        "triage",
        "triage_step",
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_become_null(value: float) -> None:
    body = dataclasses.replace(example(KINDS["gpu"]), power_w=value)
    line = to_line(stamp(body, "engine"))
    assert json.loads(line)["body"]["power_w"] is None


def test_unknown_kinds_and_fields_are_skipped_with_a_notice(tmp_path: Path) -> None:
    odd = json.loads(to_line(stamp(Notice("info", "hello"), "engine", 2)))
    odd["kind"] = "hologram"
    extra = json.loads(to_line(stamp(Notice("info", "kept"), "engine", 3)))
    extra["body"]["colour"] = "blue"
    path = tmp_path / "log.jsonl"
    path.write_bytes(
        header(minor=SCHEMA_MINOR + 1) + json.dumps(odd).encode() + b"\n" + json.dumps(extra).encode() + b"\n"
    )
    skipped = Skipped()
    records = list(read_log(path, skipped))
    assert [r.kind for r in records] == ["header", "notice"] and skipped.unknown == 1
    sentence = skipped.sentence()
    assert sentence is not None and "newer fa4top" in sentence and "unknown kinds" in sentence


@pytest.mark.parametrize("changed", [False, True])
def test_a_newer_major_version_is_refused_with_a_sentence(tmp_path: Path, changed: bool) -> None:
    path = tmp_path / "log.jsonl"
    line = header(major=SCHEMA_MAJOR + 1)
    path.write_bytes(line.replace(b'"session_id"', b'"who"') if changed else line)
    with pytest.raises(LogError, match="upgrade fa4top"):
        list(read_log(path))


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_tolerated(tmp_path: Path, cut: int) -> None:
    whole = header() + to_line(stamp(Notice("info", "one"), "engine", 2))
    torn = to_line(stamp(Notice("info", "two"), "engine", 3))[:-cut]
    path = tmp_path / "log.jsonl"
    path.write_bytes(whole + torn)
    texts = [r.body.text for r in read_log(path) if isinstance(r.body, Notice)]
    assert texts == (["one", "two"] if cut == 1 else ["one"])  # only the newline is missing: nothing is lost


def test_a_gzip_file_cut_short_gives_what_it_holds(tmp_path: Path) -> None:
    lines = header() + b"".join(to_line(stamp(Notice("info", str(i)), "engine", i)) for i in range(5000))
    path = tmp_path / "log.jsonl.gz"
    data = gzip.compress(lines)
    path.write_bytes(data[: len(data) // 2])
    skipped = Skipped()
    assert len(list(read_log(path, skipped))) > 100 and skipped.broken == 1


@pytest.mark.parametrize("content", [b"", b"not json\n", b'{"kind":"notice"}\n', b"\x00\xff\n"])
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(LogError, match="not a session log"):
        list(read_log(path))


def test_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="nowhere"):
        list(read_log(tmp_path / "nowhere"))


NUMBERS = st.floats(-1e300, 1e300)


def with_numbers(value: Any, numbers: Iterator[float]) -> Any:
    """A record with other floats in all places that take one."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: with_numbers(getattr(value, f.name), numbers) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    if isinstance(value, list):
        return [with_numbers(each, numbers) for each in value]
    if isinstance(value, dict):
        return {key: with_numbers(each, numbers) for key, each in value.items()}
    return next(numbers) if isinstance(value, float) else value


@pytest.mark.parametrize("kind", KINDS)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=8))
def test_no_figure_is_lost_on_the_pipe(kind: str, numbers: list[float]) -> None:
    body: Body = with_numbers(example(KINDS[kind]), itertools.cycle(numbers))
    record = decode_line(to_line(stamp(body, "w1", 3)), Skipped())
    assert record is not None
    sent, came = list(figures(body)), list(figures(record.body))
    assert len(sent) == len(came) and np.allclose(sent, came, rtol=1e-9, atol=0.0)
    assert with_numbers(record.body, itertools.repeat(0.5)) == with_numbers(body, itertools.repeat(0.5))


def figures(value: Any) -> Iterator[float]:
    """All floats of a record, in order."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for each in dataclasses.fields(value):
            yield from figures(getattr(value, each.name))
    elif isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from figures(each)
    elif isinstance(value, float):
        yield value
