"""The engine and its workers as real processes, on the simulated device."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from fa4top.engine.client import Control, EngineError, connect, find_live, start_engine
from fa4top.engine.gpulock import GpuLock
from fa4top.engine.sessionlog import SessionLog
from fa4top.orders.order import Order
from fa4top.records import Body, EngineState, Envelope, Fault, Notice, Plan, TraceSample, WorkerState
from fa4top.session.following import Follower
from fa4top.session.paths import LOG_NAME, live_sessions, runtime_folder
from fa4top.session.reading import Skipped, read_log
from tests.conftest import of_kind, wait_until
from tests.limits import PATIENCE_S

Make = Callable[..., Order]


class Running:
    """An engine with a viewer."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.process = start_engine(order)
        self.control: Control = connect(order.session_id, self.process)
        self.records: list[Envelope] = []
        self._follower = Follower(Path(order.folder) / LOG_NAME)

    def look(self) -> list[Envelope]:
        self.records += self._follower.poll()
        return self.records

    def until(self, kind: type[Body], count: int = 1, after: int = 0) -> list[Body]:
        def found() -> list[Body]:
            return [r.body for r in self.look()[after:] if isinstance(r.body, kind)]

        wait_until(lambda: len(found()) >= count)
        return found()

    def stop(self) -> int:
        self.control.ask({"do": "stop"})
        code = self.process.wait(PATIENCE_S)
        self.look()
        words = Path(self.order.folder) / "engine.stderr"
        assert not words.exists() or not words.read_text(), "an engine says what it has to say in the log"
        return code


def test_a_session_from_start_to_stop(sim_order: Make) -> None:
    running = Running(sim_order())
    running.until(TraceSample, 3)
    assert [s.session_id for s in live_sessions()] == [running.order.session_id]
    assert find_live(running.order.session_id[:8]).pid == running.process.pid
    assert running.stop() == 0
    records = running.records
    assert records[0].kind == "header" and records[-1].kind == "engine"
    assert isinstance(records[-1].body, EngineState) and records[-1].body.state == "stopped"
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    assert {r.body.twin for r in records if isinstance(r.body, WorkerState)} == {"clean", "traced"}
    kinds = [r.kind for r in records]
    assert kinds.index("check") < kinds.index("clean") < kinds.index("trace")  # no number before its check
    assert len(of_kind(records, "check")) == 2
    assert not live_sessions() and not list(runtime_folder().glob("*.sock"))
    assert list(read_log(Path(running.order.folder), Skipped())) == records


def test_the_engine_has_a_process_session_of_its_own(sim_order: Make) -> None:
    running = Running(sim_order())
    assert os.getsid(running.process.pid) == running.process.pid != os.getsid(0)
    assert (runtime_folder() / f"{running.order.session_id}.sock").stat().st_mode & 0o777 == 0o600
    running.stop()


@pytest.mark.usefixtures("copies")
def test_pause_resume_and_another_plan(sim_order: Make) -> None:
    running = Running(sim_order())
    running.until(TraceSample, 2)
    assert running.control.ask({"do": "pause"})["paused"]
    wait_until(lambda: any(getattr(r.body, "state", "") == "paused" for r in running.look()))
    time.sleep(0.3)  # what was in flight arrives
    before = len(of_kind(running.look(), "trace"))
    time.sleep(0.4)
    assert len(of_kind(running.look(), "trace")) == before
    running.control.ask({"do": "resume"})
    running.until(TraceSample, before + 2)
    assert running.control.ask({"do": "plan", "shape": "s4096", "knobs": {"p_split": "1/2"}})["ok"]
    plans = running.until(Plan, 2)
    assert isinstance(plans[1], Plan) and plans[1].shape.seqlen_q == 4096 and plans[1].knobs["p_split"] == "1/2"
    running.until(TraceSample, 1, after=len(running.records))
    assert running.records[-1].kind in ("trace", "gpu", "clean") or running.look()
    for bad, word in (
        ({"knobs": {"p_split": "1/4"}}, "--unsafe"),
        ({"knobs": {"nope": "1"}}, "no knob"),
        ({"shape": "z9"}, "shape"),
    ):
        answer = running.control.ask({"do": "plan", **bad})
        assert not answer["ok"] and word in answer["error"]
    assert not running.control.ask({"do": "dance"})["ok"]
    running.stop()


@pytest.mark.parametrize("victim", ["clean", "traced"])
def test_a_killed_worker_becomes_a_fault_and_the_session_goes_on(sim_order: Make, victim: str) -> None:
    running = Running(sim_order())
    running.until(TraceSample, 2)
    states = [r.body for r in running.look() if isinstance(r.body, WorkerState) and r.body.twin == victim]
    os.kill(states[-1].pid, signal.SIGKILL)
    fault = running.until(Fault)[0]
    assert isinstance(fault, Fault) and fault.reason == "killed" and "SIGKILL" in fault.text and fault.hint
    running.until(TraceSample, 2, after=len(running.records))
    assert running.stop() == 0


