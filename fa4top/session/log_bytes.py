"""The bytes of a recording, to be read anywhere: a file as it lies, or a gzipped one while it is being unpacked."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fa4top.session.reading import open_log

CHUNK_BYTES = 1 << 20
LINE_BYTES = 1 << 13  # read at once when one line is wanted


class LogBytes:
    """``available`` bytes can be read at any offset, from any thread; ``advance`` makes more of a gzipped log so."""

    def __init__(self, path: Path) -> None:
        """Opens the log.

        Raises:
            LogError: there is nothing to read.
        """
        handle = open_log(path)
        self._packed: IO[bytes] | None = None
        self._written = 0
        if isinstance(handle, gzip.GzipFile):
            self._packed = handle
            # without a name: it goes with the process
            self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the reader
        else:
            self._file = handle
            self._written = os.fstat(handle.fileno()).st_size
        self._fd = self._file.fileno()

    @property
    def complete(self) -> bool:
        """Is all of it available?"""
        return self._packed is None

    @property
    def available(self) -> int:
        """Bytes that can be read now."""
        return self._written

    def advance(self) -> None:
        """Unpack some more; a file that is cut short ends where it can be read."""
        if self._packed is None:
            return
        try:
            data = self._packed.read(CHUNK_BYTES)
        except (OSError, EOFError):
            data = b""
        if data:
            self._file.write(data)
            self._file.flush()
            self._written += len(data)
        else:
            self._packed.close()
            self._packed = None

    def read(self, offset: int, size: int) -> bytes:
        """Bytes from an offset."""
        return os.pread(self._fd, max(0, min(size, self._written - offset)), offset)

    def line_at(self, offset: int) -> bytes:
        """The line that begins there, without its newline."""
        size = LINE_BYTES
        while True:
            data = self.read(offset, size)
            end = data.find(b"\n")
            if end >= 0:
                return data[:end]
            if len(data) < size:
                return data
            size *= 4

    def lines(self, offset: int, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """(offset of the line after it, line) from an offset on; a line that is not whole yet is left for later, unless
        all is available.

        Args:
            end: lines that begin here or later are left out.
        """
        rest, at = b"", offset
        while True:
            data = self.read(at + len(rest), CHUNK_BYTES)
            if not data:
                if rest and self.complete and (end is None or at < end):
                    yield at + len(rest), rest
                return
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                if end is not None and at >= end:
                    return
                at += len(line) + 1
                yield at, line

    def close(self) -> None:
        """Close the files."""
        if self._packed is not None:
            self._packed.close()
        self._file.close()
