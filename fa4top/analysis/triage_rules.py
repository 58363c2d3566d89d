"""Triage rules: what the evidence says, finding by finding. Small and pure.

A rule looks at the evidence and gives a finding or None. Every finding says how sure it is and how to falsify it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fa4top.analysis.floors import Floors, ratio, sass_floors
from fa4top.analysis.fold import Snapshot
from fa4top.analysis.sass_compare import spill_sentence, step_of
from fa4top.analysis.sass_kernel import KernelSass
from fa4top.analysis.verdict import HIGH_TAIL, HIGH_TILE_ENDS, HIGH_WAIT, lead_role, slow_sm
from fa4top.records import TriageFinding

NEAR_FLOOR = 1.25
DISAGREE = 0.10
HIGH_PROBES = 0.05
CLOCK_LOSS = 0.95
RECOMPILE = 20.0
LONG_RUN = 48
LARGE_TAIL, SHORT_US = 0.3, 100.0
HIGH, MEDIUM, LOW = "high", "medium", "low"


@dataclass(frozen=True)
class Evidence:
    """What was gathered. ``knob_names`` are the target's; ``split_knob`` places the first signal of P ('' where there
    is none); ``options`` name target, shape and setting for command lines."""

    snapshot: Snapshot
    sass: KernelSass | None = None
    sass_why_not: str = ""
    split_knob: str = ""
    knob_names: frozenset[str] = frozenset()
    options: tuple[str, ...] = ()

    @property
    def arch(self) -> str:
        """The chip."""
        return self.snapshot.plan.arch if self.snapshot.plan else ""

    @property
    def sass_floors(self) -> Floors | None:
        """Floors of the softmax step's own instructions."""
        role = step_of(self.sass) if self.sass is not None else None
        return sass_floors(role.step_units, role.step_mix.ex2, self.arch, self.snapshot.bench) if role else None

    def wait_share(self, role: str, *causes: str) -> float:
        """Part of a role's step spent in these waits; 0 where that is not known."""
        view = self.snapshot.role(role)
        if view is None or not view.step_cycles:
            return 0.0
        return sum(cycles for cause, cycles in view.waits_cycles if cause in causes) / view.step_cycles

    @property
    def wait_p(self) -> float:
        """Part of the MMA role's step that waits for P, both signals."""
        return self.wait_share("mma", "wait P", "wait P 2nd")

    def run(self, words: str) -> str:
        """A command for this target."""
        verb, _, rest = words.partition(" ")
        return " ".join(part for part in ("fa4top", verb, rest, *self.options) if part)


Rule = Callable[[Evidence], "TriageFinding | None"]


def foreign_process(e: Evidence) -> TriageFinding | None:
    """Nothing holds beside somebody else's work."""
    gpu = e.snapshot.gpu
    if gpu is None or not gpu.foreign_pids:
        return None
    return TriageFinding(
        "foreign process",
        f"{len(gpu.foreign_pids)} other processes compute on this GPU: no time here is to be trusted",
        HIGH, "run alone: nvidia-smi shows the others", "",
    )  # fmt: skip


def clock_bound(e: Evidence) -> TriageFinding | None:
    """Held back by the driver."""
    gpu = e.snapshot.gpu
    if gpu is None or not gpu.throttle:
        return None
    return TriageFinding(
        "clock", f"clock-bound: held back by {', '.join(gpu.throttle)}", HIGH,
        "in cycles the kernel is as fast as before: compare in cycles, or lock the clock (--lock-clock)",
        e.run("ab --self-test --mode sustained"),
    )  # fmt: skip


def clock_drop(e: Evidence) -> TriageFinding | None:
    """The power that a kernel draws sets its clock, with no reason given."""
    gpu, by_kernel = e.snapshot.gpu, e.snapshot.sm_clock_mhz
    if gpu is None or gpu.throttle or not gpu.sm_clock_mhz or not by_kernel:
        return None
    loss = 1.0 - by_kernel / gpu.sm_clock_mhz
    if loss < 1.0 - CLOCK_LOSS:
        return None
    return TriageFinding(
        "clock drop",
        f"SM clock {by_kernel:.0f} MHz inside the kernel, {gpu.sm_clock_mhz:.0f} at rest: its power costs {loss:.0%}",
        MEDIUM,
        "a setting that draws less power has a higher clock: compare time and cycles",
        "",
    )


def slow_sm_found(e: Evidence) -> TriageFinding | None:
    """One SM behind the others."""
    text = slow_sm(e.snapshot)
    return TriageFinding("slow SM", text, MEDIUM, "another GPU of the node does not show it", "") if text else None


def recompiling(e: Evidence) -> TriageFinding | None:
    """A compile inside the run."""
    slowest, usual = e.snapshot.slowest_us, e.snapshot.clean_us
    if not slowest or not usual or slowest < RECOMPILE * usual:
        return None
    return TriageFinding(
        "recompiling",
        f"one launch took {slowest / usual:.0f} times the usual: a compile, or another process, inside the run",
        MEDIUM, "it happens at the first launch of a shape only, or with other work on the machine", "",
    )  # fmt: skip


