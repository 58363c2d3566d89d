"""The control socket: viewers come, give commands, go. One JSON object a line; nothing listens on a network."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fa4top.engine.tasks import end_task

Command = dict[str, Any]
Handle = Callable[[Command], Awaitable[dict[str, Any]]]
LINE_LIMIT = 1 << 16


class ControlServer:
    """Serves one engine's viewers; a connection is a viewer for as long as it lasts."""

    def __init__(self, path: Path, handle: Handle, changed: Callable[[int], None]) -> None:
        self._path = path
        self._handle = handle
        self._changed = changed
        self._server: asyncio.AbstractServer | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def viewers(self) -> int:
        """Connections now."""
        return len(self._writers)

    async def start(self) -> None:
        """Listen; the socket has mode 0600."""
        self._path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._accept, str(self._path), limit=LINE_LIMIT)
        finally:
            os.umask(mask)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # a task of our own: asyncio's streams complain on stderr when one that they made is cancelled (before 3.12)
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self._changed(self.viewers)
        try:
            while line := await reader.readline():
                try:
                    command = json.loads(line)
                except ValueError:
                    command = None
                answer: dict[str, Any] = {"ok": False, "error": "a command is one JSON object with 'do'"}
                if isinstance(command, dict):
                    answer = await self._handle(command)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            pass  # this viewer has left, or speaks another language
        finally:
            self._writers.discard(writer)
            writer.close()
            self._changed(self.viewers)

    def broadcast(self, message: dict[str, Any]) -> None:
        """Tell all viewers something that can not go through the log (a full disk)."""
        data = json.dumps(message).encode() + b"\n"
        for writer in list(self._writers):
            try:
                writer.write(data)
            except (ConnectionError, RuntimeError):
                continue

    async def stop(self) -> None:
        """Close all and remove the socket."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.close()
        for task in list(self._serving):
            await end_task(task)
        self._path.unlink(missing_ok=True)
