"""What leaves the house: no names of places, all numbers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fa4top.records import BenchResult, Notice, Output, TraceSample, stamp
from fa4top.session.reading import Skipped, read_log
from fa4top.session.sharing import shareable, shareable_text
from tests.conftest import ROOT, run_cli

EXAMPLES = sorted((ROOT / "examples").glob("*.jsonl.gz"))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("see /home/me/fa4/.venv/bin/python: no", "see …/python: no"),
        ("~/fa4/site/dsl.py:2300: UserWarning", "…/dsl.py:2300: UserWarning"),
        ("1/2 against 3/4, 12 TFLOP/s", "1/2 against 3/4, 12 TFLOP/s"),
        ("b1,s8192 and/or fp8", "b1,s8192 and/or fp8"),
        ("from 10.1.2.3 port", "from … port"),
    ],
)
def test_places_disappear(text: str, clean: str) -> None:
    assert shareable_text(text) == clean


def test_gpus_stay_apart_without_their_uuids() -> None:
    one = shareable_text("GPU-2267db47-920b-a08c-d220-798ecf5fe090")
    two = shareable_text("GPU-3267db47-920b-a08c-d220-798ecf5fe090")
    assert one.startswith("GPU-") and one != two and "2267" not in one
    assert shareable_text("SIM-gb300") == "SIM-gb300"


def test_a_record_keeps_all_but_places() -> None:
    record = stamp(Output("w1", "/opt/x/y.py failed"), "w1", 4)
    assert shareable(record).body == Output("w1", "…/y.py failed") and shareable(record).seq == 4
    plain = stamp(Notice("info", "nothing here"), "engine", 5)
    assert shareable(plain) == plain


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_are_whole_small_and_name_no_place(path: Path) -> None:
    assert path.stat().st_size < 300_000
    skipped = Skipped()
    records = list(read_log(path, skipped))
    assert skipped == Skipped() and any(isinstance(r.body, (TraceSample, BenchResult)) for r in records)
    text = gzip.decompress(path.read_bytes()).decode()
    assert shareable_text(text) == text
    for sample in (r.body for r in records if isinstance(r.body, TraceSample)):
        assert (sample.losses.dropped, sample.losses.unmatched, sample.losses.stale) == (0, 0, 0)
    done = run_cli("replay", "--text", str(path))
    assert done.returncode == 0 and "REPLAY" in done.stdout
    assert "TFLOP/s" in done.stdout or "instructions/clk" in done.stdout


def test_there_is_a_recording_from_a_real_gpu() -> None:
    assert [path for path in EXAMPLES if "h200" in path.name]
