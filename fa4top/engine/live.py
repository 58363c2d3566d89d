"""The live program: keep a clean and a traced twin, alternate their bursts, survive what happens to them."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from fa4top.engine.ab import run_ab
from fa4top.engine.bench import JobFailed, run_bench
from fa4top.engine.check import run_check
from fa4top.engine.gpulock import GpuLock
from fa4top.engine.gpus import GpuError, Telemetry, choose_gpu, list_gpus
from fa4top.engine.jobs import (
    AbJob,
    BenchJob,
    CheckJob,
    Job,
    Resident,
    SassJob,
    TriageJob,
    changed_order,
    job_from_data,
)
from fa4top.engine.order import Order
from fa4top.engine.pace import (
    CHECK_DEADLINE_S,
    COMPILE_DEADLINE_S,
    LEAST_DEADLINE_S,
    MAX_BURST,
    burst_launches,
    launch_deadline_s,
    recording_cta,
)
from fa4top.engine.sass_job import run_sass
from fa4top.engine.sessionlog import SessionLog
from fa4top.engine.standby import Standby
from fa4top.engine.sweep import run_sweep
from fa4top.engine.tasks import end_task
from fa4top.engine.triage import run_triage
from fa4top.engine.workers import WorkerGone, WorkerProcess
from fa4top.records import (
    AbState,
    Body,
    Check,
    CleanBurst,
    Envelope,
    GpuSample,
    HangReport,
    Notice,
    Output,
    TraceSample,
    WorkerState,
)

FIRST_BURST_DEADLINE_S = 60.0
NVML_PERIOD_S = 0.5
TIMELINE_PERIOD_S = 1.0
RESTARTS, RESTART_WINDOW_S = 3, 60.0
MOST_HANGS = 2
# faults that a fresh process would only repeat
PERMANENT = frozenset(
    {
        "missing package",
        "no interpreter",
        "unsupported GPU",
        "compile error",
        "unknown package layout",
        "probes missing",
        "unknown probe set",
        "out of memory",
    }
)


class Stopped(Exception):
    """The program was asked to end, or can not go on; the text says which."""


class LiveProgram:
    """Runs one plan after another until it is stopped; a job (bench, sweep) comes before the plan goes on."""

    def __init__(self, order: Order, log: SessionLog, on_state: Callable[[str, str], None]) -> None:
        self.order = order
        self._log = log
        self._on_state = on_state
        self._lock = GpuLock(order.gpu_uuid, order.session_id) if order.gpu_uuid and not order.simulated else None
        self._telemetry: Telemetry | None = None
        self._telemetry_due = 0.0
        self._plan_id = 0
        self._plan_id_running = 0
        self._workers: dict[str, WorkerProcess] = {}
        self._deaths: deque[float] = deque()
        self._starts = 0
        self._rounds = 0
        self._launch_us: float | None = None
        self._timeline_due = 0.0
        self._foreign: tuple[int, ...] = ()
        self._checks: dict[str, Check] = {}
        self._running: Order | None = None  # what the workers were started for
        self.paused = False
        self._replan: Order | None = None
        self._job: Job | None = job_from_data(order.job) if order.job else None
        self._next_job: Job | None = None
        self._ab: AbState | None = None
        self._simulated_gpu: GpuSample | None = None
        self._clear = False
        self._hangs: dict[str, int] = {}
        self._launched: dict[str, Order] = {}  # by worker
        self._locked = False
        self._job_workers: set[WorkerProcess] = set()
        self._standby = Standby(self._fresh)
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()

    def say(self, level: str, text: str) -> None:
        """A sentence for the person."""
        self._log.append(Notice(level, text))

    def append(self, body: Body) -> None:
        """Add a record to the log."""
        if isinstance(body, AbState):
            self._ab = body
        self._log.append(body)

    def next_plan_id(self) -> int:
        """Number of a plan to come."""
        self._plan_id += 1
        return self._plan_id

    def _deliver(self, record: Envelope) -> None:
        body = record.body
        if isinstance(body, GpuSample):
            self._simulated_gpu = body  # only simulated devices read themselves
        elif isinstance(body, HangReport) and body.worker in self._launched:
            key = launch_key(self._launched[body.worker])
            self._hangs[key] = self._hangs.get(key, 0) + 1
        self._log.append(record.body, record.source, record.wall_ns, record.mono_ns)

    def set_paused(self, paused: bool) -> None:
        """Stop or resume launching."""
        self.paused = paused
        self._on_state("paused" if paused else "running", "")
        self._wake.set()

    def change(self, order: Order) -> int:
        """Go on with another shape or setting, in fresh workers. Returns the plan's number."""
        self._replan = order
        self._changed.set()
        return self._plan_id + 1

    def quarantined(self, order: Order) -> str:
        """Why this setting is not launched again in this session; '' when it may be."""
        hangs = self._hangs.get(launch_key(order), 0)
        return (
            f"this setting hung {hangs} times in this session: it is not launched again" if hangs >= MOST_HANGS else ""
        )

    def start_job(self, job: Job) -> None:
        """Interrupt what runs, do this, then go on with the plan."""
        self._next_job = job
        self._changed.set()

    def clear_ab(self) -> None:
        """End the A/B that runs, if any, and forget it; the plan goes on."""
        self._clear = True
        if isinstance(self._job, AbJob):
            self._changed.set()
        else:
            self._cleared()

    def _cleared(self) -> None:
        self._clear = False
        if self._ab is not None:
            self.append(replace(self._ab, state="cleared", text="cleared by a viewer"))
            self._ab = None

    async def run(self) -> None:
        """Until cancelled, or until workers keep dying (Stopped), or until the order's job is done."""
        await self._take_gpu()
        try:
            while True:
                await self._until_replanned()
                if self.order.job and not self.order.stay:
                    return
        finally:
            await self.close()

    async def _do_job(self, job: Job) -> None:
        if not isinstance(job, AbJob) or self.resident(changed_order(self.order, job.a)[0]) is None:
            await self._stop_workers()
        self._on_state("running", f"{job.kind} runs")
        try:
            if isinstance(job, BenchJob):
                await run_bench(self, job)
            elif isinstance(job, AbJob):
                await run_ab(self, job)
            elif isinstance(job, SassJob):
                await run_sass(self, job)
            elif isinstance(job, TriageJob):
                await run_triage(self, job)
            elif isinstance(job, CheckJob):
                await run_check(self, job)
            else:
                await run_sweep(self, job)
        except JobFailed as error:
            if not self.order.stay:
                raise Stopped(str(error)) from error
            self.say("error", str(error))
        finally:
            await asyncio.gather(*(self.end_worker(worker) for worker in list(self._job_workers)))
        self._job = None
        self._on_state("running", f"{job.kind} done")

    async def start_worker(self, twin: str, order: Order, plan_id: int, bench: BenchJob | None = None) -> WorkerProcess:
        """A fresh worker for a job; one that stands by, if it fits."""
        if bench is None and (ready := self._standby.take(twin, order)) is not None:
            self._job_workers.add(ready)
            self._launched[ready.name] = order
            ready.assign(order, plan_id)
            return ready
        self._starts += 1
        worker = WorkerProcess(f"{twin}{self._starts}", plan_id, twin, self._deliver, self._output)
        self._job_workers.add(worker)
        self._launched[worker.name] = order
        first: dict[str, object] | None = None
        if bench is not None:
            first = {"job": "bench", "names": bench.names, "arch": bench.arch}
        await worker.start(order, Path(order.folder) / f"{worker.name}.stderr", first)
        return worker

    def _fresh(self, twin: str) -> WorkerProcess:
        self._starts += 1
        return WorkerProcess(f"{twin}{self._starts}", 0, twin, self._deliver, self._output)

    def resident(self, order: Order) -> Resident | None:
        """The live plan's twins when they run this order: they may be used, not ended."""
        clean, traced = self._workers.get("clean"), self._workers.get("traced")
        if clean is None or traced is None or self._running is None or not same_launch(self._running, order):
            return None
        healthy = all(w.pid is not None and w.state is not None and w.state.state == "ready" for w in (clean, traced))
        return Resident(self._plan_id_running, clean, traced, self._checks["clean"]) if healthy else None

    async def live_round(self) -> None:
        """One round of the live plan, so that its screen goes on while a job gets ready."""
        await self._round()

    async def end_worker(self, worker: WorkerProcess) -> None:
        """Stop a worker of a job."""
        self._job_workers.discard(worker)
        await worker.stop(1.0 if worker.state and worker.state.state == "ready" else 0.1)

    async def unpaused(self) -> None:
        """Return when launching is allowed and what is recorded can be written."""
        while self.paused or not self._log.flush():
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), 0.5)
            except asyncio.TimeoutError:
                pass

    async def _until_replanned(self) -> None:
        """Run the present job or plan; a change of plan cuts it short, also in the middle of a compile."""
        plan = asyncio.create_task(self._do_job(self._job) if self._job else self._run_plan())
        change = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({plan, change}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_task(change)
            failure = await end_task(plan)
        if isinstance(failure, Stopped) and self.order.stay:
            self.say("error", str(failure))
            self._on_state("failed", str(failure))
            await self._stop_workers()
            await self._changed.wait()
            self._deaths.clear()
            self._on_state("running", "")
        elif isinstance(failure, Exception):
            raise failure
        self._changed.clear()
        if self._clear:
            self._cleared()
        self.order, self._replan = self._replan or self.order, None
        # a job that was cut short is over
        self._job, self._next_job = self._next_job, None

    async def close(self) -> None:
        """Stop the workers and let go of the GPU."""
        await self._stop_workers()
        await self._standby.close()
        self._release_clock()
        if self._lock is not None:
            self._lock.release()

    async def _take_gpu(self) -> None:
        if self._lock is None:
            return
        began = time.monotonic()
        said = ""
        while (holder := self._lock.acquire()) is not None:
            sentence = holder.sentence()
            if time.monotonic() - began >= self.order.wait_gpu_s:
                raise Stopped(sentence)
            if sentence != said:
                said = sentence
                self.say("warning", f"waiting: {sentence}")
                self._on_state("waiting", sentence)
            await asyncio.sleep(0.5)
        self._on_state("running", "")
        try:
            self._telemetry = Telemetry(choose_gpu(self.order.gpu_uuid, list_gpus()))
        except GpuError as error:
            self.say("warning", f"no GPU readings: {error}")
        self._lock_clock()

    def _lock_clock(self) -> None:
        mhz = self.order.lock_mhz
        if not mhz or self._telemetry is None:
            return
        if why := self._telemetry.lock_clock(mhz):
            self.say("warning", f"the SM clock could not be locked at {mhz} MHz ({why}); it runs free")
            return
        self._locked = True
        self.say("info", f"SM clock locked at {mhz} MHz; if this engine is killed, nvidia-smi -rgc releases it")

    def _release_clock(self) -> None:
        if self._locked and self._telemetry is not None:
            self._locked = False
            if why := self._telemetry.release_clock():
                self.say("error", f"the SM clock is still locked ({why}): nvidia-smi -rgc releases it")

    async def _run_plan(self) -> None:
        order = self.order
        if self.resident(order) is None:
            self._plan_id += 1
            self._plan_id_running = self._plan_id
            self._launch_us = None
            self._checks = {}
            self._log.append(order.plan(self._plan_id))
            await self._stop_workers()
            self._running = order
        while True:
            try:
                await self._ready("clean", "traced")
                if order.stay:
                    await self._standby.fill(order)
                await self._round()
            except WorkerGone as gone:
                await self._lost(gone)

    async def _ready(self, *twins: str) -> None:
        """Both twins compiled at the same time, then checked one after the other."""
        missing = [twin for twin in twins if twin not in self._workers]
        if not missing:
            return
        fresh = []
        for twin in missing:
            self._starts += 1
            name = f"{twin}{self._starts}"
            worker = WorkerProcess(name, self._plan_id_running, twin, self._deliver, self._output)
            self._workers[twin] = worker
            self._launched[name] = self.order
            await worker.start(self.order, Path(self.order.folder) / f"{worker.name}.stderr")
            fresh.append(worker)
        for worker in fresh:
            state = await worker.wait_for("worker", COMPILE_DEADLINE_S, "compiled")
            if isinstance(state, WorkerState) and (warning := state.versions.get("warning")):
                self.say("warning", f"{worker.name}: {warning}")
        # the traced twin first: when the first launch hangs, it can tell where
        for worker in sorted(fresh, key=lambda worker: worker.twin != "traced"):
            answer = await worker.ask({"do": "check"}, "check", CHECK_DEADLINE_S)
            assert isinstance(answer, Check)
            if not answer.passed:
                raise Stopped(f"the {worker.twin} twin's output is wrong, so it shows no numbers: {answer.text}")
            self._checks[worker.twin] = answer
            await worker.wait_for("worker", LEAST_DEADLINE_S * 5, "ready")
        if len({check.output_hash for check in self._checks.values()}) == 2:
            self.say(
                "error",
                "the traced twin's output differs from the clean twin's bit by bit: probes must not "
                "change results; do not trust this trace",
            )

    def _output(self, worker: str, text: str) -> None:
        self._log.append(Output(worker, text))

    def _deadline(self) -> float:
        if self._launch_us is None:
            return FIRST_BURST_DEADLINE_S
        return launch_deadline_s(self._launch_us, MAX_BURST)

    async def _round(self) -> None:
        """One clean and one traced burst under the token, readings between them, then rest."""
        began = time.monotonic()
        if self.paused or not self._log.flush():
            if not self.paused:
                self._on_state("blocked", self._log.blocked or "")
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), 0.5)
            except asyncio.TimeoutError:
                pass
            if not self.paused and self._log.flush():
                self._on_state("running", "")
            return
        launches = 3 if self._launch_us is None else burst_launches(self._launch_us)
        burst = await self._workers["clean"].ask({"do": "clean", "launches": launches}, "clean", self._deadline())
        assert isinstance(burst, CleanBurst)
        self._launch_us = sorted(burst.times_us)[len(burst.times_us) // 2]
        state = self._workers["traced"].state
        timeline = began >= self._timeline_due
        if timeline:
            self._timeline_due = began + TIMELINE_PERIOD_S
        cta = recording_cta(state.geometry if state else None, self._rounds)
        sample = await self._workers["traced"].ask(
            {"do": "trace", "cta": cta, "timeline": timeline}, "trace", self._deadline()
        )
        assert isinstance(sample, TraceSample)
        self._rounds += 1
        self.read_gpu()
        rest = 1.0 / self.order.rounds_per_s - (time.monotonic() - began)
        self._wake.clear()
        try:
            await asyncio.wait_for(self._wake.wait(), max(0.002, rest))
        except asyncio.TimeoutError:
            pass

    def read_gpu(self) -> None:
        """NVML's readings, if they are due."""
        if time.monotonic() >= self._telemetry_due:
            self.gpu_now()

    def gpu_now(self) -> GpuSample | None:
        """NVML's readings at this moment, recorded; None where there are none."""
        if self._telemetry is None:
            return self._simulated_gpu
        self._telemetry_due = time.monotonic() + NVML_PERIOD_S
        workers = (*self._workers.values(), *self._job_workers)
        own = frozenset(w.pid for w in workers if w.pid is not None)
        sample = self._telemetry.read(own)
        self._log.append(sample)
        if tuple(sample.foreign_pids) != self._foreign:
            self._foreign = tuple(sample.foreign_pids)
            if self._foreign:
                pids = ", ".join(map(str, self._foreign))
                self.say("warning", f"other processes compute on this GPU (pid {pids}): times are not to be trusted")
        return sample

    def held_back(self) -> dict[str, int]:
        """NVML's counters of clocks held back at this moment; {} where there are none."""
        return self._telemetry.held_back() if self._telemetry else {}

    async def _lost(self, gone: WorkerGone) -> None:
        """Record the fault and start over with a fresh process, unless it keeps happening."""
        self._log.append(gone.fault)
        for twin, worker in list(self._workers.items()):
            if worker.name == gone.fault.worker or worker.pid is None:
                if worker.name != gone.fault.worker:
                    self._log.append(worker.end_fault())  # it died too
                await worker.stop(0.2)
                del self._workers[twin]
        now = time.monotonic()
        self._deaths.append(now)
        while self._deaths and self._deaths[0] < now - RESTART_WINDOW_S:
            self._deaths.popleft()
        if gone.fault.reason == "hang" and (why := self.quarantined(self.order)):
            raise Stopped(f"{why}; the last: {gone.fault.text}")
        if gone.fault.reason in PERMANENT:
            raise Stopped(f"{gone.fault.reason}: {gone.fault.text}. {gone.fault.hint}")
        if len(self._deaths) > RESTARTS:
            raise Stopped(f"workers died {len(self._deaths)} times within a minute; the last: {gone.fault.text}")
        self.say("info", f"starting a fresh worker for {gone.fault.worker}")

    async def _stop_workers(self) -> None:
        workers, self._workers = list(self._workers.values()), {}
        # one that compiles does not hear: it holds nothing, so it need not be asked for long
        await asyncio.gather(*(w.stop(2.0 if w.state and w.state.state == "ready" else 0.1) for w in workers))


def same_launch(a: Order, b: Order) -> bool:
    """Would workers of one order do for the other?"""
    names = (
        "target",
        "shape",
        "knobs",
        "seed",
        "python",
        "gpu_uuid",
        "detail",
        "inflight",
        "probe_set",
        "sim_fault",
        "fa4_path",
    )
    return all(getattr(a, name) == getattr(b, name) for name in names)


def launch_key(order: Order) -> str:
    """Names what is launched: target, shape and setting."""
    return json.dumps([order.target, asdict(order.shape), order.knobs], sort_keys=True)


def replanned(order: Order, changes: dict[str, object]) -> Order:
    """The order with the plan's fields changed; only fields that a viewer may change are taken."""
    allowed = {"shape", "knobs", "detail", "probe_set", "seed"}
    return replace(order, **{name: value for name, value in changes.items() if name in allowed})  # type: ignore[arg-type]
