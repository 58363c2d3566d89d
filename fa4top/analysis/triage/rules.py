"""Triage rules: what the evidence says, finding by finding. Small and pure.

A rule looks at the evidence and gives a finding or None. Every finding says how sure it is and how to falsify it.
"""

from __future__ import annotations

from collections.abc import Callable

from fa4top.analysis.chip.floors import ratio
from fa4top.analysis.sass.compare import spill_sentence, step_of
from fa4top.analysis.triage.gathered import HIGH, LOW, MEDIUM, Gathered, small
from fa4top.analysis.triage.surroundings import (
    clock_bound,
    clock_drop,
    disagreement,
    foreign_process,
    launch_bound,
    probe_effect,
    recompiling,
    slow_sm_found,
)
from fa4top.analysis.view.limits import HIGH_TAIL, HIGH_TILE_ENDS, HIGH_WAIT
from fa4top.orders.jobs import AbJob, CheckJob, SassJob
from fa4top.records import TriageFinding

NEAR_FLOOR = 1.25
LONG_RUN = 48

Rule = Callable[[Gathered], "TriageFinding | None"]


def load_bound(e: Gathered) -> TriageFinding | None:
    """Waiting for K and V."""
    lead = e.snapshot.lead
    share = max(e.wait_share(e.snapshot.mma, "wait KV"), e.wait_share(lead, "wait K", "wait V"))
    if share <= HIGH_WAIT:
        return None
    return e.finding(
        "load",
        f"load-bound: {share:.0%} of a step waits for K and V",
        MEDIUM,
        "with more KV stages, or fewer heads at a time (L2), the wait shrinks",
        e.sweep("load"),
    )


def tile_overhead(e: Gathered) -> TriageFinding | None:
    """Prologue and epilogue."""
    account = e.snapshot.account
    if account is None or account.tile_ends <= HIGH_TILE_ENDS:
        return None
    return e.finding(
        "tile ends",
        f"tile-overhead-bound: {account.tile_ends:.0%} of the time is prologue and epilogue of tiles",
        MEDIUM,
        "a longer sequence has the same ends a tile and more steps",
    )


def last_wave(e: Gathered) -> TriageFinding | None:
    """Idle SMs at the end."""
    account = e.snapshot.account
    if account is None or account.tail <= HIGH_TAIL:
        return None
    return e.finding(
        "last wave",
        f"{account.tail:.0%} of the chip idles in the last wave",
        HIGH if small(e) else MEDIUM,
        "one head or batch more costs no time until the wave is full",
    )


def split_early(e: Gathered) -> TriageFinding | None:
    """P handed over too early: MMA stands inside PV."""
    share = e.wait_share(e.snapshot.mma, "wait P 2nd")
    if share <= 2 * HIGH_WAIT or not e.split_knob or e.snapshot.sweep is not None:
        return None
    return e.finding(
        "early P",
        f"MMA waits {share:.0%} of a step inside PV for the rest of P: perhaps handed over too early",
        LOW,
        "a later first signal does not help",
        e.sweep("handoff"),
    )


def bound(e: Gathered) -> TriageFinding | None:
    """What limits the step itself, once nothing around it does."""
    floors, period = e.snapshot.floors, e.snapshot.clean_period_cycles
    multiple = ratio(period, floors)
    if floors is not None and multiple is not None and multiple <= NEAR_FLOOR:
        tensor = floors.unit == "tensor"
        name = "MMA-bound" if tensor else "softmax-bound (exp2)"
        return e.finding(
            "bound",
            f"{name}: the clean period is {multiple:.2f} times the {floors.unit} floor of {floors.floor:.0f} cycles",
            HIGH,
            f"{'a narrower format' if tensor else 'emulating part of exp2'} moves the period; nothing else does",
        )
    if e.wait_p > 2 * HIGH_WAIT:
        return e.finding(
            "bound",
            f"softmax-bound: MMA waits {e.wait_p:.0%} of a step for P",
            MEDIUM,
            "fewer softmax instructions shorten the period",
            e.sweep("handoff"),
        )
    lead = e.snapshot.lead
    if lead is None or not lead.step_cycles or multiple is None or floors is None or small(e):
        return None
    waits = sorted(lead.waits_cycles, key=lambda item: -item[1])
    longest = (
        f"; its longest wait is {waits[0][0]}, {waits[0][1] / lead.step_cycles:.0%}" if waits and waits[0][1] else ""
    )
    return e.finding(
        "bound",
        f"at no floor: the clean period is {multiple:.2f} times the {floors.unit} floor{longest}",
        LOW,
        "latency and dependencies between roles, not a unit: look at the timeline",
    )


