"""`fa4top doctor --target fa4-fork`: what of the fork's contract holds for a real checkout, by running it once.

The same checks run in CI against our tests' stand-in. Meant to be sent back by the first person with the GPU.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from fa4top.engine.pace import CHECK_DEADLINE_S
from fa4top.engine.workers import WorkerGone, WorkerProcess
from fa4top.orders.commands import TracedLaunch
from fa4top.orders.order import Order
from fa4top.records import Check, TraceSample, WorkerState
from fa4top.targets.fork.environment import DIRECT

ROLES = ("mma", "softmax0", "softmax1")


@dataclass(frozen=True)
class Row:
    """One thing that was tried."""

    what: str
    expected: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Twin:
    """What one worker did. ``fault`` is why it ended early, '' when it did not."""

    state: WorkerState | None
    seconds: float
    check: Check | None
    sample: TraceSample | None
    fault: str


async def _drive(order: Order, twin: str) -> Twin:
    worker = WorkerProcess(twin, 1, twin, lambda record: None, lambda name, text: None)
    began, compiled_s = time.monotonic(), 0.0
    check: Check | None = None
    sample: TraceSample | None = None
    fault = ""
    try:
        await worker.start(order, Path(order.folder) / f"{twin}.stderr")
        await worker.compiled()
        compiled_s = time.monotonic() - began
        check = await worker.check()
        if twin == "traced" and check.passed:
            sample = await worker.trace(TracedLaunch(cta=1, timeline=True), CHECK_DEADLINE_S)
    except WorkerGone as gone:
        fault = f"{gone.fault.reason}: {gone.fault.text}"
    finally:
        await worker.stop(2.0)
    return Twin(worker.state, compiled_s, check, sample, fault)


async def _both(order: Order) -> tuple[Twin, Twin]:
    # one after the other: the second must find the inputs that the first one kept
    return await _drive(order, "clean"), await _drive(order, "traced")


def conformance(order: Order) -> list[Row]:
    """Launch both twins of one small setting and hold what they say against the contract.

    Args:
        order: a small shape with the default knobs.
    """
    with tempfile.TemporaryDirectory(prefix="fa4top-doctor-") as folder:
        clean, traced = asyncio.run(_both(replace(order, folder=folder)))
    return rows_of(clean, traced)


def rows_of(clean: Twin, traced: Twin) -> list[Row]:
    """The table."""
    rows = []
    for name, twin in (("clean", clean), ("traced", traced)):
        compiled = twin.state is not None and twin.state.geometry is not None
        found = f"in {twin.seconds:.1f} s" if compiled else twin.fault or "no answer"
        rows.append(Row(f"{name} compiles", "imports, makes inputs, compiles", found, compiled))
        if twin.check is None:
            rows.append(Row(f"{name} output", "within its limit of FP32", twin.fault or "not launched", False))
        else:
            rows.append(Row(f"{name} output", "within its limit of FP32", twin.check.text, twin.check.passed))
    versions = traced.state.versions if traced.state else {}
    digests = [twin.state.versions.get("inputs", "none") if twin.state else "none" for twin in (clean, traced)]
    same = digests[0] == digests[1] != "none"
    rows.append(Row("inputs kept", "both processes read the same bytes", " and ".join(dict.fromkeys(digests)), same))
    if clean.check and traced.check:
        equal = clean.check.output_hash == traced.check.output_hash
        text = "bit for bit" if equal else f"{clean.check.output_hash} and {traced.check.output_hash}"
        rows.append(Row("the trace changes nothing", "outputs of both twins equal", text, equal))
    route = versions.get("launched by", "not known")
    rows.append(Row("compile cache", "a plain dictionary", f"launched by {route}", route == DIRECT))
    rows += _trace_rows(traced.sample)
    if note := versions.get("trace"):
        rows.append(Row("trace", "decodes", note, True))
    return rows


def _trace_rows(sample: TraceSample | None) -> list[Row]:
    if sample is None:
        return [Row("trace", "a buffer that decodes", "none was read", False)]
    losses = sample.losses
    bad = losses.stale + losses.unmatched
    text = f"{losses.recorded} events, {losses.stale} foreign, {losses.unmatched} without a partner"
    # a ring that is full cuts the last span of each group
    rows = [Row("trace decodes", "no foreign events", text, losses.recorded > 0 and bad <= len(ROLES))]
    recorded = [role.role for role in sample.roles if role.steps]
    rows.append(Row("roles", ", ".join(ROLES), ", ".join(recorded) or "none", set(ROLES) <= set(recorded)))
    periods = [role.period_median_cycles for role in sample.roles if role.role.startswith("softmax")]
    known = [period for period in periods if period]
    text = ", ".join(f"{period:.0f} cycles" for period in known) or "none"
    rows.append(Row("step period", "both softmax warpgroups", text, len(known) == 2))
    waits = {cause for role in sample.roles for cause in role.waits_cycles}
    wanted = {"wait P", "wait P 2nd", "wait KV", "wait S", "wait corr"}
    missing = sorted(wanted - waits)
    text = f"lacks {', '.join(missing)}" if missing else "all"
    rows.append(Row("waits", ", ".join(sorted(wanted)), text, not missing))
    return rows
