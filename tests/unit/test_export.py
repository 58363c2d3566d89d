"""Exports read back with the formats' own libraries."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from fa4top.analysis.view.spans import export_session
from fa4top.cli.export import command
from fa4top.cli.formats.chrome import chrome
from fa4top.cli.formats.perfetto import perfetto
from fa4top.cli.formats.table import parquet, table_csv
from fa4top.records import Envelope, TraceSample
from fa4top.session.reading import read_log
from tests.conftest import ROOT

LIVE = ROOT / "examples" / "h200-live.jsonl.gz"


def records() -> list[Envelope]:
    return list(read_log(LIVE))


def test_perfetto_reads_back_with_true_nanoseconds_and_balanced_tracks() -> None:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    found = export_session(records())
    trace = Trace()
    trace.ParseFromString(perfetto(found))
    names = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    open_at: dict[int, int] = {}
    lengths: dict[str, list[int]] = defaultdict(list)
    counted = 0
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in names
        if event.type == TrackEvent.Type.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_at  # nothing is forced into a stack
            open_at[event.track_uuid] = packet.timestamp
        elif event.type == TrackEvent.Type.TYPE_SLICE_END:
            lengths[names[event.track_uuid].name].append(packet.timestamp - open_at.pop(event.track_uuid))
        elif event.type == TrackEvent.Type.TYPE_COUNTER:
            counted += 1
    assert not open_at and sum(map(len, lengths.values())) == len(found.spans) > 100 and counted == len(found.counters)
    sample = next(r.body for r in records() if isinstance(r.body, TraceSample) and r.body.timeline)
    assert sample.timeline is not None and sample.sm_clock_mhz
    row = sample.timeline.rows[0]
    span = next(span for span in row.spans if span.end_cycles - span.begin_cycles > 200)
    true_ns = (span.end_cycles - span.begin_cycles) / sample.sm_clock_mhz * 1000.0
    assert any(abs(length - true_ns) <= 1 for length in lengths[span.name])
    parents = {names[d.parent_uuid].name for d in names.values() if d.parent_uuid in names and d.name in lengths}
    assert parents and all("(traced)" in parent for parent in parents)


def test_metadata_has_plan_knobs_and_checks() -> None:
    about = export_session(records()).about
    assert "fa4 on NVIDIA H200 (sm_90a)" in about["plan 1"] and "knobs of plan 1" in about
    assert any(key.startswith("check of") and value.startswith("passed") for key, value in about.items())


def simulated() -> list[Envelope]:
    from dataclasses import replace

    return [replace(record, simulated=True) for record in records()]


def test_simulated_data_say_so_in_every_format() -> None:
    found = export_session(simulated())
    assert b"SIMULATED" in perfetto(found)
    data = json.loads(chrome(found))
    assert data["otherData"]["simulated"] is True
    assert all("SIMULATED" in e["name"] for e in data["traceEvents"] if e["ph"] == "C")
    rows = list(csv.DictReader(io.StringIO(table_csv(found).decode())))
    assert rows and all(row["simulated"] == "True" for row in rows)
    assert b"SIMULATED" not in perfetto(export_session(records()))


def test_chrome_and_the_tables_hold_the_same_figures(tmp_path: Path) -> None:
    import pyarrow.parquet

    found = export_session(records())
    events = json.loads(chrome(found))["traceEvents"]
    kinds = Counter(event["ph"] for event in events)
    assert kinds["X"] == len(found.spans) and kinds["C"] == len(found.counters)
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    rows = list(csv.DictReader(io.StringIO(table_csv(found).decode())))
    (tmp_path / "x.parquet").write_bytes(parquet(found))
    table = pyarrow.parquet.read_table(tmp_path / "x.parquet")
    assert table.num_rows == len(rows) == len(found.rows)
    assert [float(row["value"]) for row in rows] == table["value"].to_pylist()
    assert table.schema.metadata[b"simulated"] == b"False" and {row["label"] for row in rows} >= {"clean", "traced"}


@pytest.mark.parametrize("kind", ["perfetto", "chrome", "csv", "parquet", "md", "html"])
def test_the_command_writes_every_format(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "made"
    done = CliRunner().invoke(command, [str(LIVE), "--format", kind, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert out.stat().st_size > 500


def test_what_can_not_be_exported_or_written_is_said(tmp_path: Path) -> None:
    empty = tmp_path / "log.jsonl"
    empty.write_bytes(gzip.decompress(LIVE.read_bytes()).splitlines(keepends=True)[0])
    done = CliRunner().invoke(command, [str(empty), "--format", "chrome"])
    assert done.exit_code == 2 and "neither timelines nor bursts" in done.output
    done = CliRunner().invoke(command, [str(LIVE), "--format", "csv", "--out", str(tmp_path / "no" / "such" / "x")])
    assert done.exit_code == 4 and "No such file" in done.output
