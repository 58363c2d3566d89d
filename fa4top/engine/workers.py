"""One worker process: start, command, watch, kill. Its records go to the log as they come."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from fa4top.engine.order import Order
from fa4top.records import Body, Envelope, Fault, HangReport, WorkerState
from fa4top.session.reading import Skipped, decode_line
from fa4top.targets.fork.environment import PATH_VARIABLE

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

    async def start(self, order: Order, stderr_path: Path, first: dict[str, object] | None = None) -> None:
        """Start the process under the interpreter that owns the target.

        Args:
            first: what the worker is asked instead of serving the order's target.

        Raises:
            WorkerGone: the interpreter can not be started.
        """
        await self._spawn(order, stderr_path)
        self._write({"worker": self.name, "plan_id": self.plan_id, **(first or {"request": self._request(order)})})

    async def stand_by(self, order: Order, stderr_path: Path) -> None:
        """Start the process and let it import what the target needs; ``assign`` gives it its order.

        Raises:
            WorkerGone: the interpreter can not be started.
        """
        await self._spawn(order, stderr_path)
        self._write({"worker": self.name, "plan_id": 0, "standby": {"target": order.target, "knobs": order.knobs}})

    def assign(self, order: Order, plan_id: int) -> None:
        """What the worker that stands by is to serve."""
        self.plan_id = plan_id
        self._write({"worker": self.name, "plan_id": plan_id, "request": self._request(order)})

    def _request(self, order: Order) -> dict[str, object]:
        return {
            "target": order.target,
            "shape": asdict(order.shape),
            "knobs": order.knobs,
            "twin": self.twin,
            "seed": order.seed,
            "device": 0,
            "gpu_uuid": order.gpu_uuid,
            "detail": order.detail,
            "inflight": order.inflight,
            "probe_set": order.probe_set,
            "fault": order.sim_fault,
            "options": {"stream": str(self.plan_id)},
        }

    async def _spawn(self, order: Order, stderr_path: Path) -> None:
        environment = dict(os.environ)
        if order.gpu_uuid and not order.simulated:
            # by UUID: CUDA's and NVML's indices disagree on real nodes
            environment["CUDA_VISIBLE_DEVICES"] = order.gpu_uuid
        environment["PYTHONUNBUFFERED"] = "1"
        if order.fa4_path:
            environment[PATH_VARIABLE] = order.fa4_path
        try:
            self._process = await asyncio.create_subprocess_exec(
                order.python,
                str(BOOTSTRAP),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                limit=LINE_LIMIT,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerGone(
                Fault(
                    self.name,
                    self.plan_id,
                    "no interpreter",
                    f"{order.python}: {error.strerror}",
                    "give a Python >= 3.10 with --python PATH",
                )
            ) from error
        self._tasks = [asyncio.create_task(self._read_records()), asyncio.create_task(self._read_stderr(stderr_path))]

    @property
    def pid(self) -> int | None:
        """Process id while it lives."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def _write(self, message: dict[str, object]) -> None:
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
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
            reason = "hang" if doing == "ready" else "timeout"
            raise WorkerGone(
                Fault(
                    self.name,
                    self.plan_id,
                    reason,
                    f"no answer for {deadline_s:.1f} s while {doing}; the worker was killed",
                    "a lost signal hangs the kernel: check knobs that changed last, run with --inflight"
                    if reason == "hang"
                    else "the compile may need longer, or the machine is busy",
                    list(self._tail),
                )
            ) from None
        if isinstance(record, Envelope) and isinstance(record.body, HangReport):
            self.kill()
            await self._ended()
            raise WorkerGone(self._hang_fault(record.body))
        if record is None:
            await self._ended()
            raise WorkerGone(self.end_fault())
        return record

    def _hang_fault(self, report: HangReport) -> Fault:
        return Fault(
            self.name,
            self.plan_id,
            "hang",
            f"a launch did not end within {report.deadline_s:.1f} s while {report.state}; the worker was killed. "
            + report.text,
            "a signal that nobody sends hangs the kernel: look at the knobs that changed last",
            list(self._tail),
        )

    def end_fault(self) -> Fault:
        """Why the ended process ended, as far as it said or its exit code tells."""
        code = self._process.returncode if self._process else None
        if self._fault is not None:
            fault = self._fault
            return Fault(fault.worker, fault.plan_id, fault.reason, fault.text, fault.hint, list(self._tail))
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            hint = "dmesg may tell of the OOM killer" if name == "SIGKILL" else "the worker's log may say more"
            return Fault(self.name, self.plan_id, "killed", f"the worker was ended by {name}", hint, list(self._tail))
        return Fault(
            self.name,
            self.plan_id,
            "ended",
            f"the worker ended with code {code} and no word",
            "the worker's log may say more; fa4top doctor checks its interpreter",
            list(self._tail),
        )

    def tell(self, command: dict[str, object]) -> None:
        """Send a command."""
        self._write(command)

    async def ask(self, command: dict[str, object], kind: str, deadline_s: float) -> Body:
        """Send a command and wait for its answer. The answer to a request that was cut short comes first: it is not
        taken for this one's."""
        while self._owed:
            await self.wait_for(self._owed[0], deadline_s)
            self._owed.pop(0)
        # the worker notices first that a launch does not end: it can read what was recorded
        self._write({**command, "deadline_s": WATCH_SHARE * deadline_s} if kind != "check" else command)
        self._owed.append(kind)
        answer = await self.wait_for(kind, deadline_s)
        self._owed.pop()
        return answer

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
            self._write({"do": "stop"})
            try:
                await asyncio.wait_for(self._process.wait(), grace_s)
            except asyncio.TimeoutError:
                self.kill()
        await self._ended()
