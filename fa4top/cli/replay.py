"""`fa4top replay FILE`: a recording in the same screens, or as text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from fa4top.cli.fail import config_or_fail, fail
from fa4top.cli.options import view_options
from fa4top.orders import exits
from fa4top.session.reading import LogError, Skipped, read_log


@click.command("replay", epilog="Examples:  fa4top replay run.jsonl;  fa4top replay --text examples/h200-fa4.jsonl.gz")
@click.argument("file", type=click.Path(path_type=Path))
@view_options
@click.option("--speed", default=1.0, help="Pace; 1 is the recording's own.")
@click.option("--at", default=0.0, help="Begin this many seconds into the recording.")
@click.option("--text", "as_text", is_flag=True, help="Print the numbers at the end (or --at) instead of screens.")
@click.option("--json", "as_json", is_flag=True, help="Print the records, validated, and nothing else.")
@click.option("--share", is_flag=True, help="With --json: without paths, GPU UUIDs and addresses, to show to others.")
def command(file: Path, speed: float, at: float, as_text: bool, as_json: bool, share: bool, **view: Any) -> None:
    """Play FILE: a session folder, its log, or a gzipped log.

    Space holds, arrows jump, n goes on to the next numbers, comma and full stop set the pace.
    """
    if speed <= 0:
        fail("--speed must be above 0", exits.USAGE)
    try:
        if as_json or as_text or share:
            _print(file, at, as_json or share, share)
            return
        from fa4top.session.playing import Player
        from fa4top.ui.feed import ReplaySource

        source = ReplaySource(Player(file, speed))
        if at > 0:
            source.jump_to(at)
    except LogError as error:
        fail(str(error), exits.USAGE)
    from fa4top.cli.screens import show

    show(config_or_fail(), view["theme"], view["ascii_only"], view["mouse"], view["hz"], source=source, recorded=False)


def _print(file: Path, at: float, as_json: bool, share: bool) -> None:
    from fa4top.analysis.view.fold import Fold
    from fa4top.cli.text.results import text_of
    from fa4top.records import to_line
    from fa4top.session.sharing import shareable

    skipped, fold, start = Skipped(), Fold(), 0
    for record in read_log(file, skipped):
        start = start or record.mono_ns
        if at and record.mono_ns > start + at * 1e9:
            break
        if as_json:
            sys.stdout.buffer.write(to_line(shareable(record) if share else record))
        else:
            fold.feed(record)
    if not as_json:
        click.echo(f"REPLAY of {file.name}\n" + text_of(fold.snapshot()))
    if sentence := skipped.sentence():
        click.echo(f"fa4top: {sentence}", err=True)
