"""Play a recording at a chosen speed, and jump in it. Nothing waits here: what takes long runs in a thread."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from fa4top.analysis.view.fold import Fold, Totals
from fa4top.records import Envelope, Header
from fa4top.session.log_bytes import LogBytes
from fa4top.session.log_index import LogIndex
from fa4top.session.reading import LogError, Skipped, decode_line
from fa4top.session.upgrade import Upgrade

TAIL_BYTES = 1 << 18  # of a file that lies there as it is: its last record is in it
HISTORY_S = 60.0


@dataclass(frozen=True)
class Jump:
    """What a viewer folds anew after a jump: the counts so far, the records that set the scene (which these counts hold
    already), and all records from there to the moment."""

    totals: Totals = field(default_factory=Totals)
    scene: list[Envelope] = field(default_factory=list)
    records: list[Envelope] = field(default_factory=list)

    def fold(self) -> Fold:
        """A fold that stands at the moment."""
        made = Fold(self.totals)
        for record in self.scene:
            made.feed(record, counted=False)
        for record in self.records:
            made.feed(record)
        return made


class Player:
    """Plays a log by the recording's own monotonic clock: faster, slower, paused, to a moment.

    The first records can be had at once; a thread indexes the rest meanwhile, and a jump waits for it to come by.
    """

    def __init__(self, path: Path, speed: float = 1.0) -> None:
        """Opens the recording.

        Raises:
            LogError: it is no session log.
        """
        self._bytes = LogBytes(path)
        self._index = LogIndex(self._bytes)
        self.skipped = Skipped()
        self._upgrade = Upgrade()
        self._bytes.advance()
        self.start_ns = self._first_ns()
        self._known_end_ns = self._tail_ns() if self._bytes.complete else 0
        self.speed = speed
        self.paused = False
        self._offset = 0
        self._position_ns = self.start_ns
        self._anchor = time.monotonic_ns()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._scan, name="fa4top-index", daemon=True)
        self._thread.start()

    def _scan(self) -> None:
        for _ in self._index.scan():
            if self._ending.is_set():
                return

    def _first_ns(self) -> int:
        skipped = Skipped()
        for _, line in self._bytes.lines(0):
            if (record := decode_line(line, skipped)) is None:
                continue
            if not isinstance(record.body, Header):
                raise LogError("not a session log: its first record is no header")
            return record.mono_ns
        raise LogError("not a session log: no readable record in it")

    def _tail_ns(self) -> int:
        size = self._bytes.available
        found = 0
        for line in self._bytes.read(max(0, size - TAIL_BYTES), TAIL_BYTES).split(b"\n"):
            try:
                found = max(found, int(json.loads(line)["mono_ns"]))
            except (ValueError, KeyError, TypeError):
                continue  # the first one is cut, the last one may be torn
        return found

    @property
    def indexing(self) -> float | None:
        """Share of the recording that is indexed; None when all is."""
        if self._index.complete:
            return None
        return self._index.scanned / max(1, self._bytes.available) if self._bytes.complete else 0.0

    @property
    def end_ns(self) -> int:
        """Moment of the last record, as far as it is known."""
        return max(self._known_end_ns, self._index.last_ns, self.start_ns)

    @property
    def duration_s(self) -> float:
        """Length of the recording, as far as it is known."""
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
        return self._bytes.complete and self._offset >= self._bytes.available

    def covers(self, seconds: float) -> bool:
        """Is the recording indexed up to this moment?"""
        return self._index.complete or self._index.last_ns > self._moment(seconds)

    def _moment(self, seconds: float) -> int:
        return self.start_ns + int(max(0.0, seconds) * 1e9)

    def wait_for_index(self, limit_s: float = 60.0) -> None:
        """Return when all is indexed; for tests and for a start at a moment."""
        self._thread.join(limit_s)

    def seek(self, seconds: float) -> Jump:
        """Jump to a moment that ``covers`` says is indexed. Returns what the viewer must fold anew."""
        target = min(self._moment(seconds), self.end_ns)
        begin, totals = self._index.mark_before(target - int(HISTORY_S * 1e9))
        self._upgrade = Upgrade()
        scene = [r for at in self._index.scene_before(begin) if (r := self._decode(self._bytes.line_at(at)))]
        records, at = [], begin
        for end, line in self._bytes.lines(begin):
            if (record := self._decode(line)) is not None:
                if record.mono_ns > target:
                    break
                records.append(record)
            at = end
        self._offset, self._position_ns, self._anchor = at, target, time.monotonic_ns()
        return Jump(totals, scene, records)

    def _decode(self, line: bytes) -> Envelope | None:
        return decode_line(line, self.skipped, self._upgrade)

    def next_numbers_s(self) -> float | None:
        """When numbers begin again after a gap: where compiling and the like end. None when none follow as far as the
        recording is indexed."""
        found = self._index.numbers_after(self._now())
        return (found - self.start_ns) / 1e9 if found is not None else None

    def poll(self, limit: int = 4096) -> list[Envelope]:
        """Records whose moment has come."""
        now = self._now()
        records: list[Envelope] = []
        for end, line in self._bytes.lines(self._offset):
            if (record := self._decode(line)) is not None:
                if record.mono_ns > now or len(records) >= limit:
                    break
                records.append(record)
            self._offset = end
        return records

    def close(self) -> None:
        """End the thread and close the file."""
        self._ending.set()
        self._thread.join(5.0)
        self._bytes.close()
