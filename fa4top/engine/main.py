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
from fa4top.engine.ab import arm_orders
from fa4top.engine.check import check_orders
from fa4top.engine.control import Command, ControlServer
from fa4top.engine.jobs import AbJob, BenchJob, CheckJob, SweepJob, job_from_data
from fa4top.engine.live import LiveProgram, Stopped, replanned
from fa4top.engine.order import Order
from fa4top.engine.sessionlog import SessionLog
from fa4top.engine.sweep import settings_of
from fa4top.engine.tasks import end_task
from fa4top.records import SCHEMA_MAJOR, SCHEMA_MINOR, EngineState, Header, Notice
from fa4top.session.paths import LOG_NAME, LiveSession, register, runtime_folder
from fa4top.targets.base import ShapeError, parse_shape
from fa4top.targets.catalog import describe

EXIT_OK, EXIT_CHECK, EXIT_NOTHING, EXIT_FAULT = 0, 1, 3, 4


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
            self._control.broadcast({"event": "blocked", "text": text})
            return
        if (state, text) != self._last_state:
            self._last_state = (state, text)
            self._log.append(EngineState(state, os.getpid(), self._control.viewers, text))

    def _viewers_changed(self, count: int) -> None:
        if count == 0:
            self._lonely_since = time.monotonic()
            if not self._stop.is_set():
                limit = self.order.idle_limit_s
                self._log.append(
                    Notice("info", f"nobody watches; stopping in {limit:.0f} s unless a viewer comes back")
                )

    async def _command(self, command: Command) -> dict[str, Any]:
        kind = command.get("do")
        if kind == "stop":
            self._end("stopped by a viewer")
        elif kind in ("pause", "resume"):
            self._program.set_paused(kind == "pause")
        elif kind == "plan":
            return self._change(command)
        elif kind == "job":
            return self._start_job(command)
        elif kind == "clear":
            self._program.clear_ab()
        elif kind != "hello":
            return {"ok": False, "error": f"unknown command {kind}"}
        return {"ok": True, "session": self.order.session_id, "paused": self._program.paused}

    def _start_job(self, command: Command) -> dict[str, Any]:
        try:
            job = job_from_data(dict(command.get("job", {})))
        except ValueError as error:
            return {"ok": False, "error": str(error)}
        order = self._program.order
        if isinstance(job, AbJob):
            orders, problems = arm_orders(order, job)
            problems += [f"arm {n}: {why}" for n, arm in orders.items() if (why := self._program.quarantined(arm))]
            if problems:
                return {"ok": False, "error": "; ".join(problems)}
        elif isinstance(job, CheckJob):
            problems = check_orders(order, job)[2]
            if problems:
                return {"ok": False, "error": "; ".join(problems)}
        elif isinstance(job, SweepJob):
            settings = settings_of(order, job)
            if all(setting.problem for setting in settings):
                return {"ok": False, "error": settings[0].problem or "nothing to sweep"}
        elif isinstance(job, BenchJob) and (not order.gpu_uuid or order.simulated):
            # nothing to run on: compile for the chip that is shown
            job = BenchJob(job.names, job.arch or order.arch)
        self._program.start_job(job)
        return {"ok": True}

    def _change(self, command: Command) -> dict[str, Any]:
        order = self._program.order
        description = describe(order.target)
        try:
            shape = parse_shape(str(command.get("shape", "")), order.shape)
        except ShapeError as error:
            return {"ok": False, "error": str(error)}
        if "causal" in command:
            shape = replace(shape, causal=bool(command["causal"]))
        if "dtype" in command:
            shape = replace(shape, dtype=str(command["dtype"]))
        chosen = {**order.knobs, **{str(k): str(v) for k, v in dict(command.get("knobs", {})).items()}}
        knobs, problems = description.setting(chosen)
        if message := description.shape_problem(shape, order.arch, knobs):
            problems.append(message)
        if not problems and not order.unsafe and (message := description.danger(shape, order.arch, knobs)):
            problems.append(message + "; start with --unsafe to run it all the same")
        following = replanned(order, {"shape": shape, "knobs": knobs})
        if why := self._program.quarantined(following):
            problems.append(why)
        if problems:
            return {"ok": False, "error": "; ".join(problems)}
        plan_id = self._program.change(following)
        return {"ok": True, "plan_id": plan_id}

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
                order.session_id,
                SCHEMA_MAJOR,
                SCHEMA_MINOR,
                __version__,
                order.argv,
                platform.python_version(),
                f"{platform.system()} {platform.machine()}",
                order.simulated,
            )
        )
        for text in order.notices:
            self._log.append(Notice("info", text))
        await self._control.start()
        entry = register(LiveSession(order.session_id, os.getpid(), order.folder, order.target, time.time_ns()))
        self._state("running", order.why_target)
        program = asyncio.create_task(self._program.run())
        stopping = asyncio.create_task(self._stop.wait())
        code = EXIT_OK
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
            self._log.append(EngineState("stopped", os.getpid(), self._control.viewers, self._why))
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
            self._control.broadcast({"event": "blocked", "text": f"the end of the log is lost: {error.strerror}"})
            return
        if rescued is not None:
            log = self._folder / LOG_NAME
            text = f"the disk is full: the end of the log is in {rescued}; append it: cat {rescued} >> {log}"
            self._control.broadcast({"event": "blocked", "text": text})

    def _program_ended(self, program: asyncio.Task[None]) -> int:
        error = program.exception()
        if isinstance(error, Stopped):
            self._why = str(error)
            self._log.append(Notice("error", self._why))
            return EXIT_CHECK if "output is wrong" in self._why else EXIT_FAULT
        if error is not None:
            self._why = f"internal error: {type(error).__name__}: {error}"
            self._log.append(Notice("error", self._why))
            with contextlib.suppress(OSError):
                traceback.print_exception(error)
            return EXIT_FAULT
        return EXIT_OK


def main() -> int:
    """Entry point; its exit code is one of the documented ones, also when it fails by itself."""
    try:
        return asyncio.run(Engine(Order.from_json(sys.argv[1])).run())
    except Exception:
        with contextlib.suppress(OSError):  # the disk may be full
            traceback.print_exc()
        return EXIT_FAULT


if __name__ == "__main__":
    sys.exit(main())