@pytest.mark.usefixtures("copies")
def test_two_workers_that_die_together_are_two_faults(sim_order: Make) -> None:
    running = Running(sim_order())
    running.until(TraceSample, 2)
    pids = {r.body.twin: r.body.pid for r in running.look() if isinstance(r.body, WorkerState)}
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    faults = running.until(Fault, 2)
    assert {f.worker[:5] for f in faults if isinstance(f, Fault)} == {"clean", "trace"}
    running.until(TraceSample, 2, after=len(running.records))
    running.stop()


@pytest.mark.usefixtures("copies")
@pytest.mark.parametrize(
    ("fault", "reason", "code"),
    [("crash", "killed", 4), ("error", "CUDA error", 4), ("oom", "out of memory", 4), ("compile", "compile error", 4)],
)
def test_faults_that_come_back_end_the_session_with_the_reason(
    sim_order: Make, fault: str, reason: str, code: int
) -> None:
    running = Running(sim_order(sim_fault=fault))
    assert running.process.wait(PATIENCE_S) == code
    faults = [r.body for r in running.look() if isinstance(r.body, Fault)]
    assert faults and faults[0].reason == reason and faults[0].text and faults[0].hint
    last = running.records[-1].body
    assert isinstance(last, EngineState) and last.state == "stopped" and last.text


def test_a_hang_is_declared_and_the_worker_replaced(sim_order: Make) -> None:
    running = Running(sim_order(sim_fault="hang"))
    fault = running.until(Fault)[0]
    assert isinstance(fault, Fault) and fault.reason == "hang" and "killed" in fault.text
    pids = {r.body.pid for r in running.look() if isinstance(r.body, WorkerState)}
    running.until(TraceSample, 1, after=len(running.records))
    assert {r.body.pid for r in running.records if isinstance(r.body, WorkerState)} > pids
    running.stop()


@pytest.mark.usefixtures("copies")
def test_an_engine_that_stays_waits_for_another_plan(sim_order: Make) -> None:
    running = Running(sim_order(sim_fault="oom", stay=True))
    running.until(Fault)
    wait_until(lambda: any(getattr(r.body, "state", "") == "failed" for r in running.look()))
    assert running.process.poll() is None
    assert running.control.ask({"do": "plan", "shape": "s4096"})["plan_id"] == 2
    running.until(Plan, 2)
    running.until(Fault, 2)  # the simulated device has no memory for that one either
    assert running.stop() == 0


@pytest.mark.usefixtures("copies")
def test_every_record_of_a_simulated_session_says_so(sim_order: Make) -> None:
    running = Running(sim_order())
    running.until(TraceSample, 1)
    running.stop()
    assert all(record.simulated for record in running.records)


@pytest.mark.usefixtures("copies")
def test_wrong_output_shows_no_numbers(sim_order: Make) -> None:
    running = Running(sim_order(sim_fault="check"))
    assert running.process.wait(PATIENCE_S) == 1
    records = running.look()
    assert not of_kind(records, "clean") and not of_kind(records, "trace")
    assert any(isinstance(r.body, Notice) and "output is wrong" in r.body.text for r in records)


@pytest.mark.usefixtures("copies")
def test_a_viewer_that_leaves_lets_it_go_on_until_the_idle_limit(sim_order: Make) -> None:
    running = Running(sim_order(idle_limit_s=1.0))
    running.until(TraceSample, 1)
    running.control.close()
    wait_until(lambda: any("nobody watches" in getattr(r.body, "text", "") for r in running.look()))
    running.until(TraceSample, 1, after=len(running.records))
    running.control = connect(running.order.session_id)  # back in time: it stays
    time.sleep(1.6)
    assert running.process.poll() is None
    running.control.close()
    assert running.process.wait(PATIENCE_S) == 0
    assert "nobody watched" in getattr(running.look()[-1].body, "text", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly_and_a_dropped_line_does_not(sim_order: Make, number: signal.Signals) -> None:
    running = Running(sim_order())
    running.until(TraceSample, 1)
    running.process.send_signal(signal.SIGHUP)
    running.until(TraceSample, 2, after=len(running.records))
    running.process.send_signal(number)
    assert running.process.wait(PATIENCE_S) == 0
    assert number.name in getattr(running.look()[-1].body, "text", "")


@pytest.mark.parametrize("fault", ["", "hang"])
def test_workers_do_not_outlive_a_killed_engine(sim_order: Make, fault: str) -> None:
    running = Running(sim_order(sim_fault=fault))
    running.until(TraceSample, 5 if fault else 1)
    pids = {r.body.pid for r in running.records if isinstance(r.body, WorkerState)}
    running.process.kill()
    running.process.wait()

    def gone() -> bool:
        return not any(
            Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids
        )

    wait_until(gone)
    with pytest.raises(EngineError, match="no live session"):
        find_live(running.order.session_id)


@pytest.mark.usefixtures("copies")
def test_without_recording_nothing_is_left(sim_order: Make, home: Path) -> None:
    order = sim_order(record=False, folder=str(runtime_folder() / "x"))
    running = Running(order)
    running.until(TraceSample, 1)
    running.stop()
    assert not Path(order.folder).exists()


def test_a_bare_interpreter_with_numpy_runs_the_worker(sim_order: Make, home: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "bare")], check=True)
    site = next((home / "bare" / "lib").glob("python*/site-packages"))
    source = Path(numpy.__file__).parent
    for folder in (source, source.parent / "numpy.libs"):
        if folder.exists():
            (site / folder.name).symlink_to(folder)
    python = home / "bare" / "bin" / "python"
    missing = subprocess.run([python, "-c", "import textual"], capture_output=True, check=False)
    assert missing.returncode != 0
    running = Running(sim_order(python=str(python)))
    running.until(TraceSample, 2)
    assert running.stop() == 0


