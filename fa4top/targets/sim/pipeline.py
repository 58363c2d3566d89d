"""FA4's pipeline on one CTA as discrete events, in the order in which each role's program has them.

Roles run their own programs in order and meet at signals, so the times of all events follow from maxima and sums (a
max-plus model): a wait ends when its signal was sent, or at once when that was earlier. Blackwell: one MMA warp, two
softmax warpgroups, a correction warpgroup, loads; P goes over in two signals. Hopper: two consumer warpgroups that
take turns at the tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from fa4top.analysis.trace.events import WIDE_STEP, WIDE_TILE, event_id
from fa4top.analysis.trace.layout import BEGIN, END, MARK
from fa4top.targets.sim.chips import Chip, Mode, split_counts
from fa4top.targets.sim.trace import RoleLog

WAIT_KV, WAIT_P, WAIT_P2 = event_id("wait KV"), event_id("wait P"), event_id("wait P 2nd")
WAIT_S, WAIT_CORR, WAIT_STATS = event_id("wait S"), event_id("wait corr"), event_id("wait stats")
STEP, TILE, QK, PV = event_id("step"), event_id("tile"), event_id("QK"), event_id("PV")
P_FIRST, P_REST, RESCALE = event_id("P 1st part"), event_id("P rest"), event_id("rescale")
EPILOGUE = event_id("epilogue")

Noise = Callable[[], float]


@dataclass(frozen=True)
class Job:
    """One CTA's work: steps of each of its tiles, the split, and how much slower the softmax is for its probes."""

    tiles: tuple[int, ...]
    split: Fraction
    slowdown: float = 1.0
    stop_after_steps: int | None = None


def simulate_blackwell(
    chip: Chip, mode: Mode, job: Job, noise: Noise, record: bool
) -> tuple[float, dict[str, RoleLog]]:
    """Run one CTA.

    Args:
        noise: a factor near 1, drawn once a step and stage.
        record: fill the role logs (else they stay empty, and it is quicker).

    Returns:
        Cycles from the CTA's start to its end (infinite when ``stop_after_steps`` hung it), and the logs.
    """
    common = chip.common
    chunks, k_tiles = split_counts(mode, job.split)
    early, early_tiles = chunks / mode.store_chunks, k_tiles / mode.k_tiles
    # while the first part of PV reads P, the stores of the rest get fewer turns at tensor memory
    rest_store = (1 - early) * mode.store_cycles * (1 + mode.contention)
    logs = {role: RoleLog() for role in ("mma", "softmax0", "softmax1", "correction")}
    mma_log, correction_log = logs["mma"], logs["correction"]
    softmax_logs = (logs["softmax0"], logs["softmax1"])
    now = correction = tensor = load = 0.0
    free = [0.0, 0.0]
    total_steps = 0
    for steps in job.tiles:
        load = max(load, now) + common.load_cycles
        ready = [0.0, 0.0]
        now = max(now, load)
        for stage in (0, 1):
            if record:
                mma_log.event(QK, BEGIN, now)
                mma_log.event(QK, END, now + common.issue_cycles)
            now += common.issue_cycles
            tensor = max(tensor, now) + chip.qk_cycles
            ready[stage] = tensor + common.signal_cycles
        free = [max(free[0], now), max(free[1], now)]
        for step in range(steps):
            if job.stop_after_steps is not None and total_steps >= job.stop_after_steps:
                return _hung(logs, now, ready, free)
            total_steps += 1
            load += common.kv_bytes_cycles
            arrived = load - common.load_cycles
            if record:
                mma_log.span(WAIT_KV, now, arrived)
            now = max(now, arrived)
            for stage in (0, 1):
                begin = free[stage]
                start = max(begin, ready[stage])
                work = mode.softmax_cycles * job.slowdown * noise()
                row_max = start + common.row_max_cycles
                computed = start + work
                first = computed + early * mode.store_cycles
                rest = first + rest_store
                # the correction warpgroup rescales O as soon as it has the row maxima
                stats = max(correction, row_max + common.signal_cycles)
                rescaled = stats + common.correction_cycles
                if record:
                    log = softmax_logs[stage]
                    log.event(STEP, MARK, begin)
                    log.span(WAIT_S, begin, start)
                    log.event(P_FIRST, MARK, first)
                    log.event(P_REST, MARK, rest)
                    log.span(WAIT_CORR, rest, rescaled)
                    correction_log.event(WAIT_STATS, BEGIN, correction)
                    correction_log.event(WAIT_STATS, END, stats)
                    correction_log.span(RESCALE, stats, rescaled)
                correction = rescaled
                free[stage] = max(rest, rescaled) + common.row_sum_cycles
                # MMA: PV of what was handed over, then the rest, then QK of the next step
                handed = max(first, rescaled) + common.signal_cycles
                if record:
                    mma_log.span(WAIT_P, now, handed)
                now = max(now, handed)
                issued = now
                second = max(now + common.issue_cycles, rest + common.signal_cycles)
                if record:
                    mma_log.event(PV, BEGIN, issued)
                    mma_log.span(WAIT_P2, now + common.issue_cycles, second)
                tensor = max(tensor, issued) + early_tiles * mode.pv_cycles
                tensor = max(tensor, second) + (1 - early_tiles) * mode.pv_cycles
                now = second + common.issue_cycles / 2
                if record:
                    mma_log.event(PV, END, now)
                if step < steps - 1:
                    if record:
                        mma_log.event(QK, BEGIN, now)
                    now += common.issue_cycles
                    tensor = max(tensor, now) + chip.qk_cycles
                    ready[stage] = tensor + common.signal_cycles
                    if record:
                        mma_log.event(QK, END, now)
        end = max(tensor, *free) + common.epilogue_cycles
        if record:
            mma_log.event(TILE, MARK, now)
            for stage in (0, 1):
                softmax_logs[stage].event(TILE, MARK, free[stage])
            correction_log.event(EPILOGUE, BEGIN, max(tensor, *free))
            correction_log.event(EPILOGUE, END, end)
            correction_log.event(TILE, MARK, end)
        correction = end
        now = max(now, end - common.epilogue_cycles / 2)
        free = [now, now]
    for role in logs.values():
        role.end_cycles = end
    return end, logs


