"""The engine process: `python -m fa4top.engine.main ORDER`, in a process session of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from fa4top import __version__
from fa4top.engine.commands import (
    ChangePlan,
    Clear,
    ControlCommand,
    Pause,
    Resume,
    StartJob,
    StopEngine,
    checked_job,
    command_of,
)
from fa4top.engine.control import ControlServer
from fa4top.engine.custody import Stopped
from fa4top.engine.jobs.registry import spec_of
from fa4top.engine.live import LiveProgram
from fa4top.engine.sessionlog import SessionLog
from fa4top.engine.tasks import end_task
from fa4top.orders import exits
from fa4top.orders.order import Order
from fa4top.orders.shapes import parse_shape
from fa4top.records import SCHEMA_MAJOR, SCHEMA_MINOR, EngineState, Header, Notice
from fa4top.session.paths import LOG_NAME, LiveSession, register, runtime_folder
from fa4top.targets.legal import changed_order


class Engine:
    """Owns the log, the control socket and the program."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._folder = Path(order.folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._log = SessionLog(self._folder / LOG_NAME, order.simulated)
        self._program = LiveProgram(order, self._log, self._state)
        self._control = ControlServer(
            runtime_folder() / f"{order.session_id}.sock", self._command, self._viewers_changed
        )
        self._stop = asyncio.Event()
        self._why = ""
        self._last_state = ("", "")
        self._lonely_since = time.monotonic()

    def _state(self, state: str, text: str) -> None:
        if state == "blocked":
            self._blocked("log", text)
            return
        if (state, text) != self._last_state:
            self._last_state = (state, text)
            self._log.append(EngineState(state=state, pid=os.getpid(), viewers=self._control.viewers, text=text))

    def _viewers_changed(self, count: int) -> None:
        if count == 0:
            self._lonely_since = time.monotonic()
            if not self._stop.is_set():
                limit = self.order.idle_limit_s
                self._log.append(
                    Notice("info", f"nobody watches; stopping in {limit:.0f} s unless a viewer comes back")
                )

    async def _command(self, data: dict[str, Any]) -> dict[str, Any]:
        try:
            command = command_of(data)
            more = self._obey(command)
        except ValueError as error:
            return {"ok": False, "error": str(error)}
        return {"ok": True, "session": self.order.session_id, "paused": self._program.paused, **more}

    def _obey(self, command: ControlCommand) -> dict[str, Any]:
        """Do what a viewer asked; more fields of the answer.

        Raises:
            ValueError: why it is not done.
        """
        program = self._program
        if isinstance(command, StopEngine):
            self._end("stopped by a viewer")
        elif isinstance(command, (Pause, Resume)):
            program.host.set_paused(isinstance(command, Pause))
        elif isinstance(command, Clear):
            program.clear_ab()
        elif isinstance(command, ChangePlan):
            return {"plan_id": program.change(self._changed_plan(command))}
        elif isinstance(command, StartJob):
            job = checked_job(command.job)
            spec = spec_of(job)
            problems = spec.problems(program.order, job)
            for name, order in spec.launches(program.order, job).items():
                if why := program.host.pool.quarantined(order):
                    problems.append(f"{name}: {why}")
            if problems:
                raise ValueError("; ".join(problems))
            program.start_job(spec.fit(program.order, job))
        return {}

    def _changed_plan(self, command: ChangePlan) -> Order:
        order = self._program.order
        shape = parse_shape(command.shape, order.shape)
        shape = replace(
            shape, causal=shape.causal if command.causal is None else command.causal, dtype=command.dtype or shape.dtype
        )
        following, problems = changed_order(order, command.knobs, shape)
        if why := self._program.host.pool.quarantined(following):
            problems.append(why)
        if problems:
            raise ValueError("; ".join(problems))
        return following

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._stop.set()

    async def run(self) -> int:
        """Serve until stopped, idle for too long, or out of luck. Returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, f"ended by {number.name}")
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
        order = self.order
        self._log.append(
            Header(
                session_id=order.session_id,
                schema_major=SCHEMA_MAJOR,
                schema_minor=SCHEMA_MINOR,
                fa4top_version=__version__,
                argv=order.argv,
                python=platform.python_version(),
                platform=f"{platform.system()} {platform.machine()}",
                simulated=order.simulated,
            )
        )
        for text in order.notices:
            self._log.append(Notice("info", text))
        await self._control.start()
        entry = register(LiveSession(order.session_id, os.getpid(), order.folder, order.target, time.time_ns()))
        self._state("running", order.why_target)
        program = asyncio.create_task(self._program.run())
        stopping = asyncio.create_task(self._stop.wait())
        code = exits.OK
        try:
            while True:
                done, _ = await asyncio.wait({program, stopping}, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
                if program in done:
                    code = self._program_ended(program)
                    break
                if stopping in done:
                    break
                lonely = time.monotonic() - self._lonely_since
                if self._control.viewers == 0 and lonely > order.idle_limit_s:
                    self._end(f"nobody watched for {order.idle_limit_s:.0f} s")
                self._log.flush()
        finally:
            await end_task(program)
            self._log.append(
                EngineState(state="stopped", pid=os.getpid(), viewers=self._control.viewers, text=self._why, code=code)
            )
            await end_task(stopping)
            entry.unlink(missing_ok=True)
            self._close_log()
            await asyncio.sleep(0.05)  # let viewers that tail the log see its end before the socket goes
            await self._control.stop()
            if not order.record:
                shutil.rmtree(self._folder, ignore_errors=True)
        return code

    def _close_log(self) -> None:
        """A disk that is full to the end: the rest goes to the runtime folder, and viewers are told where."""
        try:
            rescued = self._log.close(runtime_folder() / f"{self.order.session_id}.rest.jsonl")
        except OSError as error:
            self._blocked("end", f"the end of the log is lost: {error.strerror}")
            return
        if rescued is not None:
            log = self._folder / LOG_NAME
            text = f"the disk is full: the end of the log is in {rescued}; append it: cat {rescued} >> {log}"
            self._blocked("end", text)

    def _blocked(self, what: str, text: str) -> None:
        """Tell viewers what can not go through the log."""
        self._control.broadcast({"event": "blocked", "what": what, "text": text})

    def _program_ended(self, program: asyncio.Task[None]) -> int:
        error = program.exception()
        if isinstance(error, Stopped):
            self._why = str(error)
            self._log.append(Notice("error", self._why))
            return error.code
        if error is not None:
            self._why = f"internal error: {type(error).__name__}: {error}"
            self._log.append(Notice("error", self._why))
            with contextlib.suppress(OSError):
                traceback.print_exception(error)
            return exits.FAULT
        return exits.OK


def main() -> int:
    """Entry point; its exit code is one of the documented ones, also when it fails by itself."""
    try:
        return asyncio.run(Engine(Order.from_json(sys.argv[1])).run())
    except Exception:
        with contextlib.suppress(OSError):  # the disk may be full
            traceback.print_exc()
        return exits.FAULT


if __name__ == "__main__":
    sys.exit(main())
