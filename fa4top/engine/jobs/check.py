"""The check job: a setting launched many times, its output held against the kept one of the baseline; a bisection over
the knobs that differ. One fresh process a setting."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fa4top.engine.host import Host, JobFailed
from fa4top.engine.pace import CHECK_DEADLINE_S
from fa4top.engine.workers import WorkerGone
from fa4top.orders.commands import RepeatLaunches
from fa4top.orders.jobs import CheckJob
from fa4top.orders.order import Order
from fa4top.records import CheckRun, Repeats, Shape
from fa4top.targets.legal import bitwise_knobs, changed_order

LAUNCH_DEADLINE_S = 5.0
ERROR_SLACK = 1.05  # an error against FP32 "equal to the baseline's own" is at most 5% above it


@dataclass(frozen=True)
class Saved:
    """What a kept baseline was made of; beside its file, as JSON."""

    target: str
    arch: str
    shape: Shape
    knobs: dict[str, str]
    seed: int
    inputs: str
    rms_error: float


def read_saved(path: Path) -> Saved:
    """What lies beside a kept baseline.

    Raises:
        JobFailed: it is no such file.
    """
    try:
        data = json.loads(path.with_name(path.name + ".json").read_text())
        return Saved(shape=Shape(**data.pop("shape")), **data)
    except (OSError, ValueError, TypeError) as error:
        raise JobFailed(f"{path} is no kept baseline ({error}); fa4top check --save FILE makes one") from error


def saved_problem(order: Order, path: Path) -> str | None:
    """Why the present setting can not be held against a kept baseline; None when it can."""
    try:
        kept = read_saved(path)
    except JobFailed as error:
        return str(error)
    for name, was, now in (
        ("target", kept.target, order.target),
        ("shape", kept.shape, order.shape),
        ("seed", kept.seed, order.seed),
    ):
        if was != now:
            return f"{path.name} is of another {name}: {was}; this is {now}"
    return None


def check_orders(order: Order, job: CheckJob) -> tuple[Order, Order | None, list[str]]:
    """The baseline, the candidate (None: the baseline alone), and why they can not be launched."""
    a, problems = changed_order(order, job.a)
    if job.against and (message := saved_problem(a, Path(job.against))):
        problems = [*problems, message]
    if not job.b:
        return a, None, problems
    b, more = changed_order(a, job.b)
    return a, b, problems + more


def check_problems(order: Order, job: CheckJob) -> list[str]:
    """Why these settings can not be launched."""
    return check_orders(order, job)[2]


async def run_check(host: Host, job: CheckJob) -> None:
    """Until both settings are held against each other.

    Raises:
        JobFailed: the baseline could not be launched.
    """
    await _Check(host, job).run()


class _Check:
    def __init__(self, host: Host, job: CheckJob) -> None:
        self._host, self._job = host, job
        self._a, self._b, _ = check_orders(host.order, job)
        self._id = host.next_plan_id()
        self._kept = str(Path(host.order.folder) / f"baseline{self._id}.npy")
        self._rms: float | None = None
        self._inputs = ""
        self._baseline = self._a  # whose output is held against

    def _state(self, word: str, text: str, passed: bool | None = None) -> None:
        order, b = self._host.order, self._b or self._a
        self._host.append(
            CheckRun(
                run_id=self._id,
                target=order.target,
                device=order.gpu_name,
                arch=order.arch,
                shape=order.shape,
                a=self._a.knobs,
                b=b.knobs,
                times=self._job.times,
                bisect=self._job.bisect,
                state=word,
                text=text,
                passed=passed,
                unsafe=order.unsafe,
            )
        )

    async def run(self) -> None:
        try:
            if self._job.against:
                self._state("running", f"against {Path(self._job.against).name}")
                baseline = await self._against_saved()
            else:
                self._state("running", "the baseline")
                baseline = await self._measure(self._a, "baseline", "")
            parts = [sentence(baseline)]
            passed = baseline.passed
            if self._job.save:
                parts.append(self._save(baseline))
            if self._b is not None:
                self._state("running", "the other setting")
                found = await self._measure(self._b, changes(self._a, self._b), self._kept)
                parts.append(sentence(found))
                passed = passed and found.passed
                if found.against == "differs" and (self._job.bisect or not found.passed):
                    parts.append(await self._bisect())
            self._state("done", ". ".join(filter(None, parts)), passed)
        except asyncio.CancelledError:
            self._state("stopped", "cut short")
            raise
        except WorkerGone as gone:
            self._host.append(gone.fault)
            self._state("failed", f"{gone.fault.reason}: {gone.fault.text}", False)
            raise JobFailed(f"check: {gone.fault.reason}: {gone.fault.text}. {gone.fault.hint}") from gone
        finally:
            Path(self._kept).unlink(missing_ok=True)

    async def _against_saved(self) -> Repeats:
        """The present setting against a baseline of another day, perhaps of another version of the kernel."""
        kept = read_saved(Path(self._job.against))
        self._rms, self._inputs = kept.rms_error, kept.inputs
        self._baseline = replace(self._a, knobs={**self._a.knobs, **kept.knobs})
        return await self._measure(self._a, f"against {Path(self._job.against).name}", self._job.against)

    def _save(self, baseline: Repeats) -> str:
        """Move the kept output to where the person wants it, with what it was made of."""
        path = Path(self._job.save)
        if not baseline.passed:
            return "not saved: a baseline must be right and steady"
        order = self._a
        saved = Saved(order.target, order.arch, order.shape, order.knobs, order.seed, baseline.inputs, self._rms or 0.0)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._kept, path)
            path.with_name(path.name + ".json").write_text(json.dumps(asdict(saved), indent=2))
        except OSError as error:
            return f"NOT saved: {error}"
        return f"saved as {path.name}"

    async def _measure(self, order: Order, name: str, against: str, times: int = 0) -> Repeats:
        """One fresh process: its error against FP32, then its repeats."""
        times = times or self._job.times
        worker = await self._host.start("clean", order, self._host.next_plan_id())
        try:
            await worker.compiled()
            check = await worker.check()
            keep = "" if against else self._kept
            command = RepeatLaunches(times=times, setting=name, against=against, keep=keep)
            answer = await worker.ask(command, CHECK_DEADLINE_S + times * LAUNCH_DEADLINE_S)
            assert isinstance(answer, Repeats)
        finally:
            await self._host.end(worker)
        if not against:
            self._rms, self._inputs = check.rms_error, answer.inputs
        claimed = bitwise_knobs(self._baseline, order) is not None
        if self._inputs and answer.inputs != self._inputs:
            text = f"its inputs ({answer.inputs}) are not the baseline's ({self._inputs}): nothing can be compared"
            found = replace(answer, verdict=text, passed=False, rms_error=check.rms_error)
            self._host.append(found)
            return found
        word, passed = judge(answer, check.passed, check.rms_error, self._rms, claimed)
        found = replace(answer, rms_error=check.rms_error, baseline_rms_error=self._rms, verdict=word, passed=passed)
        self._host.append(found)
        return found

    async def _bisect(self) -> str:
        """Apply the knobs that differ one after the other; the first that changes bits is named."""
        assert self._b is not None
        b = self._b
        order = self._a
        differing = [name for name, value in b.knobs.items() if self._a.knobs[name] != value]
        if len(differing) < 2:
            return f"{differing[0]} changes the output" if differing else ""
        for name in differing:
            order, problems = changed_order(order, {name: b.knobs[name]})
            if problems:
                return f"bisection ends at {name}: {problems[0]}"
            self._state("running", f"bisection: {name}={b.knobs[name]}")
            found = await self._measure(order, f"... {name}={b.knobs[name]}", self._kept, 1)
            if found.against == "differs":
                return f"{name}={b.knobs[name]} is the first knob that changes the output"
        return "no single knob changes the output: together they do"


def changes(a: Order, b: Order) -> str:
    """What B sets otherwise."""
    return " ".join(f"{name}={value}" for name, value in b.knobs.items() if a.knobs.get(name) != value) or "the same"


def judge(
    found: Repeats, within: bool, rms_error: float, baseline_rms: float | None, claimed_bitwise: bool
) -> tuple[str, bool]:
    """(verdict, passed) of a setting.

    Args:
        within: is its error against FP32 within the target's limit?
        baseline_rms: the baseline's own error; None or its own for the baseline.
        claimed_bitwise: do all knobs that differ say that outputs are equal bit for bit?
    """
    if not within:
        return "wrong: its error against FP32 is above the limit", False
    if found.flaky_launches:
        return f"FLAKY: {found.flaky_launches} of {found.times} launches differ", False
    if not found.against:
        return f"steady: {found.times} launches bitwise equal", True
    if found.against == "bitwise":
        return "bitwise equal to the baseline", True
    if claimed_bitwise:
        return "differs from the baseline, though its knobs are said to be bitwise", False
    if baseline_rms is not None and rms_error > ERROR_SLACK * baseline_rms:
        return "less accurate than the baseline", False
    return "differs in bits, as accurate as the baseline", True


def sentence(found: Repeats) -> str:
    """One setting in words."""
    text = f"{found.setting}: {found.verdict}"
    if found.flaky_launches:
        text += f" ({found.flaky_elements} of {found.elements} elements at most: {found.where})"
    if found.against == "differs":
        text += (
            f" ({found.differing_elements} of {found.elements} elements, at most {found.max_difference:.2g} of the "
            f"output's RMS: {found.differs_where})"
        )
    if found.rms_error is not None:
        text += f", error against FP32 {found.rms_error:.2e}"
        if found.against and found.baseline_rms_error is not None:
            text += f" (baseline {found.baseline_rms_error:.2e})"
    return text
