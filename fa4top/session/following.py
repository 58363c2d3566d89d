"""Follow a log that is being written, and play a finished one at a chosen speed. No threads, no sleeping here."""

from __future__ import annotations

import bisect
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fa4top.records import Envelope, Header
from fa4top.session.reading import LogError, Skipped, decode_line, open_log

CHUNK_BYTES = 1 << 18


class Follower:
    """Reads what was appended since the last call. Works over NFS too: it looks, it does not wait for events."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: IO[bytes] | None = None
        self._rest = b""
        self.skipped = Skipped()

    def poll(self, limit: int = 4096) -> list[Envelope]:
        """Up to ``limit`` new complete records; [] when there are none yet, or no file yet."""
        if self._handle is None:
            try:
                self._handle = self._path.open("rb")
            except FileNotFoundError:
                return []
        records: list[Envelope] = []
        while len(records) < limit:
            data = self._handle.read(CHUNK_BYTES)
            if not data:
                break
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                if (record := decode_line(line, self.skipped)) is not None:
                    records.append(record)
        return records

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None


@dataclass(frozen=True)
class _Mark:
    """Where in the file a moment of the recording lies."""

    at_ns: int
    offset: int


# what sets the scene for any later moment, and what counts as numbers
SCENE_KINDS = frozenset(
    {"header", "plan", "worker", "check", "engine", "bench", "sweep", "sweep_point", "ab", "ab_arm"}
)
NUMBER_KINDS = frozenset({"trace", "bench", "sweep_point", "ab_block"})


class Player:
    """Plays a log by the recording's own monotonic clock: faster, slower, paused, to a moment.

    Memory is bounded: one mark per second of recording, and the lines between two calls.
    """

    def __init__(self, path: Path, speed: float = 1.0) -> None:
        self._handle = _seekable(path)
        self.skipped = Skipped()
        self._marks: list[_Mark] = []
        self.start_ns, self.end_ns = self._index()
        self.speed = speed
        self.paused = False
        self._position_ns = self.start_ns
        self._anchor = time.monotonic_ns()
        self._pending: Envelope | None = None

    def _index(self) -> tuple[int, int]:
        first = last = 0
        offset = 0
        header = False
        for line in self._handle:
            record = decode_line(line, self.skipped)
            if record is not None:
                if not header and not isinstance(record.body, Header):
                    raise LogError("not a session log: its first record is no header")
                header = True
                first = first or record.mono_ns
                last = max(last, record.mono_ns)
                if not self._marks or record.mono_ns >= self._marks[-1].at_ns + 1_000_000_000:
                    self._marks.append(_Mark(record.mono_ns, offset))
            offset += len(line)
        if not header:
            raise LogError("not a session log: no readable record in it")
        self._handle.seek(0)
        return first, last

    @property
    def duration_s(self) -> float:
        """Length of the recording."""
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def position_s(self) -> float:
        """Seconds from the start to now, in the recording's time."""
        return (self._now() - self.start_ns) / 1e9

    def _now(self) -> int:
        if self.paused:
            return self._position_ns
        elapsed = (time.monotonic_ns() - self._anchor) * self.speed
        return min(self.end_ns, int(self._position_ns + elapsed))

    def _rebase(self) -> None:
        self._position_ns = self._now()
        self._anchor = time.monotonic_ns()

    def set_speed(self, speed: float) -> None:
        """Change the pace; 1 is the recording's own."""
        self._rebase()
        self.speed = speed

    def set_paused(self, paused: bool) -> None:
        """Hold or go on."""
        self._rebase()
        self.paused = paused

    @property
    def finished(self) -> bool:
        """Has the last record been given out?"""
        return self._pending is None and self._now() >= self.end_ns and self._at_end()

    def _at_end(self) -> bool:
        position = self._handle.tell()
        end = self._handle.read(1) == b""
        self._handle.seek(position)
        return end

    def seek(self, seconds: float, history_s: float = 60.0) -> list[Envelope]:
        """Jump to a moment. Returns what the viewer must fold anew: all records that set the scene (header, plans,
        workers, checks) and everything of the last ``history_s`` seconds before that moment."""
        target = self.start_ns + int(max(0.0, min(seconds, self.duration_s)) * 1e9)
        scene_end = target - int(history_s * 1e9)
        records = []
        self._handle.seek(0)
        for record in self._records():
            if record.mono_ns > target:
                self._pending = record
                break
            if record.mono_ns >= scene_end or record.kind in SCENE_KINDS:
                records.append(record)
        else:
            self._pending = None
        self._position_ns = target
        self._anchor = time.monotonic_ns()
        return records

    def _records(self) -> Iterator[Envelope]:
        while line := self._handle.readline():
            if (record := decode_line(line, self.skipped)) is not None:
                yield record

    def next_numbers_s(self, gap_s: float = 3.0) -> float | None:
        """Moment of the next traced launch that follows ``gap_s`` seconds without one: where compiling and the like
        end. None when there is none."""
        now = self._now()
        here = self._handle.tell()
        self._handle.seek(self._offset_of(now))
        last, found = None, None
        for record in self._records():
            if record.kind in NUMBER_KINDS:
                if record.mono_ns > now and (last is None or record.mono_ns - last > gap_s * 1e9):
                    found = (record.mono_ns - self.start_ns) / 1e9
                    break
                last = record.mono_ns
        self._handle.seek(here)
        return found

    def _offset_of(self, at: int) -> int:
        """Byte offset of the mark at or before a moment."""
        index = bisect.bisect_right([mark.at_ns for mark in self._marks], at) - 1
        return self._marks[max(0, index)].offset

    def poll(self, limit: int = 4096) -> list[Envelope]:
        """Records whose moment has come."""
        now = self._now()
        records: list[Envelope] = []
        if self._pending is not None:
            if self._pending.mono_ns > now:
                return records
            records.append(self._pending)
            self._pending = None
        for record in self._records():
            if record.mono_ns > now or len(records) >= limit:
                self._pending = record
                break
            records.append(record)
        return records

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


def _seekable(path: Path) -> IO[bytes]:
    handle = open_log(path)
    if handle.seekable() and not hasattr(handle, "fileobj"):
        return handle
    # seeking in gzip reads from the start each time: unpack once into a file without a name
    import shutil
    import tempfile

    unpacked = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the player
    try:
        shutil.copyfileobj(handle, unpacked)
    except (OSError, EOFError):
        pass  # cut short: what there is can be played
    unpacked.seek(0, os.SEEK_SET)
    return unpacked
