"""Follow a log that is being written. No threads, no sleeping here."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from fa4top.records import Envelope
from fa4top.session.reading import Skipped, decode_line
from fa4top.session.upgrade import Upgrade

CHUNK_BYTES = 1 << 18


class Follower:
    """Reads what was appended since the last call. Works over NFS too: it looks, it does not wait for events."""

    def __init__(self, path: Path, keep_lines: bool = False) -> None:
        """``keep_lines``: what was read is also kept as it stood, for ``lines``."""
        self._path = path
        self._kept: list[bytes] | None = [] if keep_lines else None
        self._upgrade = Upgrade()
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
            if self._kept is not None:
                self._kept += lines
            for line in lines:
                if (record := decode_line(line, self.skipped, self._upgrade)) is not None:
                    records.append(record)
        return records

    def lines(self) -> bytes:
        """The lines of the records since the last call, as they stand in the log."""
        taken, self._kept = self._kept or [], []
        return b"".join(line + b"\n" for line in taken)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None
