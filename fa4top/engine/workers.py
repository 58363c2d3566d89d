"""One worker process: start, command, watch, kill. Its records go to the log as they come."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fa4top.engine import ends
from fa4top.engine.pace import CHECK_DEADLINE_S, COMPILE_DEADLINE_S
from fa4top.orders.commands import (
    CheckOutput,
    CleanLaunches,
    LaunchRequest,
    Message,
    Serve,
    StandBy,
    Stop,
    TracedLaunch,
    to_line,
)
from fa4top.orders.order import Order
from fa4top.records import Body, Check, CleanBurst, Envelope, Fault, Geometry, HangReport, TraceSample, WorkerState
from fa4top.session.reading import Skipped, decode_line
from fa4top.targets.catalog import describe

BOOTSTRAP = Path(__file__).resolve().parent.parent / "worker" / "bootstrap.py"
TAIL_LINES = 12
LINE_LIMIT = 1 << 22
OUTPUT_LINES = 400
WATCH_SHARE = 0.8

Deliver = Callable[[Envelope], None]
Say = Callable[[str, str], None]


class WorkerGone(RuntimeError):
    """The worker is no more, or did not answer; ``fault`` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


class WorkerProcess:
    """A worker seen from the engine."""

    def __init__(self, name: str, plan_id: int, twin: str, deliver: Deliver, say: Say) -> None:
        self.name = name
        self.plan_id = plan_id
        self.twin = twin
        self.state: WorkerState | None = None
        self._deliver = deliver
        self._say = say
        self._records: asyncio.Queue[Envelope | None] = asyncio.Queue()
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._fault: Fault | None = None
        self._said = 0
        self._owed: list[str] = []  # answers that are still to come

    async def start(self, order: Order, stderr_path: Path, first: Message | None = None) -> None:
        """Start the process under the interpreter that owns the target.

        Args:
            first: what the worker is asked instead of serving the order's target.

        Raises:
            WorkerGone: the interpreter can not be started.
        """
        await self._spawn(order, stderr_path)
        self._write(first or self._serve(order))

    async def stand_by(self, order: Order, stderr_path: Path) -> None:
        """Start the process and let it import what the target needs; ``assign`` gives it its order.

        Raises:
            WorkerGone: the interpreter can not be started.
        """
        await self._spawn(order, stderr_path)
        self._write(StandBy(target=order.target, knobs=order.knobs))

    def assign(self, order: Order, plan_id: int) -> None:
        """What the worker that stands by is to serve."""
        self.plan_id = plan_id
        self._write(self._serve(order))

    def _serve(self, order: Order) -> Serve:
        request = LaunchRequest(
            target=order.target,
            shape=order.shape,
            knobs=order.knobs,
            twin=self.twin,
            seed=order.seed,
            gpu_uuid=order.gpu_uuid,
            detail=order.detail,
            inflight=order.inflight,
            probe_set=order.probe_set,
            fault=order.sim_fault,
            options={"stream": str(self.plan_id)},
        )
        return Serve(worker=self.name, plan_id=self.plan_id, request=request)

    def _environment(self, order: Order) -> dict[str, str]:
        environment = dict(os.environ)
        if order.gpu_uuid and not order.simulated:
            # by UUID: CUDA's and NVML's indices disagree on real nodes
            environment["CUDA_VISIBLE_DEVICES"] = order.gpu_uuid
        environment["PYTHONUNBUFFERED"] = "1"
        if order.source_path:
            environment[describe(order.target).path_variable] = order.source_path
        return environment

    async def _spawn(self, order: Order, stderr_path: Path) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                order.python,
                str(BOOTSTRAP),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(order),
                limit=LINE_LIMIT,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerGone(ends.no_interpreter(self._who, order.python, error)) from error
        self._tasks = [asyncio.create_task(self._read_records()), asyncio.create_task(self._read_stderr(stderr_path))]

    @property
    def pid(self) -> int | None:
        """Process id while it lives."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def _write(self, message: Message) -> None:
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write(to_line(message))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reader will see the end of the process

    async def _read_records(self) -> None:
        assert self._process and self._process.stdout
        skipped = Skipped()
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:
                continue  # a line above the limit: not ours
            if not line:
                break
            record = decode_line(line, skipped)
            if record is None:
                if skipped.broken:
                    self._say(self.name, f"a record that can not be read: {line[:200].decode(errors='replace')}")
                    skipped.broken = 0
                continue
            if isinstance(record.body, Fault):
                # the engine adds the last of stderr when the process has ended
                self._fault = record.body
                continue
            if isinstance(record.body, WorkerState):
                self.state = record.body
            self._deliver(record)
            self._records.put_nowait(record)
        self._records.put_nowait(None)

    async def _read_stderr(self, path: Path) -> None:
        assert self._process and self._process.stderr
        with path.open("ab") as file:
            while True:
                try:
                    line = await self._process.stderr.readline()
                except ValueError:
                    continue
                if not line:
                    return
                try:
                    file.write(line)
                    file.flush()
                except OSError:
                    pass  # a full disk must not stop the pipe
                text = line.decode(errors="replace").rstrip()
                self._tail.append(text)
                self._said += 1
                if text and self._said <= OUTPUT_LINES:
                    more = " (the rest is in the worker's log file)" if self._said == OUTPUT_LINES else ""
                    self._say(self.name, text[:400] + more)

    async def wait_for(self, kind: str, deadline_s: float, state: str = "") -> Body:
        """The next record of this kind (and worker state).

        Raises:
            WorkerGone: the process ended, or the deadline passed (then it is killed: reason 'hang').
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline_s
        while True:
            record = await self.wait_for_any(max(0.01, end - loop.time()), deadline_s)
            if record.kind == kind:
                body = record.body
                if not state or (isinstance(body, WorkerState) and body.state == state):
                    return body

    async def wait_for_any(self, rest_s: float, deadline_s: float = 0.0) -> Envelope:
        """The next record of any kind, within ``rest_s`` of the ``deadline_s`` that a fault would name.

        Raises:
            WorkerGone: as in ``wait_for``.
        """
        deadline_s = deadline_s or rest_s
        try:
            record = await asyncio.wait_for(self._records.get(), rest_s)
        except asyncio.TimeoutError:
            doing = self.state.state if self.state else "starting"
            self.kill()
            await self._ended()
            raise WorkerGone(ends.silent(self._who, doing, deadline_s)) from None
        if isinstance(record, Envelope) and isinstance(record.body, HangReport):
            self.kill()
            await self._ended()
            raise WorkerGone(ends.hung(self._who, record.body))
        if record is None:
            await self._ended()
            raise WorkerGone(self.end_fault())
        return record

    def end_fault(self) -> Fault:
        """Why the ended process ended, as far as it said or its exit code tells."""
        code = self._process.returncode if self._process else None
        return ends.ended(self._who, code, self._fault)

    @property
    def _who(self) -> ends.Who:
        return ends.Who(self.name, self.plan_id, tuple(self._tail))

    async def ask(self, command: Message, deadline_s: float) -> Body:
        """Send a command and wait for its answer. The answer to a request that was cut short comes first: it is not
        taken for this one's.

        Raises:
            WorkerGone: as in ``wait_for``.
        """
        while self._owed:
            await self.wait_for(self._owed[0], deadline_s)
            self._owed.pop(0)
        if hasattr(command, "deadline_s"):
            # the worker notices first that a launch does not end: it can read what was recorded
            command = replace(command, deadline_s=WATCH_SHARE * deadline_s)  # type: ignore[type-var]
        self._write(command)
        self._owed.append(command.answer)
        answer = await self.wait_for(command.answer, deadline_s)
        self._owed.pop()
        return answer

    async def compiled(self) -> WorkerState:
        """Wait until it has compiled.

        Raises:
            WorkerGone: it could not.
        """
        state = await self.wait_for("worker", COMPILE_DEADLINE_S, "compiled")
        assert isinstance(state, WorkerState)
        return state

    async def check(self) -> Check:
        """Its output against FP32; the worker is then ready, or has failed.

        Raises:
            WorkerGone: it did not answer.
        """
        answer = await self.ask(CheckOutput(), CHECK_DEADLINE_S)
        assert isinstance(answer, Check)
        await self.wait_for("worker", CHECK_DEADLINE_S, "ready" if answer.passed else "failed")
        return answer

    async def clean(self, command: CleanLaunches, deadline_s: float) -> CleanBurst:
        """A burst of the clean twin.

        Raises:
            WorkerGone: it did not answer.
        """
        burst = await self.ask(command, deadline_s)
        assert isinstance(burst, CleanBurst)
        return burst

    async def trace(self, command: TracedLaunch, deadline_s: float) -> TraceSample:
        """One traced launch.

        Raises:
            WorkerGone: it did not answer.
        """
        sample = await self.ask(command, deadline_s)
        assert isinstance(sample, TraceSample)
        return sample

    @property
    def geometry(self) -> Geometry | None:
        """How its kernel lies on the chip, once it is compiled."""
        return self.state.geometry if self.state else None

    def kill(self) -> None:
        """End the process group at once."""
        if self.pid is not None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass

    async def _ended(self) -> None:
        assert self._process
        await self._process.wait()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Ask it to stop, then kill it."""
        if self._process is None:
            return
        if self.pid is not None:
            self._write(Stop())
            try:
                await asyncio.wait_for(self._process.wait(), grace_s)
            except asyncio.TimeoutError:
                self.kill()
        await self._ended()
