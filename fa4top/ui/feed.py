"""The thread between a log and the screens: reads, folds, posts snapshots. Never waits for the screens."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fa4top.analysis.view.fold import Fold
from fa4top.engine.client import START_LIMIT_S, Control, EngineError, connect
from fa4top.records import Envelope
from fa4top.session.following import Follower
from fa4top.session.playing import Player
from fa4top.session.reading import LogError
from fa4top.ui.messages import FeedFailed, SnapshotReady


class Source(Protocol):
    """Where records come from: a live log or a recording."""

    def poll(self) -> list[Envelope]:
        """New records; [] when there are none now."""
        ...

    def status(self) -> Status:
        """How it stands with it."""
        ...

    def fresh_start(self) -> Fold | None:
        """After a jump: the fold to go on with."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


@dataclass(frozen=True)
class Status:
    """``replay``: position of a recording; ``blocked``: why nothing is written; ``ended``: how it ended; '' where that
    does not apply."""

    replay: str = ""
    blocked: str = ""
    ended: str = ""


class LiveSource:
    """A running engine: its log, and its control socket for commands and for being counted as a viewer."""

    def __init__(self, session_id: str, log: Path, process: subprocess.Popen[bytes] | None) -> None:
        self._session_id = session_id
        self._process = process
        self._follower = Follower(log)
        self._control: Control | None = None
        self._blocked = ""
        self._ended = ""
        self._give_up = time.monotonic() + START_LIMIT_S
        self._lock = threading.Lock()

    def _connect(self) -> None:
        """One try a poll: whoever holds the lock must not wait for an engine that is still starting."""
        if self._control is not None or self._ended:
            return
        try:
            self._control = connect(self._session_id, self._process, wait_s=0.0)
        except EngineError as error:
            dead = self._process is not None and self._process.poll() is not None
            if dead or time.monotonic() > self._give_up:
                self._ended = str(error)

    def poll(self) -> list[Envelope]:
        """New records of the log."""
        with self._lock:
            self._connect()
            records = self._follower.poll()
            if self._control is not None:
                for event in self._control.events():
                    self._blocked = str(event.get("text", "")) if event.get("event") == "blocked" else self._blocked
            for record in records:
                if record.kind in ("trace", "clean"):
                    self._blocked = ""
                if record.kind == "engine" and getattr(record.body, "state", "") == "stopped":
                    self._ended = f"the engine has stopped ({getattr(record.body, 'text', '')})"
            return records

    def ask(self, command: dict[str, object]) -> dict[str, object]:
        """Send a command; {'ok': False} when the engine is gone."""
        with self._lock:
            if self._control is None:
                return {"ok": False, "error": self._ended or "the engine is not there yet"}
            try:
                return self._control.ask(command)
            except (OSError, ValueError):
                self._control = None
                self._ended = self._ended or "the engine is gone"
                return {"ok": False, "error": self._ended}

    def status(self) -> Status:
        """Blocked and ended, as far as known."""
        return Status("", self._blocked, self._ended)

    def fresh_start(self) -> Fold | None:
        """A live log never jumps."""
        return None

    def close(self) -> None:
        """Leave the engine alone."""
        if self._control is not None:
            self._control.close()
        self._follower.close()


class ReplaySource:
    """A recording with a clock. A jump is a wish: the feed's thread makes it, once the recording is indexed so far."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._lock = threading.Lock()
        self._wish_s: float | None = None

    def poll(self) -> list[Envelope]:
        """Records whose moment has come."""
        with self._lock:
            # on the way to a moment nothing else is shown
            return self._player.poll() if self._wish_s is None else []

    def pause(self) -> bool:
        """Hold or go on; True when held now."""
        with self._lock:
            self._player.set_paused(not self._player.paused)
            return self._player.paused

    def jump_to(self, seconds: float) -> None:
        """Go to a moment."""
        with self._lock:
            self._wish_s = max(0.0, seconds)

    def jump(self, seconds: float) -> None:
        """Relative jump; several before the first is made add up."""
        with self._lock:
            self._wish_s = max(0.0, (self._player.position_s if self._wish_s is None else self._wish_s) + seconds)

    def jump_to_numbers(self) -> str:
        """Skip what has no numbers; why not, '' when it is done."""
        with self._lock:
            at = self._player.next_numbers_s()
            if at is not None:
                self._wish_s = at
                return ""
            return "no other numbers follow" if self._player.indexing is None else "still indexing the recording"

    def change_speed(self, factor: float) -> None:
        """Faster or slower, from 1/8 to 64 times."""
        with self._lock:
            self._player.set_speed(max(0.125, min(64.0, self._player.speed * factor)))

    def status(self) -> Status:
        """Position and speed."""
        player = self._player
        ended = "the recording has ended" if player.finished else ""
        indexed = player.indexing
        more = "" if indexed is None else f" indexing {indexed:.0%}"
        return Status(f"{_clock(player.position_s)}/{_clock(player.duration_s)} x{player.speed:g}{more}", "", ended)

    def fresh_start(self) -> Fold | None:
        """Make the jump that was wished for, when it can be made."""
        with self._lock:
            if self._wish_s is None or not self._player.covers(self._wish_s):
                return None
            wish, self._wish_s = self._wish_s, None
            return self._player.seek(wish).fold()

    def close(self) -> None:
        """Close the file."""
        self._player.close()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"


class Feed(threading.Thread):
    """Polls a source often and posts at most ``hz`` snapshots a second, and none while the last one is not shown: a
    slow terminal costs frames, never memory.

    ``shown`` is the number of the snapshot that was shown last. It is asked, never waited for: a callback that a closed
    dialog took along must not stop the screens.
    """

    def __init__(
        self,
        source: Source,
        post: Callable[[SnapshotReady | FeedFailed], object],
        hz: float,
        shown: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(name="fa4top-feed", daemon=True)
        self._source = source
        self._post = post
        self._shown = shown
        self._sent = 0
        self.hz = hz
        self._ending = threading.Event()
        self._wake = threading.Event()

    def run(self) -> None:
        """Until stopped."""
        fold = Fold()
        status: Status | None = None
        dirty = True
        while not self._ending.is_set():
            try:
                if (fresh := self._source.fresh_start()) is not None:
                    fold, dirty = fresh, True
                while records := self._source.poll():
                    for record in records:
                        fold.feed(record)
                    dirty = True
                    if len(records) < 1024:
                        break
            except (LogError, OSError) as error:
                self._post(FeedFailed(str(error)))
                return
            now = self._source.status()
            if (dirty or now != status) and (self._shown is None or self._shown() >= self._sent):
                self._sent += 1
                self._post(SnapshotReady(fold.snapshot(), now.replay, now.blocked, now.ended, self._sent))
                dirty, status = False, now
            self._wake.wait(1.0 / self.hz)
            self._wake.clear()

    def nudge(self) -> None:
        """Look again soon."""
        self._wake.set()

    def stop(self) -> None:
        """End the thread and close the source."""
        self._ending.set()
        self._wake.set()
        if self.is_alive():
            self.join(2.0)
        self._source.close()
