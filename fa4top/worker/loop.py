"""The worker's life: one request on standard input, then commands, one at a time, until stop or end of input."""

from __future__ import annotations

import os
import sys
import time
import traceback
from dataclasses import replace
from math import isfinite

import numpy as np

from fa4top.analysis.compare.outputs import OutputDifference, compare_outputs
from fa4top.analysis.trace.hangs import explain, role_states
from fa4top.analysis.trace.sample import Sampling, decode_capture, trace_sample
from fa4top.orders import exits
from fa4top.orders.commands import (
    Bench,
    CheckOutput,
    CleanLaunches,
    Compile,
    LaunchRequest,
    Message,
    RepeatLaunches,
    Serve,
    StandBy,
    Stop,
    TracedLaunch,
    from_line,
)
from fa4top.records import Check, CleanBurst, Geometry, HangReport, Repeats, WorkerState
from fa4top.targets.catalog import describe
from fa4top.targets.launcher import Launcher, TargetError
from fa4top.targets.references import load
from fa4top.worker import faults
from fa4top.worker.channel import Channel, take_stdout
from fa4top.worker.watch import Watch

TELEMETRY_PERIOD_S = 0.5
CHECK_DEADLINE_S = 30.0  # one launch, and a few rows on the CPU
WORST_ERROR = 1e9


def main() -> int:
    """Entry point of the process; returns its exit code."""
    out = take_stdout()
    message = _next_message()
    if isinstance(message, StandBy):
        stand_by(message)
        message = _next_message()
    try:
        if isinstance(message, Serve):
            channel = Channel(out, sys.stdin, message.worker)
            return _Worker(channel, message.request, message.worker, message.plan_id).run()
        if isinstance(message, Compile):
            from fa4top.worker.compiling import run_compile

            return run_compile(message)
        if isinstance(message, Bench):
            from fa4top.worker.bench import run_bench

            return run_bench(Channel(out, sys.stdin, message.worker), message)
    except BrokenPipeError:
        pass  # the engine is gone
    return 0


def _next_message() -> Message | None:
    line = sys.stdin.readline()
    return from_line(line) if line else None


def stand_by(what: StandBy) -> None:
    """Import ahead what the target's launcher needs. What fails here fails again, with its reason, once there is an
    order."""
    prepare = describe(what.target).prepare
    if prepare:
        try:
            load(prepare)(what.knobs)
        except Exception:
            traceback.print_exc()


