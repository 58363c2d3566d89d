"""Start an engine and talk to it: what viewers use. Standard library only."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fa4top.orders.order import Order
from fa4top.session.paths import LiveSession, live_sessions, runtime_folder

START_LIMIT_S = 60.0  # in which an engine that lives must answer; on a loaded machine it imports for long


class EngineError(RuntimeError):
    """The engine did not come up or does not answer; the text says what to look at."""


def start_engine(order: Order) -> subprocess.Popen[bytes]:
    """Start the engine in a process session of its own, with its words in engine.stderr.

    Raises:
        EngineError: the session folder can not be made.
    """
    folder = Path(order.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stderr = (folder / "engine.stderr").open("ab")
    except OSError as error:
        raise EngineError(
            f"the session folder {folder} can not be made ({error.strerror}); choose another with --record DIR, "
            "or --no-record"
        ) from error
    environment = dict(os.environ)
    package_parent = str(Path(__file__).resolve().parent.parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package_parent, environment.get("PYTHONPATH")]))
    with stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "fa4top.engine.main", order.to_json()],
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            start_new_session=True,
            env=environment,
        )


class Control:
    """A viewer's connection to an engine. Being connected is what keeps an engine from counting as unwatched."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(5.0)
        self._socket.connect(str(path))
        self._rest = b""

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """Send a command and read its answer; OSError when the engine is gone."""
        self._socket.sendall(json.dumps(command).encode() + b"\n")
        while True:
            answer = self._line()
            if "event" not in answer:
                return answer

    def _line(self) -> dict[str, Any]:
        while b"\n" not in self._rest:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the engine is gone")
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def events(self) -> list[dict[str, Any]]:
        """What the engine broadcast since the last look; never waits."""
        found = []
        self._socket.setblocking(False)
        try:
            while data := self._socket.recv(65536):
                self._rest += data
        except (BlockingIOError, OSError):
            pass
        finally:
            self._socket.settimeout(5.0)
        while b"\n" in self._rest:
            line, self._rest = self._rest.split(b"\n", 1)
            found.append(json.loads(line))
        return found

    def close(self) -> None:
        """Leave."""
        self._socket.close()


def connect(session_id: str, process: subprocess.Popen[bytes] | None = None, wait_s: float = START_LIMIT_S) -> Control:
    """Connect to an engine that may still be starting.

    Raises:
        EngineError: it ended, or did not answer in time.
    """
    path = runtime_folder() / f"{session_id}.sock"
    end = time.monotonic() + wait_s
    while True:
        try:
            return Control(path)
        except OSError as error:
            if process is not None and process.poll() is not None:
                raise EngineError(f"the engine ended with code {process.returncode}") from error
            if time.monotonic() > end:
                raise EngineError(f"no engine answers at {path}") from error
            time.sleep(0.02)


def find_live(session_id: str = "") -> LiveSession:
    """The live session with this id (or its start); without one, the latest.

    Raises:
        EngineError: there is none, or several fit.
    """
    matches = [s for s in live_sessions() if s.session_id.startswith(session_id)]
    if not matches:
        raise EngineError(f"no live session {session_id}".rstrip() + "; fa4top sessions lists them")
    if session_id and len(matches) > 1:
        raise EngineError(f"several live sessions begin with {session_id}: " + ", ".join(s.session_id for s in matches))
    return matches[-1]
