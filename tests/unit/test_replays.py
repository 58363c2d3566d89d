"""Recordings: a jump to a moment shows what playing to that moment shows."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from fa4top.analysis.view.fold import Fold
from fa4top.analysis.view.results import results
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.records import KINDS, Envelope
from fa4top.session.playing import Player
from fa4top.session.reading import read_log
from tests.conftest import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.jsonl.gz"))
SHARES = (0.0, 0.1, 0.35, 0.5, 0.8, 0.97, 1.0)


def played(records: list[Envelope], until_ns: int) -> Snapshot:
    fold = Fold()
    for record in records:
        if record.mono_ns > until_ns:
            break
        fold.feed(record)
    return fold.snapshot()


def differences(one: Snapshot, other: Snapshot) -> list[str]:
    """Names of the facts that differ."""
    return [each.name for each in fields(Snapshot) if getattr(one, each.name) != getattr(other, each.name)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_jump_shows_what_playing_shows(path: Path) -> None:
    records = list(read_log(path))
    player = Player(path)
    player.wait_for_index()
    try:
        for share in SHARES:
            at_s = share * player.duration_s
            until_ns = player.start_ns + int(at_s * 1e9)
            jumped, whole = player.seek(at_s).fold().snapshot(), played(records, until_ns)
            assert differences(jumped, whole) == [], f"{share:.0%}"
            assert results(jumped) == results(whole)
        back = player.seek(0.3 * player.duration_s).fold().snapshot()
        assert differences(back, played(records, player.start_ns + int(0.3 * player.duration_s * 1e9))) == []
    finally:
        player.close()


def test_what_sets_the_scene_is_all_but_the_many() -> None:
    """A new kind sets the scene unless its class says otherwise."""
    many = {kind for kind, body in KINDS.items() if not body.scene}
    assert many == {"clean", "trace", "gpu", "sweep_block"}