def spills(e: Gathered) -> TriageFinding | None:
    """Registers in memory."""
    if e.sass is None or not e.sass.spills:
        return None
    budget = next((role.register_limit for role in e.sass.roles if role.spills and role.register_limit), None)
    cause = f": {budget} registers are too few for this compiler" if budget else ""
    return e.finding(
        "spills",
        f"{spill_sentence(e.sass)}{cause}",
        HIGH,
        "compile with more registers for that role: spills gone and time unchanged would mean it was not this",
        SassJob() if budget else None,
    )


def conversion_bound(e: Gathered) -> TriageFinding | None:
    """Converting P."""
    floors = e.sass_floors
    tensor = e.snapshot.floors.of("tensor") if e.snapshot.floors else None
    if floors is None or tensor is None:
        return None
    convert, exp2 = floors.of("convert") or 0.0, floors.of("exp2") or 0.0
    if convert < max(exp2, tensor):
        return None
    return e.finding(
        "conversion",
        f"conversion-bound: F2FP alone needs {convert:.0f} cycles a step, exp2 {exp2:.0f}, MMA {tensor:.0f}",
        HIGH,
        "bf16 P is faster",
    )


def headroom(e: Gathered) -> TriageFinding | None:
    """Can reordering help?"""
    role = step_of(e.sass) if e.sass is not None else None
    if role is None or role.step_spills or not role.step_mix.packs:
        return None
    mix = role.step_mix
    if mix.transitions >= mix.packs / 2 and mix.longest_run < LONG_RUN:
        return None
    return e.finding(
        "scheduling",
        f"scheduling headroom: exponentials and conversions of a step stand in runs of up to {mix.longest_run} "
        f"({mix.transitions} transitions)",
        LOW,
        "woven SASS is not faster: then the units were not the limit",
    )


def better_split(e: Gathered) -> TriageFinding | None:
    """The sweep found another one."""
    sweep, points = e.snapshot.sweep, e.snapshot.sweep_points
    if sweep is None or sweep.contaminated or sweep.state != "done":
        return None
    for series in dict.fromkeys(point.series for point in points):
        own = [p for p in points if p.series == series and p.status == "measured"]
        faster = [p for p in own if (p.fresh_word or p.word) == "faster"]
        if not faster:
            continue
        again = [p for p in faster if p.fresh_percent is not None] or faster
        best = min(again, key=lambda p: p.fresh_percent if p.fresh_percent is not None else p.change_percent or 0.0)
        gain = -(best.fresh_percent if best.fresh_percent is not None else best.change_percent or 0.0)
        if gain < 100.0 * (sweep.margin or 0.01):
            continue
        base = sweep.baselines.get(series, "?")
        return e.finding(
            "split",
            f"{sweep.knob} {best.value} is {gain:.1f}% faster than {base}",
            HIGH,
            "an A/B over fresh processes does not confirm it",
            AbJob(tier=2, a={sweep.knob: base}, b={sweep.knob: best.value}),
        )
    return None


def wrong_output(e: Gathered) -> TriageFinding | None:
    """Nothing else matters then."""
    failed = [check for check in e.snapshot.checks if not check.passed]
    if failed:
        return e.finding("output", f"the output is WRONG: {failed[0].text}", HIGH, "another setting is right")
    return None


def flaky(e: Gathered) -> TriageFinding | None:
    """Not the same every time."""
    for found in e.snapshot.repeats:
        if found.flaky_launches:
            return e.finding(
                "flaky",
                f"FLAKY: {found.flaky_launches} of {found.times} launches of {found.setting} differ: {found.where}",
                HIGH,
                "1000 launches without a difference",
                CheckJob(times=1000),
            )
    return None


RULES: dict[int, tuple[Rule, ...]] = {
    2: (
        foreign_process,
        clock_bound,
        clock_drop,
        slow_sm_found,
        recompiling,
        launch_bound,
        probe_effect,
        disagreement,
        load_bound,
        tile_overhead,
        last_wave,
        split_early,
        bound,
    ),
    3: (spills, conversion_bound, headroom),
    5: (better_split,),
    6: (wrong_output, flaky),
}
# findings that leave the numbers of a step unusable
SPOILING = frozenset({"foreign process", "probe effect", "output"})


def found_in(e: Gathered, step: int) -> list[TriageFinding]:
    """All findings of a step."""
    return [finding for rule in RULES.get(step, ()) if (finding := rule(e))]
