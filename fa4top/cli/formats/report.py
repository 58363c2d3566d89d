"""A session's report: Markdown, one HTML file, curves, and the session itself to replay."""

from __future__ import annotations

import gzip
from pathlib import Path

from fa4top import __version__
from fa4top.analysis.view.results import Result, results
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.cli.formats import html, markdown
from fa4top.cli.formats.figures import figures
from fa4top.records import to_line
from fa4top.session.reading import read_log
from fa4top.session.sharing import shareable

FIRST = ("triage", "ab", "sweep", "check", "bench", "sass")  # what a session was for, the most telling first


def in_order(found: list[Result]) -> list[Result]:
    """The session's purpose first, the live numbers last."""
    return sorted(found, key=lambda result: FIRST.index(result.kind) if result.kind in FIRST else len(FIRST))


def report_title(snapshot: Snapshot) -> str:
    """What the report is of."""
    kind = in_order(results(snapshot))[0].kind
    return f"fa4top {__version__}: {kind}{snapshot.suffix}"


def write_report(snapshot: Snapshot, folder: Path, session: str) -> list[Path]:
    """report.md and report.html in a folder; returns their paths.

    Raises:
        OSError: they can not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    curves, found, title = figures(snapshot), in_order(results(snapshot)), report_title(snapshot)
    made = [folder / "report.md", folder / "report.html"]
    for name, svg in curves:
        (folder / f"{name}.svg").write_text(svg)
        made.append(folder / f"{name}.svg")
    made[0].write_text(markdown.document(found, title, [name for name, _ in curves], bool(session)))
    made[1].write_text(html.page(found, title, curves, bool(session)))
    return made


def write_session(session: Path, folder: Path) -> Path:
    """The session itself beside its report, without paths and UUIDs: a colleague can replay it.

    Raises:
        OSError: it can not be written.
    """
    path = folder / "session.jsonl.gz"
    with gzip.open(path, "wb") as file:
        for record in read_log(session):
            file.write(to_line(shareable(record)))
    return path