def launch_bound(e: Evidence) -> TriageFinding | None:
    """The host takes longer than the GPU."""
    host, gpu = e.snapshot.host_us, e.snapshot.clean_us
    if not host or not gpu or host < gpu:
        return None
    return TriageFinding(
        "launch", f"launch-bound: the host needs {host:.0f} us for a launch that runs {gpu:.0f} us",
        HIGH, "a CUDA graph, or a longer sequence, takes the gap away", "",
    )  # fmt: skip


def probe_effect(e: Evidence) -> TriageFinding | None:
    """Traces that change what they measure."""
    effect = e.snapshot.probe_effect
    if effect is None or abs(effect) <= HIGH_PROBES:
        return None
    return TriageFinding(
        "probe effect", f"probes cost {effect:+.1%}: waits are proportions only, and small ones mean nothing",
        HIGH, "the clean time is not touched by probes: decide by A/B", e.run("ab --self-test"),
    )  # fmt: skip


def _small(e: Evidence) -> bool:
    """Is the problem too small for the clean period to be one of steps?"""
    account = e.snapshot.account
    return (account is not None and account.tail > LARGE_TAIL) or (e.snapshot.clean_us or 0.0) < SHORT_US


def disagreement(e: Evidence) -> TriageFinding | None:
    """Traced and clean twins tell different stories."""
    lead = lead_role(e.snapshot.roles)
    clean = e.snapshot.clean_period_cycles
    account = e.snapshot.account
    if lead is None or lead.median_cycles is None or not clean or account is None or not account.steps:
        return None
    if _small(e):
        return None  # a launch's own cost is in the clean time then
    # of a CTA's life: idle SMs of the last wave are not in the period
    steps = account.steps / (account.steps + account.tile_ends)
    gap = lead.median_cycles / (clean * steps) - 1.0
    if abs(gap) <= DISAGREE + HIGH_PROBES:
        return None
    return TriageFinding(
        "disagreement",
        f"a traced step has {lead.median_cycles:.0f} cycles, the clean time gives {clean * steps:.0f}: {gap:+.0%}",
        MEDIUM, "other CTAs and SMs give the same period, and so does --probe-set period", "",
    )  # fmt: skip


def load_bound(e: Evidence) -> TriageFinding | None:
    """Waiting for K and V."""
    lead = lead_role(e.snapshot.roles)
    share = max(e.wait_share("mma", "wait KV"), e.wait_share(lead.role, "wait K", "wait V") if lead else 0.0)
    if share <= HIGH_WAIT:
        return None
    return TriageFinding(
        "load", f"load-bound: {share:.0%} of a step waits for K and V", MEDIUM,
        "with more KV stages, or fewer heads at a time (L2), the wait shrinks", sweep_if(e, "kv_stages"),
    )  # fmt: skip


def tile_overhead(e: Evidence) -> TriageFinding | None:
    """Prologue and epilogue."""
    account = e.snapshot.account
    if account is None or account.tile_ends <= HIGH_TILE_ENDS:
        return None
    return TriageFinding(
        "tile ends", f"tile-overhead-bound: {account.tile_ends:.0%} of the time is prologue and epilogue of tiles",
        MEDIUM, "a longer sequence has the same ends a tile and more steps", "",
    )  # fmt: skip


def last_wave(e: Evidence) -> TriageFinding | None:
    """Idle SMs at the end."""
    account = e.snapshot.account
    if account is None or account.tail <= HIGH_TAIL:
        return None
    return TriageFinding(
        "last wave", f"{account.tail:.0%} of the chip idles in the last wave", HIGH if _small(e) else MEDIUM,
        "one head or batch more costs no time until the wave is full", "",
    )  # fmt: skip


def split_early(e: Evidence) -> TriageFinding | None:
    """P handed over too early: MMA stands inside PV."""
    share = e.wait_share("mma", "wait P 2nd")
    if share <= 2 * HIGH_WAIT or not e.split_knob or e.snapshot.sweep is not None:
        return None
    return TriageFinding(
        "early P", f"MMA waits {share:.0%} of a step inside PV for the rest of P: perhaps handed over too early", LOW,
        "a later first signal does not help", sweep_if(e, e.split_knob),
    )  # fmt: skip


