"""A real terminal for a real process: pty, pyte screen, bytes counted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable

import pyte

from tests.conftest import ROOT
from tests.limits import PATIENCE_S


class Terminal:
    """Runs a command on a pty of its own session and keeps the screen that a person would see."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24, shell: bool = False, **env: str) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.shell = shell
        command = [sys.executable, "-m", "fa4top", *arguments]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": "prompt> ", **env}
            for name in ("COLORTERM", "COLUMNS", "LINES"):
                environment.pop(name, None)
            os.chdir(ROOT)
            if shell:
                os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
            os.execvpe(command[0], command, environment)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.fd)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)
        os.kill(self.pid, signal.SIGWINCH)

    def read(self, seconds: float) -> int:
        """Take output for a while; returns the bytes."""
        end, count = time.monotonic() + seconds, 0
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self.fd], [], [], left)
            if not ready:
                break
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            count += len(data)
            self.raw += data
            self.stream.feed(data)
        return count

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def until(self, condition: str | Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
        """Read until some text is on the screen, or something is true."""
        check = condition if callable(condition) else lambda: condition in self.text
        end = time.monotonic() + limit_s
        while not check():
            assert time.monotonic() < end, f"{condition!r} did not come; the screen:\n{self.text}"
            self.read(0.1)

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def wait(self, limit_s: float = PATIENCE_S) -> int:
        """Exit code of the process; its last output is read too."""
        end = time.monotonic() + limit_s
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read(0.2)
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < end, f"it did not end; the screen:\n{self.text}"
            self.read(0.05)

    def restored(self) -> list[str]:
        """What is left wrong in the terminal; [] when all is as before."""
        wrong = []
        raw = self.raw.decode(errors="replace")
        for name, on, off in (
            ("alternate screen", "\x1b[?1049h", "\x1b[?1049l"),
            ("mouse", "\x1b[?1003h", "\x1b[?1003l"),
            ("mouse buttons", "\x1b[?1000h", "\x1b[?1000l"),
            ("bracketed paste", "\x1b[?2004h", "\x1b[?2004l"),
            ("focus events", "\x1b[?1004h", "\x1b[?1004l"),
            ("hidden cursor", "\x1b[?25l", "\x1b[?25h"),
        ):
            if self.shell and name == "bracketed paste":
                continue  # bash switches it on at its own prompt
            if raw.rfind(on) > raw.rfind(off):
                wrong.append(name)
        if self.shell:
            return wrong  # bash's line editor has its own modes
        try:
            after = termios.tcgetattr(self.fd)
        except termios.error:
            return wrong
        if after[3] & (termios.ECHO | termios.ICANON) != self.before[3] & (termios.ECHO | termios.ICANON):
            wrong.append("echo or line mode")
        return wrong

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.close(self.fd)
