"""Triage rules about what surrounds the kernel's steps: the machine, the clock, the host, the probes."""

from __future__ import annotations

from fa4top.analysis.triage.gathered import HIGH, MEDIUM, Gathered, small
from fa4top.analysis.view.limits import HIGH_PROBE_EFFECT, clock_loss, clock_under_load, slow_sm
from fa4top.orders.jobs import SUSTAINED, AbJob
from fa4top.records import TriageFinding

DISAGREE = 0.10  # between a traced step and the clean time
RECOMPILE = 20.0  # times the usual launch


def foreign_process(e: Gathered) -> TriageFinding | None:
    """Nothing holds beside somebody else's work."""
    gpu = e.snapshot.gpu
    if gpu is None or not gpu.foreign_pids:
        return None
    return e.finding(
        "foreign process",
        f"{len(gpu.foreign_pids)} other processes compute on this GPU: no time here is to be trusted",
        HIGH,
        "run alone: nvidia-smi shows the others",
    )


def clock_bound(e: Gathered) -> TriageFinding | None:
    """Held back by the driver."""
    gpu = e.snapshot.gpu
    if gpu is None or not gpu.throttle:
        return None
    return e.finding(
        "clock",
        f"clock-bound: held back by {', '.join(gpu.throttle)}",
        HIGH,
        "in cycles the kernel is as fast as before: compare in cycles, or lock the clock (--lock-clock)",
        AbJob(mode=SUSTAINED),
    )


def clock_drop(e: Gathered) -> TriageFinding | None:
    """The power that a kernel draws sets its clock, with no reason given."""
    gpu, loss = e.snapshot.gpu, clock_loss(e.snapshot)
    if gpu is None or gpu.throttle or loss is None:
        return None
    return e.finding(
        "clock drop",
        f"{clock_under_load(e.snapshot)}: its power costs {loss:.0%}",
        MEDIUM,
        "a setting that draws less power has a higher clock: compare time and cycles",
    )


def slow_sm_found(e: Gathered) -> TriageFinding | None:
    """One SM behind the others."""
    text = slow_sm(e.snapshot)
    return e.finding("slow SM", text, MEDIUM, "another GPU of the node does not show it") if text else None


def recompiling(e: Gathered) -> TriageFinding | None:
    """A compile inside the run."""
    slowest, usual = e.snapshot.slowest_us, e.snapshot.clean_us
    if not slowest or not usual or slowest < RECOMPILE * usual:
        return None
    return e.finding(
        "recompiling",
        f"one launch took {slowest / usual:.0f} times the usual: a compile, or another process, inside the run",
        MEDIUM,
        "it happens at the first launch of a shape only, or with other work on the machine",
    )


def launch_bound(e: Gathered) -> TriageFinding | None:
    """The host takes longer than the GPU."""
    host, gpu = e.snapshot.host_us, e.snapshot.clean_us
    if not host or not gpu or host < gpu:
        return None
    return e.finding(
        "launch",
        f"launch-bound: the host needs {host:.0f} us for a launch that runs {gpu:.0f} us",
        HIGH,
        "a CUDA graph, or a longer sequence, takes the gap away",
    )


def probe_effect(e: Gathered) -> TriageFinding | None:
    """Traces that change what they measure."""
    effect = e.snapshot.probe_effect
    if effect is None or abs(effect) <= HIGH_PROBE_EFFECT:
        return None
    return e.finding(
        "probe effect",
        f"probes cost {effect:+.1%}: waits are proportions only, and small ones mean nothing",
        HIGH,
        "the clean time is not touched by probes: decide by A/B",
        AbJob(),
    )


def disagreement(e: Gathered) -> TriageFinding | None:
    """Traced and clean twins tell different stories."""
    lead = e.snapshot.lead
    clean = e.snapshot.clean_period_cycles
    account = e.snapshot.account
    if lead is None or lead.median_cycles is None or not clean or account is None or not account.steps:
        return None
    if small(e):
        return None  # a launch's own cost is in the clean time then
    # of a CTA's life: idle SMs of the last wave are not in the period
    steps = account.steps / (account.steps + account.tile_ends)
    gap = lead.median_cycles / (clean * steps) - 1.0
    if abs(gap) <= DISAGREE + HIGH_PROBE_EFFECT:
        return None
    return e.finding(
        "disagreement",
        f"a traced step has {lead.median_cycles:.0f} cycles, the clean time gives {clean * steps:.0f}: {gap:+.0%}",
        MEDIUM,
        "other CTAs and SMs give the same period, and so does --probe-set period",
    )
