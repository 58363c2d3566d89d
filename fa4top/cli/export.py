"""`fa4top export`: a session for other tools. True nanoseconds by the launches' own anchors, labels carried over."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

import click

from fa4top.analysis.export import Exported, SpanRow, TableRow, export_session
from fa4top.analysis.fold import Snapshot, fold_records
from fa4top.cli import compact, exits
from fa4top.cli.choose import fail
from fa4top.cli.report import figures, markdown, page, plain_page
from fa4top.session.reading import LogError, read_log

EPILOG = """\b
Examples:
  fa4top export SESSION --format perfetto --out run.pftrace     open at ui.perfetto.dev
  fa4top export examples/h200-live.jsonl.gz --format chrome --out run.json
  fa4top export SESSION --format csv > run.csv                  a long table: one figure a row
  fa4top export SESSION --format html --out run.html            the report of a triage, or the live numbers

\b
perfetto and parquet need: pip install 'fa4top[export]'
"""
ROOT, FIRST_TRACK = 1, 10


@click.command("export", epilog=EPILOG)
@click.argument("session", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "kind",
    required=True,
    type=click.Choice(["perfetto", "chrome", "csv", "parquet", "md", "html"]),
    help="What to write.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file; default: stdout.")
def command(session: Path, kind: str, out: Path | None) -> None:
    """Write a recorded session for other tools.

    Spans are those of traced launches (a few steps each), a track a role and kind of span, because asynchronous work
    overlaps; counters are clean kernel times, periods, clock and power. SIMULATED and traced stand in the names.
    """
    try:
        records = list(read_log(session))
    except LogError as error:
        fail(str(error), exits.USAGE)
    found = export_session(records)
    if kind in ("perfetto", "chrome") and not found.spans and not found.counters:
        fail(f"{session} holds neither timelines nor bursts", exits.USAGE)
    if found.without_clock:
        click.echo(f"{found.without_clock} timelines left out: their launches do not know the SM clock", err=True)
    writers: dict[str, Callable[[], bytes]] = {
        "perfetto": lambda: perfetto(found),
        "chrome": lambda: chrome(found),
        "csv": lambda: table_csv(found),
        "parquet": lambda: parquet(found),
        "md": lambda: _markdown(fold_records(records), str(session)),
        "html": lambda: _html(fold_records(records), str(session)),
    }
    try:
        data = writers[kind]()
    except ImportError as error:
        fail(f"{error}; pip install 'fa4top[export]'", exits.USAGE)
    try:
        if out is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            out.write_bytes(data)
            click.echo(f"{out}: {len(data)} bytes, {len(found.spans)} spans, {len(found.rows)} figures", err=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        fail(f"{out}: {error.strerror}", exits.FAULT)


def _label(found: Exported) -> str:
    return "SIMULATED " if found.simulated else ""


def perfetto(found: Exported) -> bytes:
    """Perfetto's native format: a track for each role and kind of span, so that nothing is forced into a stack."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    label = _label(found)

    def packet() -> object:
        made = trace.packet.add()
        made.trusted_packet_sequence_id = 1
        return made

    root = packet().track_descriptor  # type: ignore[attr-defined]
    root.uuid, root.name = ROOT, f"{label}fa4top, traced launches"
    roles: dict[str, int] = {}
    tracks: dict[tuple[str, str], int] = {}

    def track(parent: int, name: str, unit: str = "") -> int:
        uuid = FIRST_TRACK + len(roles) + len(tracks)
        made = packet().track_descriptor  # type: ignore[attr-defined]
        made.uuid, made.parent_uuid, made.name = uuid, parent, name
        if unit:
            made.counter.unit_name = unit
        return uuid

    def annotate(event: object, values: dict[str, str | int]) -> None:
        for name, value in values.items():
            note = event.debug_annotations.add()  # type: ignore[attr-defined]
            note.name = name
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = value

    about = packet()
    about.timestamp = 0  # type: ignore[attr-defined]
    event = about.track_event  # type: ignore[attr-defined]
    event.type, event.track_uuid, event.name = TrackEvent.Type.TYPE_INSTANT, ROOT, f"{label}session"
    annotate(event, dict(found.about))
    for span in found.spans:
        if span.role not in roles:
            roles[span.role] = track(ROOT, f"{label}{span.role} (traced)")
        key = (span.role, span.name)
        if key not in tracks:
            tracks[key] = track(roles[span.role], span.name)
        for kind, time_ns in (
            (TrackEvent.Type.TYPE_SLICE_BEGIN, span.begin_ns),
            (TrackEvent.Type.TYPE_SLICE_END, span.begin_ns + span.duration_ns),
        ):
            made = packet()
            made.timestamp = round(time_ns)  # type: ignore[attr-defined]
            event = made.track_event  # type: ignore[attr-defined]
            event.type, event.track_uuid = kind, tracks[key]
            if kind == TrackEvent.Type.TYPE_SLICE_BEGIN:
                event.name = span.name
                annotate(event, {"launch": span.launch, "CTA": span.cta, "SM": span.sm})
    for counter in found.counters:
        key = ("", counter.name)
        if key not in tracks:
            tracks[key] = track(ROOT, f"{label}{counter.name}", counter.unit)
        made = packet()
        made.timestamp = round(counter.time_ns)  # type: ignore[attr-defined]
        event = made.track_event  # type: ignore[attr-defined]
        event.type, event.track_uuid = TrackEvent.Type.TYPE_COUNTER, tracks[key]
        event.double_counter_value = counter.value
    data: bytes = trace.SerializeToString()
    return data


