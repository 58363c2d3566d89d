"""The worker's life: one request on standard input, then commands, one at a time, until stop or end of input."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from math import isfinite
from typing import Any

import numpy as np

from fa4top.analysis.hangs import explain, role_states
from fa4top.analysis.outputs import Difference, compare_outputs
from fa4top.analysis.sample import analyse_capture
from fa4top.records import Check, CleanBurst, Fault, Geometry, HangReport, Repeats, Shape, WorkerState
from fa4top.targets.catalog import describe
from fa4top.targets.launcher import PRIMERS, WARM, Launcher, LaunchRequest, TargetError
from fa4top.worker import faults
from fa4top.worker.channel import Channel, take_stdout
from fa4top.worker.watch import Watch

EXIT_FAULT = 4
TELEMETRY_PERIOD_S = 0.5
CHECK_DEADLINE_S = 30.0  # one launch, and a few rows on the CPU
WORST_ERROR = 1e9
OUT_OF_MEMORY = ("out of memory", "OutOfMemory", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")


def main() -> int:
    """Entry point of the process; returns its exit code."""
    out = take_stdout()
    first = sys.stdin.readline()
    if not first:
        return 0
    order = json.loads(first)
    if "standby" in order:
        stand_by(order["standby"]["target"], order["standby"]["knobs"])
        if not (first := sys.stdin.readline()):
            return 0
        order = json.loads(first)
        if order.get("do") == "stop":
            return 0
    if order.get("job") == "sass":
        from fa4top.worker.compiling import run_compile

        return run_compile(order)
    if order.get("job") == "bench":
        return _bench(Channel(out, sys.stdin, order["worker"]), order)
    shape = Shape(**order["request"].pop("shape"))
    request = LaunchRequest(shape=shape, **order["request"])
    channel = Channel(out, sys.stdin, order["worker"])
    try:
        return _Worker(channel, request, order["worker"], order["plan_id"]).run()
    except BrokenPipeError:
        return 0


def stand_by(target: str, knobs: dict[str, str]) -> None:
    """Import ahead what the target's launcher needs. What fails here fails again, with its reason, once there is an
    order."""
    description = describe(target)
    if description.prepare:
        try:
            module, function = description.prepare.split(":")
            getattr(importlib.import_module(module), function)(knobs)
        except Exception:
            traceback.print_exc()


def _bench(channel: Channel, order: dict[str, Any]) -> int:
    from fa4top.worker.bench import run_bench

    try:
        return run_bench(channel, order["worker"], order["plan_id"], order["names"], order["arch"])
    except BrokenPipeError:
        return 0


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
                found = analyse_capture(capture.buffer, launcher.layout, launcher.family, capture.generation)
                states = role_states(found.traces, launcher.layout.roles, launcher.family)
                text, roles = explain(states), [state.sentence() for state in states]
        except Exception as error:
            if isinstance(error, TargetError):
                text = error.text
            else:
                traceback.print_exc()
                text = f"its buffer could not be read: {type(error).__name__}: {error}"
        text += self._danger()
        self._channel.send(HangReport(self._worker, self._plan_id, deadline_s, self._doing, text, roles))

    def _state(self, state: str, text: str = "", progress: float | None = None) -> None:
        self._doing = state
        launcher = self._launcher
        self._channel.send(
            WorkerState(
                self._worker,
                self._plan_id,
                self._request.twin,
                state,
                os.getpid(),
                text,
                progress,
                dict(launcher.versions) if launcher else {},
                self._geometry,
                list(launcher.probe_sets) if launcher else [],
            )
        )

    def run(self) -> int:
        """Compile, then serve commands. A fault ends the process: CUDA errors are sticky."""
        try:
            self._state("importing")
            module, function = describe(self._request.target).launcher.split(":")
            self._launcher = getattr(importlib.import_module(module), function)(self._request)
            self._geometry = self._launcher.compile(lambda text, progress: self._state("compiling", text, progress))
            self._state("compiled")
            for command in self._channel.commands():
                if command.get("do") == "stop":
                    break
                self._do(command)
            self._launcher.close()
            self._state("stopped")
        except BrokenPipeError:
            raise
        except BaseException as error:
            self._fault(error)
            return EXIT_FAULT
        return 0

    def _do(self, command: dict[str, Any]) -> None:
        assert self._launcher is not None
        kind = command.get("do")
        with self._watch.guard(float(command.get("deadline_s", CHECK_DEADLINE_S))):
            self._obey(kind, command)

    def _obey(self, kind: object, command: dict[str, Any]) -> None:
        assert self._launcher is not None
        if kind == "check":
            self._state("checking")
            self._check()
        elif kind == "repeat":
            self._repeat(command)
        elif kind == "clean":
            burst = self._launcher.clean_burst(
                int(command["launches"]), str(command.get("l2", WARM)), int(command.get("primers", PRIMERS))
            )
            self._launch += len(burst.times_us)
            self._channel.send(
                CleanBurst(
                    self._worker,
                    self._plan_id,
                    self._launch,
                    burst.times_us,
                    burst.sm_clock_mhz,
                    burst.l2,
                    burst.host_us,
                )
            )
        elif kind == "trace":
            assert self._geometry is not None
            capture = self._launcher.traced_launch(int(command["cta"]))
            self._launch += 1
            sample = analyse_capture(
                capture.buffer,
                self._launcher.layout,
                self._launcher.family,
                capture.generation,
                probe_set=self._launcher.probe_set,
                timeline=bool(command.get("timeline")),
                steps_of_tile=self._geometry.steps_per_tile,
            )
            self._channel.send(
                sample.record(
                    worker=self._worker,
                    plan_id=self._plan_id,
                    launch=self._launch,
                    time_us=capture.time_us,
                    probe_set=self._launcher.probe_set,
                    detail=self._request.detail,
                    cta=capture.cta,
                )
            )
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
                self._worker,
                self._plan_id,
                self._request.twin,
                passed,
                result.rows,
                min(result.max_error, WORST_ERROR),  # a record holds no infinity
                min(result.rms_error, WORST_ERROR),
                result.limit,
                result.output_hash,
                text,
            )
        )
        self._state("ready" if passed else "failed", text)

    def _repeat(self, command: dict[str, Any]) -> None:
        """Many launches of this setting; the first output is kept, or compared with the one that was."""
        assert self._launcher is not None
        times = int(command["times"])
        first = self._launcher.output()
        flaky, worst = 0, Difference(0, first.size, 0.0, 0.0, "")
        for number in range(2, times + 1):
            found = compare_outputs(first, self._launcher.output())
            flaky += not found.equal
            worst = max(worst, found, key=lambda each: each.elements)
            self._state("checking", f"launch {number} of {times}, {flaky} differ", number / times)
        against, difference = "", Difference(0, first.size, 0.0, 0.0, "")
        if path := str(command.get("against", "")):
            difference = compare_outputs(np.load(path, allow_pickle=False), first)
            against = "bitwise" if difference.equal else "differs"
        elif path := str(command.get("keep", "")):
            np.save(path, first)
        self._channel.send(
            Repeats(
                self._worker,
                self._plan_id,
                str(command.get("setting", "")),
                times,
                flaky,
                worst.elements,
                first.size,
                worst.where,
                against,
                difference.elements,
                min(difference.max, WORST_ERROR),
                min(difference.mean, WORST_ERROR),
                difference.where,
                inputs=self._launcher.inputs_digest(),
            )
        )

    def _danger(self) -> str:
        """What is known to be wrong with the setting, to be added to what went wrong; '' when nothing is."""
        request, arch = self._request, str(getattr(self._launcher, "arch", ""))
        known = describe(request.target).danger(request.shape, arch, request.knobs)
        return f". The setting is known to be dangerous: {known}" if known else ""

    def _fault(self, error: BaseException) -> None:
        traceback.print_exc()
        reason, hint = "exception", "the worker's log has the traceback"
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        if isinstance(error, TargetError):
            reason, hint, text = error.reason, error.hint or hint, error.text
        elif isinstance(error, MemoryError) or any(word in str(error) for word in OUT_OF_MEMORY):
            reason, hint = "out of memory", "choose a smaller shape (b, s or h), or free the GPU"
        elif isinstance(error, ModuleNotFoundError):
            reason = "missing package"
            hint = "fa4top doctor says what this interpreter lacks; --python PATH chooses another"
        elif "CUDA" in text or "cuda" in text:
            reason, hint = "CUDA error", "the process is replaced; if it comes back, run compute-sanitizer on it"
            text = f"{faults.plain(text)}{self._danger()}"
        elif self._geometry is None and self._launcher is not None:
            reason, hint = "compile error", "the worker's log has the compiler's words"
        self._channel.send(Fault(self._worker, self._plan_id, reason, text, hint))
