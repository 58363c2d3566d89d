"""Following a growing log, and playing a finished one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fa4top.records import SCHEMA_MAJOR, SCHEMA_MINOR, Body, Envelope, Header, Losses, Notice, TraceSample, to_line
from fa4top.session.following import Follower
from fa4top.session.playing import Player

SECOND = 1_000_000_000


def line(number: int, at_s: float, body: Body | None = None) -> bytes:
    body = body or Notice("info", str(number))
    return to_line(
        Envelope(kind=body.kind, seq=number, wall_ns=0, mono_ns=int((100 + at_s) * SECOND), source="engine", body=body)
    )


def write_log(path: Path, seconds: int = 10) -> Path:
    header = Header(
        session_id="id",
        schema_major=SCHEMA_MAJOR,
        schema_minor=SCHEMA_MINOR,
        fa4top_version="1",
        argv=[],
        python="3",
        platform="x",
        simulated=False,
    )
    path.write_bytes(line(0, 0, header) + b"".join(line(n + 1, n / 2) for n in range(2 * seconds + 1)))
    return path


def test_a_follower_waits_for_the_file_and_for_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    follower = Follower(path)
    assert follower.poll() == []
    whole = line(1, 0)
    with path.open("ab") as file:
        file.write(whole[:20])
        file.flush()
        assert follower.poll() == []
        file.write(whole[20:] + line(2, 0)[:10])
        file.flush()
        assert [r.seq for r in follower.poll()] == [1]
        file.write(line(2, 0)[10:])
        file.flush()
        assert [r.seq for r in follower.poll()] == [2]
    assert follower.skipped.sentence() is None


class Clock:
    """A monotonic clock that tests move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr("fa4top.session.playing.time.monotonic_ns", lambda: self.now)

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


def test_a_player_keeps_the_recordings_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    player = Player(write_log(tmp_path / "log.jsonl"))
    assert player.duration_s == 10
    assert [r.seq for r in player.poll()] == [0, 1]
    clock.sleep(1.0)
    assert [r.seq for r in player.poll()] == [2, 3]
    player.set_speed(4.0)
    clock.sleep(1.0)
    assert [r.seq for r in player.poll()] == list(range(4, 12))
    player.set_paused(True)
    clock.sleep(50)
    assert player.poll() == [] and player.position_s == pytest.approx(5.0)
    player.set_paused(False)
    clock.sleep(5)
    assert [r.seq for r in player.poll()][-1] == 21 and player.finished


def test_seeking_returns_the_scene_and_the_last_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    player = Player(write_log(tmp_path / "log.jsonl"))
    monkeypatch.setattr("fa4top.session.playing.HISTORY_S", 1.0)
    player.wait_for_index()
    jump = player.seek(6.0)
    assert [r.seq for r in jump.records] == [11, 12, 13] and jump.scene[0].seq == 0
    assert max(r.seq for r in jump.scene) == 10, "notices set the scene of the log screen"
    clock.sleep(0.5)
    assert [r.seq for r in player.poll()] == [14]
    start = player.seek(-3.0)
    assert [r.seq for r in [*start.scene, *start.records]] == [0, 1]
    end = player.seek(1e9)
    assert end.records[-1].seq == 21 and player.finished


def test_the_next_numbers_are_found_past_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    sample = TraceSample(
        worker="t",
        plan_id=1,
        launch=1,
        generation=1,
        probe_set="coarse",
        detail=False,
        time_us=1.0,
        cta=0,
        sm=0,
        sm_clock_mhz=None,
        cta_us=None,
        losses=Losses(recorded=0, dropped=0, unmatched=0, stale=0),
        roles=[],
    )
    header = Header(
        session_id="id",
        schema_major=SCHEMA_MAJOR,
        schema_minor=SCHEMA_MINOR,
        fa4top_version="1",
        argv=[],
        python="3",
        platform="x",
        simulated=False,
    )
    times = [5.0, 5.5, 6.0, 20.0, 20.5]  # numbers; 14 s of compiling between
    lines = [line(0, 0, header), *(line(n, n) for n in range(1, 5)), *(line(9, at, sample) for at in times)]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(lines))
    player = Player(path)
    player.wait_for_index()
    assert player.next_numbers_s() == 5.0
    player.seek(5.0)
    assert player.next_numbers_s() == 20.0
    assert [r.mono_ns / SECOND - 100 for r in player.seek(20.0).records][-1] == 20.0
    assert player.next_numbers_s() is None


def test_a_session_folder_plays_too(tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl")
    player = Player(tmp_path)
    assert player.duration_s == 10
    player.close()
