"""Engines and workers that begin as copies of the test's process: processes of their own as always, but with nothing to
import anew, which is most of what a short session costs. Tests of how processes start and end use real ones.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn
from unittest.mock import patch

from fa4top.engine import main as engine_main
from fa4top.engine.workers import LINE_LIMIT, WorkerProcess
from fa4top.orders.order import Order
from fa4top.worker import loop as worker_loop

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGPIPE)


def _become(streams: Sequence[int], environment: dict[str, str], run: Callable[[], int]) -> NoReturn:
    """In the copy: leave all that was the parent's, then run, and never come back."""
    code = 70
    try:
        os.setsid()
        for number, own in enumerate([os.dup(stream) for stream in streams]):
            os.dup2(own, number)
        os.closerange(3, 4096)
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environment)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        code = run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class ForkedEngine:
    """What Popen would give."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code once it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it ends."""
        end = time.monotonic() + (timeout if timeout is not None else 1e9)
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("engine", timeout or 0.0)
            time.sleep(0.005)
        return code

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)


def fork_engine(words: list[str], *, stdout: IO[bytes], env: dict[str, str], **_: Any) -> ForkedEngine:
    """As Popen, for an engine's command line."""
    null = os.open(os.devnull, os.O_RDWR)
    pid = os.fork()
    if not pid:

        def run() -> int:
            sys.argv = ["engine", words[-1]]
            return engine_main.main()

        _become((null, stdout.fileno(), stdout.fileno()), env, run)
    os.close(null)
    return ForkedEngine(pid)


class _Process:
    """What asyncio's subprocess would give."""

    def __init__(self, pid: int, stdin: asyncio.StreamWriter, stdout: Any, stderr: Any) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, stderr
        self.returncode: int | None = None
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._end, os.waitstatus_to_exitcode(status))

    def _end(self, code: int) -> None:
        self.returncode = code
        self._over.set()
        self.stdin.close()

    async def wait(self) -> int | None:
        """Until it ends."""
        await self._over.wait()
        return self.returncode


class ForkedWorker(WorkerProcess):
    """A worker that begins as a copy of its engine. ``prepare``: what it does before it is a worker."""

    prepare: Callable[[], None] | None = None

    async def _spawn(self, order: Order, stderr_path: Path) -> None:
        pipes = [os.pipe() for _ in range(3)]  # its input, output, errors
        pid = os.fork()
        if not pid:

            def run() -> int:
                if (prepare := type(self).prepare) is not None:
                    prepare()
                return worker_loop.main()

            _become((pipes[0][0], pipes[1][1], pipes[2][1]), self._environment(order), run)
        for theirs in (pipes[0][0], pipes[1][1], pipes[2][1]):
            os.close(theirs)
        try:
            writer, out, errors = await _writer(pipes[0][1]), await _reader(pipes[1][0]), await _reader(pipes[2][0])
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        process: Any = _Process(pid, writer, out, errors)
        self._process = process
        self._tasks = [asyncio.create_task(self._read_records()), asyncio.create_task(self._read_stderr(stderr_path))]


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", buffering=0)
    )
    return reader


async def _writer(fd: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(fd, "wb"))
    return asyncio.StreamWriter(transport, protocol, None, loop)


@contextmanager
def forking(workers: bool = True, prepare: Callable[[], None] | None = None) -> Iterator[None]:
    """Engines, and their workers, begin as copies of this process."""
    kind = type("Worker", (ForkedWorker,), {"prepare": staticmethod(prepare) if prepare else None})
    process = SimpleNamespace(Popen=fork_engine, DEVNULL=subprocess.DEVNULL)
    with (
        patch("fa4top.engine.client.subprocess", process),
        patch("fa4top.engine.pool.WorkerProcess", kind if workers else WorkerProcess),
    ):
        yield
