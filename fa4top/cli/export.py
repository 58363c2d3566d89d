"""`fa4top export`: a session for other tools. True nanoseconds by the launches' own anchors, labels carried over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from fa4top.analysis.view.fold import fold_records
from fa4top.analysis.view.results import results
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.spans import export_session
from fa4top.cli.fail import fail
from fa4top.cli.formats import html, markdown
from fa4top.cli.formats.chrome import chrome
from fa4top.cli.formats.figures import figures
from fa4top.cli.formats.perfetto import perfetto
from fa4top.cli.formats.report import in_order, report_title
from fa4top.cli.formats.table import parquet, table_csv
from fa4top.orders import exits
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
        "md": lambda: _markdown(fold_records(records)),
        "html": lambda: _html(fold_records(records)),
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


def _markdown(snapshot: Snapshot) -> bytes:
    return markdown.document(in_order(results(snapshot)), report_title(snapshot)).encode()


def _html(snapshot: Snapshot) -> bytes:
    return html.page(in_order(results(snapshot)), report_title(snapshot), figures(snapshot)).encode()