class _Worker:
    def __init__(self, channel: Channel, request: LaunchRequest, worker: str, plan_id: int) -> None:
        self._channel = channel
        self._request = request
        self._worker = worker
        self._plan_id = plan_id
        self._launch = 0
        self._telemetry_due = 0.0
        self._launcher: Launcher | None = None
        self._watch = Watch(self._hangs)
        self._doing = "starting"
        self._geometry: Geometry | None = None

    def _hangs(self, deadline_s: float) -> None:
        """In the watch's thread: the main one is stuck in a launch."""
        launcher = self._launcher
        text, roles = "no probes in this twin: nothing can be read", []
        try:
            capture = launcher.hung_capture() if launcher else None
            if launcher is not None and capture is not None:
                found = decode_capture(capture, launcher.layout, launcher.family)
                states = role_states(found.traces, launcher.layout.roles, launcher.family)
                text, roles = explain(states, launcher.family), [state.sentence() for state in states]
        except Exception as error:
            if isinstance(error, TargetError):
                text = error.text
            else:
                traceback.print_exc()
                text = f"its buffer could not be read: {type(error).__name__}: {error}"
        text += self._danger()
        self._channel.send(
            HangReport(
                worker=self._worker,
                plan_id=self._plan_id,
                deadline_s=deadline_s,
                state=self._doing,
                text=text,
                roles=roles,
            )
        )

    def _state(self, state: str, text: str = "", progress: float | None = None) -> None:
        self._doing = state
        launcher = self._launcher
        self._channel.send(
            WorkerState(
                worker=self._worker,
                plan_id=self._plan_id,
                twin=self._request.twin,
                state=state,
                pid=os.getpid(),
                text=text,
                progress=progress,
                versions=dict(launcher.versions) if launcher else {},
                geometry=self._geometry,
                probe_sets=list(launcher.probe_sets) if launcher else [],
                roles=launcher.family.role_map if launcher else None,
            )
        )

    def run(self) -> int:
        """Compile, then serve commands. A fault ends the process: CUDA errors are sticky."""
        try:
            self._state("importing")
            description = describe(self._request.target)
            self._launcher = load(description.launcher)(self._request)
            assert self._launcher is not None
            geometry = self._launcher.compile(lambda text, progress: self._state("compiling", text, progress))
            if description.work is not None:
                work = description.work(self._request.shape, self._launcher.arch, self._request.knobs)
                geometry = replace(geometry, work=work)
            self._geometry = geometry
            self._state("compiled")
            for command in self._channel.commands():
                if isinstance(command, Stop):
                    break
                with self._watch.guard(getattr(command, "deadline_s", None) or CHECK_DEADLINE_S):
                    self._obey(command)
            self._launcher.close()
            self._state("stopped")
        except BrokenPipeError:
            raise
        except BaseException as error:
            self._fault(error)
            return exits.FAULT
        return 0

    def _obey(self, command: Message) -> None:
        launcher = self._launcher
        assert launcher is not None
        if isinstance(command, CheckOutput):
            self._state("checking")
            self._check()
        elif isinstance(command, RepeatLaunches):
            self._repeat(command)
        elif isinstance(command, CleanLaunches):
            burst = launcher.clean_burst(command.launches, command.l2, command.primers)
            self._launch += len(burst.times_us)
            self._channel.send(
                CleanBurst(
                    worker=self._worker,
                    plan_id=self._plan_id,
                    launch=self._launch,
                    times_us=burst.times_us,
                    sm_clock_mhz=burst.sm_clock_mhz,
                    l2=burst.l2,
                    host_us=burst.host_us,
                )
            )
        elif isinstance(command, TracedLaunch):
            self._trace(command)

    def _trace(self, command: TracedLaunch) -> None:
        launcher = self._launcher
        assert launcher is not None and self._geometry is not None
        capture = launcher.traced_launch(command.cta)
        self._launch += 1
        sampling = Sampling(
            self._worker,
            self._plan_id,
            self._launch,
            launcher.probe_set,
            self._request.detail,
            command.timeline,
            self._geometry.steps_per_tile,
        )
        self._channel.send(trace_sample(capture, launcher.layout, launcher.family, sampling))
        self._telemetry()

    def _telemetry(self) -> None:
        assert self._launcher is not None
        now = time.monotonic()
        if now < self._telemetry_due:
            return
        self._telemetry_due = now + TELEMETRY_PERIOD_S
        if (reading := self._launcher.telemetry()) is not None:
            self._channel.send(reading)

    def _check(self) -> None:
        assert self._launcher is not None
        result = self._launcher.check()
        passed = result.rms_error <= result.limit
        broken = not isfinite(result.rms_error)
        seen = (
            "NaN, infinity or elements that nobody wrote"
            if broken
            else f"RMS error {result.rms_error:.2e} of the output's RMS"
        )
        text = (
            f"{result.rows} rows against FP32: {seen}, "
            f"{'within' if passed else 'ABOVE'} {result.limit:g}{'' if passed else self._danger()}"
        )
        self._channel.send(
            Check(
                worker=self._worker,
                plan_id=self._plan_id,
                twin=self._request.twin,
                passed=passed,
                rows=result.rows,
                max_error=min(result.max_error, WORST_ERROR),  # a record holds no infinity
                rms_error=min(result.rms_error, WORST_ERROR),
                limit=result.limit,
                output_hash=result.output_hash,
                text=text,
            )
        )
        self._state("ready" if passed else "failed", text)

    def _repeat(self, command: RepeatLaunches) -> None:
        """Many launches of this setting; the first output is kept, or compared with the one that was."""
        assert self._launcher is not None
        times = command.times
        first = self._launcher.output()
        flaky, worst = 0, OutputDifference(elements=0, total=first.size, max=0.0, where="")
        for number in range(2, times + 1):
            found = compare_outputs(first, self._launcher.output())
            flaky += not found.equal
            worst = max(worst, found, key=lambda each: each.elements)
            self._state("checking", f"launch {number} of {times}, {flaky} differ", number / times)
        against, difference = "", OutputDifference(elements=0, total=first.size, max=0.0, where="")
        if command.against:
            difference = compare_outputs(np.load(command.against, allow_pickle=False), first)
            against = "bitwise" if difference.equal else "differs"
        elif command.keep:
            np.save(command.keep, first)
        self._channel.send(
            Repeats(
                worker=self._worker,
                plan_id=self._plan_id,
                setting=command.setting,
                times=times,
                flaky_launches=flaky,
                flaky_elements=worst.elements,
                elements=first.size,
                where=worst.where,
                against=against,
                differing_elements=difference.elements,
                max_difference=min(difference.max, WORST_ERROR),
                differs_where=difference.where,
                inputs=self._launcher.inputs_digest(),
            )
        )

    def _danger(self) -> str:
        """What is known to be wrong with the setting, to be added to what went wrong; '' when nothing is."""
        request, arch = self._request, self._launcher.arch if self._launcher else ""
        known = describe(request.target).danger(request.shape, arch, request.knobs)
        return f". The setting is known to be dangerous: {known}" if known else ""

    def _fault(self, error: BaseException) -> None:
        traceback.print_exc()
        stage = faults.COMPILING if self._geometry is None and self._launcher is not None else faults.RUNNING
        self._channel.send(faults.fault_of(error, self._worker, self._plan_id, stage, self._danger()))
