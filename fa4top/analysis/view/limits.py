"""What limits a kernel, and what is in the way of knowing: thresholds, and the one sentence under the live panes.

Small pure rules. The thresholds stand here alone: the live sentence and the triage judge by the same ones.
"""

from __future__ import annotations

from fa4top.analysis.view.snapshot import RoleView, Sentence, Snapshot

HIGH_WAIT = 0.12  # of a step
HIGH_PROBE_EFFECT = 0.025
SLOW_SM = 1.08
MIN_SMS_SEEN = 24
HIGH_TAIL = 0.10
CLOCK_FALLS = 0.95
HIGH_TILE_ENDS = 0.15


def live_sentence(snapshot: Snapshot) -> Sentence:
    """One sentence that answers: what limits this kernel now, or what is in the way of knowing."""
    if snapshot.plan is None:
        return Sentence("waiting for the engine")
    failed = [check for check in snapshot.checks if not check.passed]
    if failed:
        return Sentence(f"output check FAILED ({failed[0].twin} twin): no numbers from a wrong kernel", bad=True)
    if snapshot.engine is not None and snapshot.engine.state == "failed":
        return Sentence(f"this plan can not go on: {snapshot.engine.text}. e chooses another", bad=True)
    lead = snapshot.lead
    if lead is None or lead.step_cycles is None:
        return _no_numbers(snapshot)
    effect = snapshot.probe_effect
    if effect is not None and effect > HIGH_PROBE_EFFECT and not snapshot.detail:
        return Sentence(f"probes cost {effect:+.1%}: trust the clean time, read the waits as proportions")
    gpu = snapshot.gpu
    if gpu is not None and gpu.foreign_pids:
        return Sentence("another process computes on this GPU: times are not to be trusted", bad=True)
    if slow := slow_sm(snapshot):
        return Sentence(slow)
    limited = _limit(snapshot, lead)
    account = snapshot.account
    if account is not None and account.tail > HIGH_TAIL:
        limited = f"{limited}; the last wave idles {account.tail:.0%}"
    elif account is not None and account.tile_ends > HIGH_TILE_ENDS:
        limited = f"{limited}; tile ends take {account.tile_ends:.0%}"
    if falls := clock_under_load(snapshot):
        limited = f"{limited}; {falls}"
    if gpu is not None and gpu.throttle:
        limited = f"clock held back ({', '.join(gpu.throttle)}); {limited}"
    return Sentence(limited)


def _no_numbers(snapshot: Snapshot) -> Sentence:
    states = [f"{w.twin} {w.text or w.state}" for w in snapshot.workers if w.state not in ("ready", "stopped")]
    if states:
        return Sentence("starting: " + ", ".join(states))
    if snapshot.faults:
        return Sentence(f"no numbers: {snapshot.faults[-1].reason}: {snapshot.faults[-1].text}", bad=True)
    return Sentence("starting workers")


def clock_loss(snapshot: Snapshot) -> float | None:
    """How far the SM clock inside the kernel lies below that at rest, as a share; None where it does not by enough, or
    is not known. NVML is read between bursts, when the clock has recovered; the kernel's own anchors know better."""
    gpu, by_kernel = snapshot.gpu, snapshot.sm_clock_mhz
    if gpu is None or not gpu.sm_clock_mhz or not by_kernel or by_kernel > CLOCK_FALLS * gpu.sm_clock_mhz:
        return None
    return 1.0 - by_kernel / gpu.sm_clock_mhz


def clock_under_load(snapshot: Snapshot) -> str:
    """The clocks inside the kernel and at rest, in words; '' where they hardly differ."""
    if clock_loss(snapshot) is None or snapshot.gpu is None:
        return ""
    return f"SM clock {snapshot.sm_clock_mhz:.0f} MHz inside the kernel, {snapshot.gpu.sm_clock_mhz:.0f} at rest"


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
    mma = snapshot.mma
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
