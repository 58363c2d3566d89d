"""The kernel account and the one-sentence verdict under the live panes. Small pure rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4top.records import Geometry, TraceSample

if TYPE_CHECKING:
    from fa4top.analysis.fold import RoleView, Snapshot

HIGH_WAIT = 0.12
HIGH_PROBE_EFFECT = 0.025
SLOW_SM = 1.08
MIN_SMS_SEEN = 24
HIGH_TAIL = 0.10
CLOCK_FALLS = 0.95
HIGH_TILE_ENDS = 0.15


@dataclass(frozen=True)
class Account:
    """Where a kernel's time goes, as shares that add up to 1: steps, tile ends (prologue, epilogue), idle SMs."""

    steps: float
    tile_ends: float
    tail: float


def kernel_account(
    geometry: Geometry | None, samples: list[TraceSample], clean_us: float | None, traced_us: float | None
) -> Account | None:
    """Shares of the kernel's time from the sampled CTAs' lives.

    Busy share of the chip = CTAs x mean CTA life / (SMs x CTAs per SM x kernel time); the rest is idle: the last wave.
    Within a life the step share is steps x mean step / life of the roles that know both.
    """
    kernel_us = traced_us or clean_us
    if geometry is None or not kernel_us:
        return None
    lives = [sample.cta_us for sample in samples if sample.cta_us]
    shares = []
    for sample in samples:
        for role in sample.roles:
            if role.role_cycles and role.tile_overhead_cycles is not None and role.tiles:
                ends = role.tile_overhead_cycles * role.tiles / role.role_cycles
                shares.append(min(1.0, max(0.0, 1.0 - ends)))
                break
    if not lives or not shares:
        return None
    slots = geometry.sm_count * geometry.ctas_per_sm
    busy = min(1.0, geometry.grid_ctas * sum(lives) / len(lives) / (slots * kernel_us))
    steps = sum(shares) / len(shares)
    return Account(busy * steps, busy * (1.0 - steps), 1.0 - busy)


def lead_role(roles: tuple[RoleView, ...]) -> RoleView | None:
    """The role whose period stands for the kernel: softmax0 on Blackwell, mma0 on Hopper."""
    for name in ("softmax0", "mma0"):
        for view in roles:
            if view.role == name:
                return view
    return roles[0] if roles else None


def verdict(snapshot: Snapshot) -> str:
    """One sentence that answers: what limits this kernel now, or what is in the way of knowing."""
    if snapshot.plan is None:
        return "waiting for the engine"
    failed = [check for check in snapshot.checks if not check.passed]
    if failed:
        return f"output check FAILED ({failed[0].twin} twin): no numbers from a wrong kernel"
    if snapshot.engine is not None and snapshot.engine.state == "failed":
        return f"this plan can not go on: {snapshot.engine.text}. e chooses another"
    lead = lead_role(snapshot.roles)
    if lead is None or lead.step_cycles is None:
        states = [f"{w.twin} {w.text or w.state}" for w in snapshot.workers if w.state not in ("ready", "stopped")]
        if states:
            return "starting: " + ", ".join(states)
        if snapshot.faults:
            return f"no numbers: {snapshot.faults[-1].reason}: {snapshot.faults[-1].text}"
        return "starting workers"
    effect = snapshot.probe_effect
    if effect is not None and effect > HIGH_PROBE_EFFECT and not snapshot.detail:
        return f"probes cost {effect:+.1%}: trust the clean time, read the waits as proportions"
    gpu = snapshot.gpu
    if gpu is not None and gpu.foreign_pids:
        return "another process computes on this GPU: times are not to be trusted"
    if slow := slow_sm(snapshot):
        return slow
    limited = _limit(snapshot, lead)
    account = snapshot.account
    if account is not None and account.tail > HIGH_TAIL:
        limited = f"{limited}; the last wave idles {account.tail:.0%}"
    elif account is not None and account.tile_ends > HIGH_TILE_ENDS:
        limited = f"{limited}; tile ends take {account.tile_ends:.0%}"
    if falls := _clock_under_load(snapshot):
        limited = f"{limited}; {falls}"
    if gpu is not None and gpu.throttle:
        return f"clock held back ({', '.join(gpu.throttle)}); {limited}"
    return limited


def _clock_under_load(snapshot: Snapshot) -> str | None:
    """NVML is read between bursts, when the clock has recovered; the kernel's own anchors know better."""
    gpu, by_kernel = snapshot.gpu, snapshot.sm_clock_mhz
    if gpu is None or not gpu.sm_clock_mhz or not by_kernel or by_kernel > CLOCK_FALLS * gpu.sm_clock_mhz:
        return None
    return f"SM clock {by_kernel:.0f} MHz inside the kernel, {gpu.sm_clock_mhz:.0f} at rest"


def slow_sm(snapshot: Snapshot) -> str | None:
    """One SM behind the others, in words; None where there is none."""
    periods = sorted(period for _, period in snapshot.sm_periods)
    if len(periods) < MIN_SMS_SEEN:
        return None
    middle = periods[len(periods) // 2]
    sm, worst = max(snapshot.sm_periods, key=lambda item: item[1])
    if worst > SLOW_SM * middle and periods[-2] < SLOW_SM * middle:
        return f"SM {sm} is {worst / middle - 1:.0%} slower than the others: a slow SM holds up the last wave"
    return None


def _limit(snapshot: Snapshot, lead: RoleView) -> str:
    assert lead.step_cycles is not None
    mma = next((view for view in snapshot.roles if view.role == "mma"), None)
    waits = sorted(lead.waits_cycles, key=lambda item: -item[1])
    if mma is not None and mma.step_cycles:
        by_cause = dict(mma.waits_cycles)
        share_p = (by_cause.get("wait P", 0.0)) / mma.step_cycles
        share_second = by_cause.get("wait P 2nd", 0.0) / mma.step_cycles
        if share_second > 2 * HIGH_WAIT:
            return (
                f"MMA waits {share_second:.0%} of a step inside PV for the rest of P: handed over too early, "
                "try a larger split"
            )
        if share_p + share_second > 2 * HIGH_WAIT:
            return f"softmax-bound: MMA waits for P {share_p + share_second:.0%} of a step"
    if waits and waits[0][1] > HIGH_WAIT * lead.step_cycles:
        return f"{lead.role} spends {waits[0][1] / lead.step_cycles:.0%} of a step in {waits[0][0]}"
    share = sum(cycles for _, cycles in waits) / lead.step_cycles
    return f"{lead.role} is busy {1 - share:.0%} of a step: its own work is the limit"
