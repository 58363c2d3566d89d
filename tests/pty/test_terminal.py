"""What reaches a real terminal: bytes a tick, and a terminal that is whole afterwards."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fa4top.engine.client import connect, find_live
from fa4top.session.paths import live_sessions
from tests.conftest import ROOT, wait_until
from tests.limits import PATIENCE_S
from tests.pty.harness import Terminal

READY = "TFLOP/s"
BYTES_A_TICK = 8192


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for terminal in made:
        terminal.close()


def start(terminals: list[Terminal], *arguments: str, **options: object) -> Terminal:
    terminal = Terminal(*(arguments or ("--target", "sim")), **options)  # type: ignore[arg-type]
    terminals.append(terminal)
    return terminal


def leave(terminal: Terminal, answer: str) -> None:
    """Ask to leave a live session, and answer: s stops it, d detaches."""
    terminal.type("q")
    terminal.until("Leave fa4top")
    terminal.type(answer)


def test_bytes_a_tick_at_80x24_in_256_colours(terminals: list[Terminal]) -> None:
    terminal = start(terminals)
    terminal.until(READY)
    terminal.until("SIMULATED")
    terminal.read(6.0)  # the graph has begun to move
    marks = len(terminal.raw)
    ticks, seconds = 24, 6.0
    terminal.read(seconds)
    sent = len(terminal.raw) - marks
    assert 0 < sent <= BYTES_A_TICK * ticks
    # no single redraw may be larger than one full budget either: look at what one quarter second brings
    worst = max(terminal.read(0.25) for _ in range(12))
    assert worst <= BYTES_A_TICK * 1.5
    print(f"{sent / ticks:.0f} bytes a tick, worst quarter second {worst}")


def test_quit_restores_the_terminal(terminals: list[Terminal]) -> None:
    terminal = start(terminals)
    terminal.until(READY)
    leave(terminal, "s")
    assert terminal.wait() == 0 and terminal.restored() == []
    assert b"fa4top replay" in terminal.raw[-400:]
    wait_until(lambda: not live_sessions())


def test_detach_and_attach_again(terminals: list[Terminal]) -> None:
    terminal = start(terminals)
    terminal.until(READY)
    leave(terminal, "d")
    assert terminal.wait() == 0 and terminal.restored() == []
    live = find_live()
    again = start(terminals, "attach", live.session_id[:11])
    again.until(READY)
    again.until("SIMULATED")
    leave(again, "s")
    assert again.wait() == 0
    wait_until(lambda: not live_sessions())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_detach_and_restore(terminals: list[Terminal], number: signal.Signals) -> None:
    terminal = start(terminals)
    terminal.until(READY)
    os.kill(terminal.pid, number)
    assert terminal.wait() == 0 and terminal.restored() == []
    live = find_live()  # the engine goes on
    control = connect(live.session_id)
    assert control.ask({"do": "stop"})["ok"]
    wait_until(lambda: not live_sessions())


def test_a_dropped_line_leaves_the_engine_and_no_busy_viewer(terminals: list[Terminal]) -> None:
    terminal = start(terminals)
    terminal.until(READY)
    os.close(terminal.fd)  # the terminal is gone: SIGHUP, and every write fails
    end = time.monotonic() + PATIENCE_S
    while os.waitpid(terminal.pid, os.WNOHANG)[0] == 0:
        assert time.monotonic() < end, "the viewer did not end with its terminal"
        time.sleep(0.05)
    assert find_live().alive()
    connect(find_live().session_id).ask({"do": "stop"})
    wait_until(lambda: not live_sessions())


def test_a_crash_restores_the_terminal(terminals: list[Terminal], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import fa4top.ui.widgets.facts as f\n"
        "original = f.Facts.rows\n"
        "def rows(self, snapshot, *rest):\n"
        "    if snapshot.roles: raise RuntimeError('planted crash')\n"
        "    return original(self, snapshot, *rest)\n"
        "f.Facts.rows = rows\n"
    )
    terminal = start(terminals, PYTHONPATH=f"{tmp_path}:{os.getcwd()}")
    code = terminal.wait()
    assert code != 0 and terminal.restored() == []
    assert b"planted crash" in terminal.raw
    connect(find_live().session_id).ask({"do": "stop"})


def test_suspend_and_foreground(terminals: list[Terminal]) -> None:
    terminal = start(terminals, shell=True)
    terminal.until("prompt>")
    import sys

    terminal.type(f"{sys.executable} -m fa4top --target sim\n")
    terminal.until(READY)
    terminal.type("\x1a")
    terminal.until(lambda: b"Stopped" in terminal.raw)
    assert terminal.restored() == []
    log = next(Path(os.environ["FA4TOP_SESSIONS"]).iterdir()) / "log.jsonl"
    wait_until(lambda: b'"state":"paused"' in log.read_bytes())
    terminal.type("fg\n")
    terminal.until(lambda: terminal.raw.rfind(b"\x1b[?1049h") > terminal.raw.rfind(b"Stopped"))
    terminal.until(READY)
    wait_until(lambda: log.read_bytes().rfind(b'"state":"running"') > log.read_bytes().rfind(b'"state":"paused"'))
    leave(terminal, "s")
    terminal.until(lambda: b"fa4top replay" in terminal.raw)
    assert terminal.restored() == []


def test_resizing(terminals: list[Terminal]) -> None:
    terminal = start(terminals)
    terminal.until(READY)
    for columns, rows, words in ((120, 40, "longest wait"), (40, 12, "SIMULATED"), (80, 24, "timeline, CTA")):
        terminal.resize(columns, rows)
        terminal.until(words)
    leave(terminal, "s")
    assert terminal.wait() == 0


def test_a_slow_reader_drops_frames_and_gets_the_present(terminals: list[Terminal]) -> None:
    terminal = start(terminals, "--target", "sim", "--hz", "10", columns=200, rows=50)
    terminal.until(READY)
    log = next(Path(os.environ["FA4TOP_SESSIONS"]).iterdir()) / "log.jsonl"
    size = log.stat().st_size
    time.sleep(4.0)  # nobody reads the terminal: the pty's buffer is full after a few frames
    assert log.stat().st_size > size + 10_000, "the engine must not wait for a viewer"
    before = terminal.text
    backlog = terminal.read(0.5)
    assert backlog < 700_000
    terminal.until(lambda: terminal.text != before)
    leave(terminal, "s")
    assert terminal.wait() == 0


def test_no_color_and_ascii(terminals: list[Terminal]) -> None:
    terminal = start(terminals, "--target", "sim", "--ascii", NO_COLOR="1")
    terminal.until(READY)
    terminal.until("SIMULATED")
    terminal.until("#")
    colours = {int(c) for c in re.findall(rb"\x1b\[(?:\d+;)*38;5;(\d+)", terminal.raw)}
    greys = {0, 7, 8, 15, 16, 59, 102, 145, 188, 231, *range(232, 256)}  # of the 256-colour palette
    assert colours <= greys, colours - greys
    leave(terminal, "s")
    assert terminal.wait() == 0


def test_replay_of_a_gzipped_log(terminals: list[Terminal], home: Path) -> None:
    import gzip

    from tests.conftest import run_cli

    run_cli("live", "--target", "sim", "--seconds", "1", "--json")
    log = next((home / "sessions").iterdir()) / "log.jsonl"
    packed = home / "x.jsonl.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    terminal = start(terminals, "replay", str(packed), "--speed", "8")
    terminal.until("REPLAY")
    terminal.until(READY)
    terminal.type("q")
    assert terminal.wait() == 0 and terminal.restored() == []


def test_bytes_that_are_no_utf8_do_no_harm(terminals: list[Terminal]) -> None:
    """Old mouse reports past column 95, a paste in another encoding, a torn character: the screens go on."""
    terminal = start(terminals, "replay", str(ROOT / "examples" / "h200-live.jsonl.gz"))
    terminal.until(READY)
    for sent in (b"\x1b[M !\xe9", b"\x1b[200~caf\xe9\x1b[201~", b"\xff\xfe\x80", b"\xe2\x82"):
        os.write(terminal.fd, sent)
        terminal.read(0.2)
    terminal.type("2")
    terminal.until("no A/B")
    terminal.type("1")
    terminal.until(READY)
    terminal.type("q")
    assert terminal.wait() == 0 and terminal.restored() == []