def _hung(
    logs: dict[str, RoleLog], now: float, ready: list[float], free: list[float]
) -> tuple[float, dict[str, RoleLog]]:
    """softmax0's second signal was lost: the MMA role waits for it inside PV, and all others wait for the MMA role."""
    begin = max(free[0], ready[0])
    softmax = logs["softmax0"]
    for event in (STEP, P_FIRST, P_REST, STEP):
        softmax.event(event, MARK, begin)
        begin += 400.0
    softmax.event(WAIT_S, BEGIN, begin)
    logs["mma"].event(PV, BEGIN, begin)
    logs["mma"].event(WAIT_P2, BEGIN, begin + 40.0)
    logs["softmax1"].event(STEP, MARK, max(free[1], ready[1]))
    logs["softmax1"].event(WAIT_S, BEGIN, max(free[1], ready[1]))
    logs["correction"].event(WAIT_STATS, BEGIN, begin)
    for log in logs.values():
        log.finished = False
    return float("inf"), logs


def simulate_hopper(chip: Chip, mode: Mode, job: Job, noise: Noise, record: bool) -> tuple[float, dict[str, RoleLog]]:
    """Run one CTA with two consumer warpgroups in turns; returns as ``simulate_blackwell``."""
    common = chip.common
    logs = {role: RoleLog() for role in ("mma0", "mma1")}
    times = [0.0, 0.0]
    tensor = 0.0
    for steps in job.tiles:
        tile_begin = max(times)
        times = [tile_begin + common.load_cycles + common.prologue_cycles + group * 900.0 for group in (0, 1)]
        tensor = max(tensor, times[0])
        for step in range(1, steps):
            if job.stop_after_steps is not None and step >= job.stop_after_steps:
                for log in logs.values():
                    log.finished = False
                return float("inf"), logs
            for group in (0, 1):
                turn_begin = times[group]
                turn_end = max(turn_begin + 18, tensor - chip.qk_cycles - mode.pv_cycles)
                gemms = max(tensor, turn_end) + chip.qk_cycles
                tensor = gemms + mode.pv_cycles
                # softmax runs while PV does; the step ends when both are done
                done = max(gemms + mode.softmax_cycles * job.slowdown * noise(), tensor)
                if record:
                    logs[f"mma{group}"].wide(WIDE_STEP, turn_begin, turn_end, 0.0, False)
                times[group] = done
        for group in (0, 1):
            epilogue = times[group] + mode.pv_cycles
            times[group] = epilogue + common.epilogue_cycles
            if record:
                logs[f"mma{group}"].wide(WIDE_TILE, tile_begin, epilogue, times[group], True)
    for group, log in enumerate(logs.values()):
        log.end_cycles = times[group]
    return max(times), logs