def chrome(found: Exported) -> bytes:
    """Chrome's JSON: microseconds; a thread for each role and kind of span."""
    label = _label(found)
    events: list[dict[str, object]] = []
    threads: dict[tuple[str, str], int] = {}

    def thread(span: SpanRow) -> int:
        key = (span.role, span.name)
        if key not in threads:
            threads[key] = len(threads) + 1
            name = {"name": f"{label}{span.role} (traced): {span.name}"}
            events.append({"ph": "M", "pid": 1, "tid": threads[key], "name": "thread_name", "args": name})
        return threads[key]

    for span in found.spans:
        events.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": thread(span),
                "name": span.name,
                "ts": span.begin_ns / 1000.0,
                "dur": span.duration_ns / 1000.0,
                "args": {"launch": span.launch, "CTA": span.cta, "SM": span.sm},
            }
        )
    for counter in found.counters:
        name = f"{label}{counter.name}"
        events.append(
            {"ph": "C", "pid": 1, "name": name, "ts": counter.time_ns / 1000.0, "args": {counter.unit: counter.value}}
        )
    return json.dumps({"traceEvents": events, "otherData": {"simulated": found.simulated, **found.about}}).encode()


def table_csv(found: Exported) -> bytes:
    """The long table."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [each.name for each in fields(TableRow)])
    writer.writeheader()
    writer.writerows(asdict(row) for row in found.rows)
    return text.getvalue().encode()


def parquet(found: Exported) -> bytes:
    """The long table; facts about the session are in the file's metadata."""
    import pyarrow
    from pyarrow import parquet as writer

    table = pyarrow.Table.from_pylist([asdict(row) for row in found.rows])
    known = {**found.about, "simulated": str(found.simulated)}
    table = table.replace_schema_metadata({key.encode(): value.encode() for key, value in known.items()})
    made = io.BytesIO()
    writer.write_table(table, made)
    return made.getvalue()


def _markdown(snapshot: Snapshot, session: str) -> bytes:
    if snapshot.triage is not None:
        return markdown(snapshot, session, ()).encode()
    return f"# {compact.title(snapshot)}\n\n```\n{compact.render(snapshot)}\n```\n".encode()


def _html(snapshot: Snapshot, session: str) -> bytes:
    if snapshot.triage is not None:
        return page(snapshot, session, figures(snapshot)).encode()
    return plain_page(compact.title(snapshot), compact.render(snapshot)).encode()
