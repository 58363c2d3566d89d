"""Every test has its own sessions, sockets and config; nothing of the person's is touched."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fa4top.cli.interpreter import inspect
from fa4top.cli.root import root
from fa4top.orders.order import Order
from fa4top.records import Envelope
from fa4top.session.paths import RuntimeFolderError, live_sessions, new_session_id
from fa4top.targets.sim.description import DESCRIPTION as SIM
from tests.forked import forking
from tests.limits import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent
# tests run side by side, in many short processes: each has one thread, and imports what another one has compiled
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short folder (socket paths are limited) for everything that fa4top keeps."""
    folder = Path(tempfile.mkdtemp(prefix="f4t"))
    (folder / "run").mkdir(mode=0o700)
    for name, value in {
        "XDG_RUNTIME_DIR": folder / "run",
        "FA4TOP_SESSIONS": folder / "sessions",
        "FA4TOP_CONFIG": folder / "config.toml",
        "HOME": folder,
    }.items():
        monkeypatch.setenv(name, str(value))
    for name in ("NO_COLOR", "SSH_CONNECTION", "CUDA_VISIBLE_DEVICES", "FA4TOP_TARGET", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    inspect.cache_clear()
    yield folder
    with contextlib.suppress(RuntimeFolderError):
        for session in live_sessions():
            os.kill(session.pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def copies() -> Iterator[None]:
    """Engines and workers begin as copies of this process (tests/forked.py)."""
    with forking():
        yield


def make_sim_order(sessions: Path, knobs: dict[str, str] | None = None, **changes: object) -> Order:
    """An order for the simulated device whose session lies in a folder of its own; knobs and order fields."""
    setting, problems = SIM.setting(knobs or {})
    assert not problems
    session_id = new_session_id()
    fields: dict[str, object] = {
        "session_id": session_id,
        "folder": str(sessions / session_id),
        "record": True,
        "target": "sim",
        "why_target": "test",
        "shape": SIM.default_shape,
        "knobs": setting,
        "seed": 0,
        "python": sys.executable,
        "gpu_uuid": "SIM-gb300",
        "gpu_name": "simulated GB300",
        "arch": "sm_103a",
        "simulated": True,
        "argv": ["fa4top"],
        "rounds_per_s": 40.0,
        "idle_limit_s": 30.0,
    }
    return Order(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture
def sim_order(home: Path) -> Callable[..., Order]:
    """Makes orders for the simulated device; knobs and order fields as keywords."""
    return partial(make_sim_order, home / "sessions")


def wait_until(condition: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
    """Poll until true; the limit only says when a test has failed, it is never slept through."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.02)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def run_cli(*arguments: str) -> Done:
    """A command in this process, without a terminal: importing it anew each time would take longer than most of what is
    tested. The engine that it starts is a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["fa4top", *arguments])
        found = CliRunner().invoke(root, list(arguments), prog_name="fa4top")
    words = "" if found.exception is None or isinstance(found.exception, SystemExit) else _trace(found.exc_info)
    return Done(found.exit_code, found.stdout, found.stderr + words)


def _trace(exc_info: Any) -> str:
    return "".join(traceback.format_exception(*exc_info))


def run_process(*arguments: str, limit_s: float = PATIENCE_S) -> Done:
    """fa4top as a person's shell would start it, without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "fa4top", *arguments],
        capture_output=True,
        text=True,
        timeout=limit_s,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def of_kind(records: list[Envelope], kind: str) -> list[Envelope]:
    """The records of one kind."""
    return [record for record in records if record.kind == kind]