def bound(e: Evidence) -> TriageFinding | None:
    """What limits the step itself, once nothing around it does."""
    floors, period = e.snapshot.floors, e.snapshot.clean_period_cycles
    multiple = ratio(period, floors)
    if floors is not None and multiple is not None and multiple <= NEAR_FLOOR:
        tensor = floors.unit == "tensor"
        name = "MMA-bound" if tensor else "softmax-bound (exp2)"
        return TriageFinding(
            "bound",
            f"{name}: the clean period is {multiple:.2f} times the {floors.unit} floor of {floors.floor:.0f} cycles",
            HIGH,
            f"{'a narrower format' if tensor else 'emulating part of exp2'} moves the period; nothing else does",
            "",
        )
    if e.wait_p > 2 * HIGH_WAIT:
        return TriageFinding(
            "bound", f"softmax-bound: MMA waits {e.wait_p:.0%} of a step for P", MEDIUM,
            "fewer softmax instructions shorten the period", sweep_if(e, e.split_knob),
        )  # fmt: skip
    lead = lead_role(e.snapshot.roles)
    if lead is None or not lead.step_cycles or multiple is None or floors is None or _small(e):
        return None
    waits = sorted(lead.waits_cycles, key=lambda item: -item[1])
    longest = (
        f"; its longest wait is {waits[0][0]}, {waits[0][1] / lead.step_cycles:.0%}" if waits and waits[0][1] else ""
    )
    return TriageFinding(
        "bound", f"at no floor: the clean period is {multiple:.2f} times the {floors.unit} floor{longest}", LOW,
        "latency and dependencies between roles, not a unit: look at the timeline", "",
    )  # fmt: skip


def spills(e: Evidence) -> TriageFinding | None:
    """Registers in memory."""
    if e.sass is None or not e.sass.spills:
        return None
    budget = next((role.register_limit for role in e.sass.roles if role.spills and role.register_limit), None)
    cause = f": {budget} registers are too few for this compiler" if budget else ""
    return TriageFinding(
        "spills", f"{spill_sentence(e.sass)}{cause}", HIGH,
        "compile with more registers for that role: spills gone and time unchanged would mean it was not this",
        e.run("sass --expect no-spill --listing") if budget else "",
    )  # fmt: skip


def conversion_bound(e: Evidence) -> TriageFinding | None:
    """Converting P."""
    floors = e.sass_floors
    tensor = e.snapshot.floors.of("tensor") if e.snapshot.floors else None
    if floors is None or tensor is None:
        return None
    convert, exp2 = floors.of("convert") or 0.0, floors.of("exp2") or 0.0
    if convert < max(exp2, tensor):
        return None
    return TriageFinding(
        "conversion",
        f"conversion-bound: F2FP alone needs {convert:.0f} cycles a step, exp2 {exp2:.0f}, MMA {tensor:.0f}", HIGH,
        "bf16 P is faster", "",
    )  # fmt: skip


def headroom(e: Evidence) -> TriageFinding | None:
    """Can reordering help?"""
    role = step_of(e.sass) if e.sass is not None else None
    if role is None or role.step_spills or not role.step_mix.packs:
        return None
    mix = role.step_mix
    if mix.transitions >= mix.packs / 2 and mix.longest_run < LONG_RUN:
        return None
    return TriageFinding(
        "scheduling",
        f"scheduling headroom: exponentials and conversions of a step stand in runs of up to {mix.longest_run} "
        f"({mix.transitions} transitions)", LOW, "woven SASS is not faster: then the units were not the limit", "",
    )  # fmt: skip


def better_split(e: Evidence) -> TriageFinding | None:
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
        return TriageFinding(
            "split", f"{sweep.knob} {best.value} is {gain:.1f}% faster than {base}", HIGH,
            "an A/B over fresh processes does not confirm it",
            e.run(f"ab --tier 2 --a {sweep.knob}={base} --b {sweep.knob}={best.value}"),
        )  # fmt: skip
    return None


def wrong_output(e: Evidence) -> TriageFinding | None:
    """Nothing else matters then."""
    failed = [check for check in e.snapshot.checks if not check.passed]
    if failed:
        return TriageFinding("output", f"the output is WRONG: {failed[0].text}", HIGH, "another setting is right", "")
    return None


def flaky(e: Evidence) -> TriageFinding | None:
    """Not the same every time."""
    for found in e.snapshot.repeats:
        if found.flaky_launches:
            return TriageFinding(
                "flaky",
                f"FLAKY: {found.flaky_launches} of {found.times} launches of {found.setting} differ: {found.where}",
                HIGH,
                "1000 launches without a difference", e.run("check --times 1000"),
            )  # fmt: skip
    return None


RULES: dict[int, tuple[Rule, ...]] = {
    2: (
        foreign_process, clock_bound, clock_drop, slow_sm_found, recompiling, launch_bound, probe_effect, disagreement,
        load_bound, tile_overhead, last_wave, split_early, bound,
    ),
    3: (spills, conversion_bound, headroom),
    5: (better_split,),
    6: (wrong_output, flaky),
}  # fmt: skip
# findings that leave the numbers of a step unusable
SPOILING = frozenset({"foreign process", "probe effect", "output"})


def sweep_if(e: Evidence, *knobs: str) -> str:
    """A sweep of the first of these knobs that the target has."""
    known = next((knob for knob in knobs if knob and knob in e.knob_names), "")
    if e.snapshot.sweep is not None and e.snapshot.sweep.knob == known:
        return ""
    values = {"p_split": "1/4,1/2,5/8,3/4", "split_P_arrive": "auto,0,32,64,96", "kv_stages": "2,3,4"}
    return e.run(f"sweep {known}={values[known]}") if known in values else ""


def found_in(e: Evidence, step: int) -> list[TriageFinding]:
    """All findings of a step."""
    return [finding for rule in RULES.get(step, ()) if (finding := rule(e))]
