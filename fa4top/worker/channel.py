"""The worker's ends of the pipes: records out, commands in."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import IO

from fa4top.orders.commands import Message, from_line
from fa4top.records import Body, stamp, to_line


def take_stdout() -> IO[bytes]:
    """Keep the record pipe for ourselves: file descriptor 1 becomes the log file, so that what the kernel library
    prints (from C++ too) can not corrupt the protocol."""
    records = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return records


class Channel:
    """Writes records, one line each, and reads commands."""

    def __init__(self, out: IO[bytes], commands: IO[str], worker: str) -> None:
        self._out = out
        self._commands = commands
        self._worker = worker
        self._seq = 0
        self._lock = threading.Lock()

    def send(self, body: Body) -> None:
        """Write one record, from any thread. BrokenPipeError means that the engine is gone."""
        with self._lock:
            self._seq += 1
            data = memoryview(to_line(stamp(body, self._worker, self._seq)))
            while data:
                data = data[self._out.write(data) :]

    def commands(self) -> Iterator[Message]:
        """Commands until the engine closes the pipe; a line that is none is skipped."""
        for line in self._commands:
            try:
                yield from_line(line)
            except ValueError as error:
                print(f"skipped: {error}", file=sys.stderr)
