"""Appending to the session log. A record is never lost: what can not be written now is kept and written later."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from fa4top.records import Body, Envelope, stamp, to_line


class SessionLog:
    """The one writer of a log. ``blocked`` holds a sentence while the disk takes no more: stop producing then."""

    def __init__(self, path: Path, simulated: bool = False) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._path = path
        self._simulated = simulated
        self._pending = bytearray()
        self._seq = 0
        self.blocked: str | None = None

    def append(
        self, body: Body, source: str = "engine", wall_ns: int | None = None, mono_ns: int | None = None
    ) -> Envelope:
        """Add a record, and return it as it was recorded. Times are those of the source where it gives them."""
        self._seq += 1
        record = stamp(body, source, self._seq)
        if wall_ns is not None and mono_ns is not None:
            record = replace(record, wall_ns=wall_ns, mono_ns=mono_ns)
        if self._simulated:
            record = replace(record, simulated=True)
        self._pending += to_line(record)
        self.flush()
        return record

    def flush(self) -> bool:
        """Write what is pending; False while the disk refuses. A line cut off by a full disk is completed later."""
        while self._pending:
            try:
                written = os.write(self._fd, self._pending)
            except InterruptedError:
                continue
            except OSError as error:
                self.blocked = (
                    f"the session log can not be written ({error.strerror}): launches are paused, "
                    f"{len(self._pending)} bytes are kept; free space on {self._path.parent}"
                )
                return False
            del self._pending[:written]
        self.blocked = None
        return True

    def close(self, rescue: Path | None = None) -> Path | None:
        """Write what can be written and close.

        Args:
            rescue: where to put what the disk still refuses.

        Returns:
            ``rescue`` when it was needed; its bytes belong at the end of the log.
        """
        whole = self.flush()
        os.close(self._fd)
        if whole or rescue is None:
            return None
        rescue.write_bytes(self._pending)
        self._pending.clear()
        return rescue