def test_an_interpreter_that_does_not_exist_is_a_fault_with_advice(sim_order: Make) -> None:
    running = Running(sim_order(python="/nowhere/python"))
    assert running.process.wait(PATIENCE_S) == 4
    fault = running.until(Fault)[0]
    assert isinstance(fault, Fault) and "/nowhere/python" in fault.text and "--python" in fault.hint


class FullDisk:
    """os.write of a disk that takes only so many bytes."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._write = os.write

    def __call__(self, fd: int, data: bytearray) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = bytes(data[: self.room])
        self.room -= len(part)
        return self._write(fd, part)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(room=400)
    monkeypatch.setattr("fa4top.engine.sessionlog.os.write", disk)
    log = SessionLog(tmp_path / "log.jsonl")
    from fa4top.records import SCHEMA_MAJOR, SCHEMA_MINOR, Header

    log.append(
        Header(
            session_id="id",
            schema_major=SCHEMA_MAJOR,
            schema_minor=SCHEMA_MINOR,
            fa4top_version="1",
            argv=[],
            python="3",
            platform="x",
            simulated=False,
        )
    )
    for number in range(10):
        log.append(Notice("info", f"number {number}"))
    assert log.blocked and "No space left" in log.blocked and str(tmp_path) in log.blocked
    assert not log.flush()
    disk.room = 1 << 20
    assert log.flush() and log.blocked is None
    log.close()
    skipped = Skipped()
    texts = [r.body.text for r in read_log(tmp_path / "log.jsonl", skipped) if isinstance(r.body, Notice)]
    assert texts == [f"number {n}" for n in range(10)] and skipped.broken == 0


def test_what_a_full_disk_never_took_is_rescued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SessionLog(tmp_path / "log.jsonl")
    log.append(Notice("info", "written"))
    monkeypatch.setattr("fa4top.engine.sessionlog.os.write", FullDisk(room=10))
    log.append(Notice("info", "not written"))
    rescued = log.close(tmp_path / "rest.jsonl")
    assert rescued is not None
    whole = (tmp_path / "log.jsonl").read_bytes() + rescued.read_bytes()
    assert [line.count(b"written") for line in whole.splitlines()] == [1, 1] and whole.endswith(b"\n")


def test_one_gpu_one_holder(tmp_path: Path) -> None:
    first = GpuLock("GPU-1", "session-a", tmp_path)
    assert first.acquire() is None and first.acquire() is None
    code = (
        "import sys; from pathlib import Path; from fa4top.engine.gpulock import GpuLock;"
        f"h = GpuLock('GPU-1', 'session-b', Path({str(tmp_path)!r})).acquire(); print(h and h.sentence())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"pid {os.getpid()}" in said and "session-a" in said and "since" in said
    other = GpuLock("GPU-2", "session-a", tmp_path)
    assert other.acquire() is None
    first.release()
    assert "None" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert os.stat(tmp_path / "fa4top-GPU-1.lock").st_mode & 0o666 == 0o666  # another user may lock it


def test_a_lock_whose_holder_died_is_free(tmp_path: Path) -> None:
    code = (
        "import os, signal; from pathlib import Path; from fa4top.engine.gpulock import GpuLock;"
        f"GpuLock('G', 's', Path({str(tmp_path)!r})).acquire(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert GpuLock("G", "t", tmp_path).acquire() is None


def test_the_runtime_folder_must_be_ours(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from fa4top.session.paths import RuntimeFolderError

    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert runtime_folder().stat().st_mode & 0o777 == 0o700
    shutil.rmtree(runtime_folder())
    (tmp_path / f"fa4top-{os.getuid()}").symlink_to(home)
    with pytest.raises(RuntimeFolderError, match="XDG_RUNTIME_DIR"):
        runtime_folder()
