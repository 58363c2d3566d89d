"""Triage: the method's six steps, what each found and rules out, and the one answer. Pure, on the rules' findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fa4top.analysis.chip.chips import chip_of
from fa4top.analysis.sass.compare import headline
from fa4top.analysis.triage.gathered import HIGH, LOW, MEDIUM, Gathered
from fa4top.analysis.triage.rules import SPOILING, found_in
from fa4top.analysis.view.limits import HIGH_WAIT
from fa4top.orders.command_line import short_command
from fa4top.records import TriageFinding, TriageStep

SHOWN_RATES = ("ex2.approx.ftz.f32", "cvt.rn.bf16x2", "cvt.rn.satfinite.e4m3x2", "fma.rn.f32", "max")
TITLES = {1: "throughputs", 2: "trace", 3: "SASS", 4: "algebra", 5: "split", 6: "checks"}


@dataclass(frozen=True)
class Said:
    """What a step comes to: found, clear or unknown; the evidence; the conclusion; which class of fix is ruled out;
    and whether the conclusion is made of the findings' own texts."""

    state: str
    evidence: list[str]
    conclusion: str
    rules_out: str
    of_findings: bool = False


def triage(e: Gathered, run_id: int) -> list[TriageStep]:
    """The six steps."""
    by_step = {step: found_in(e, step) for step in TITLES}
    keys = {finding.key for findings in by_step.values() for finding in findings}
    steps = []
    for number, title in TITLES.items():
        findings = by_step[number]
        said = _said(e, number, findings, keys)
        steps.append(
            TriageStep(
                run_id=run_id,
                number=number,
                title=title,
                state=said.state,
                evidence=said.evidence,
                conclusion=said.conclusion,
                rules_out=said.rules_out,
                findings=findings,
                said=[finding.key for finding in findings] if said.of_findings else [],
            )
        )
    return steps


def _said(e: Gathered, step: int, findings: list[TriageFinding], keys: set[str]) -> Said:
    state = "found" if any(f.key != "bound" for f in findings) else "clear"
    text = "; ".join(f.text for f in findings)
    if step == 1:
        return _throughputs(e)
    if step == 2:
        if e.snapshot.lead is None:
            wrong = any(not check.passed for check in e.snapshot.checks)
            why = "no numbers from a kernel whose output is wrong" if wrong else "not traced: that needs the GPU"
            return Said("unknown", [], why, "")
        return Said(state, _trace_evidence(e), text, "" if keys & SPOILING else _ruled_out(keys), True)
    if step == 3:
        if e.sass is None:
            return Said("unknown", [], e.sass_why_not or "no SASS of this target", "")
        seen = keys & {"spills", "scheduling"}
        rules = "" if seen else "reordering source: the step's instructions are woven already"
        return Said(state, [headline(e.sass)], text or "no spills, nothing to reorder", rules, True)
    if step == 4:
        return _algebra(e, keys)
    if step == 5:
        return _split(e, text, findings)
    if not e.snapshot.checks:
        return Said("unknown", [], "no output was checked", "")
    evidence = [check.text for check in e.snapshot.checks] + [
        f"{r.setting}: {r.verdict}" for r in e.snapshot.repeats if r.verdict
    ]
    steady = any(r.verdict for r in e.snapshot.repeats)
    rules = "wrong results as the price of speed" if not findings else ""
    return Said(state, evidence, text or ("right, and the same every time" if steady else "right"), rules, True)


def _throughputs(e: Gathered) -> Said:
    measured = [r for r in e.snapshot.bench if r.status == "measured" and r.value is not None]
    if measured:
        lines = [f"{r.name} {r.value:.1f} {r.unit}" for r in measured if r.name.startswith(SHOWN_RATES)][:6]
        low = [r for r in measured if r.limit_share is not None and r.limit_share < 0.9 and r.perfect is None]
        text = f"{len(measured)} kernels measured on this chip"
        if low:
            text += f"; below 90% of their unit's limit: {', '.join(r.name for r in low[:4])}"
        return Said("clear", lines or [text], text, "a chip that is slower than its instructions")
    chip = chip_of(e.arch)
    if chip is None:
        return Said("unknown", [], "no figures for this chip", "")
    return Said(
        "unknown",
        [f"exp2 {chip.rates.exp2:g} a clock and SM ({chip.rates.source})"],
        "published figures: this chip was not measured",
        "",
    )


def _trace_evidence(e: Gathered) -> list[str]:
    s = e.snapshot
    lines = []
    if s.clean_us is not None:
        lines.append(
            f"kernel {s.clean_us / 1000:.4f} ms, {s.tflops or 0:.0f} TFLOP/s; probes {s.probe_effect or 0:+.1%}"
        )
    if s.floors is not None and s.clean_period_cycles:
        lines.append(f"clean period {s.clean_period_cycles:.0f} cycles, floor {s.floors.floor:.0f} ({s.floors.unit})")
    for role in s.roles:
        if role.step_cycles and role.waits_cycles:
            waits = ", ".join(
                f"{cause} {cycles / role.step_cycles:.0%}" for cause, cycles in role.waits_cycles if cycles
            )
            lines.append(f"{role.role}: step {role.step_cycles:.0f} cycles; {waits or 'no waits'}")
    if s.account is not None:
        lines.append(f"steps {s.account.steps:.0%}, tile ends {s.account.tile_ends:.0%}, tail {s.account.tail:.0%}")
    return lines


_CLASSES = {
    "load": "loads", "tile ends": "tile overhead", "last wave": "the last wave", "clock": "the clock",
    "launch": "launching",
}  # fmt: skip


def _ruled_out(keys: set[str]) -> str:
    # a clock that falls with the kernel's power is no fault, but not ruled out either
    seen = keys | ({"clock"} if "clock drop" in keys else set())
    return ", ".join(name for key, name in _CLASSES.items() if key not in seen)


def _algebra(e: Gathered, keys: set[str]) -> Said:
    if "spills" in keys:
        return Said("unknown", [], "not before step 3 is mended", "")
    softmax = e.wait_p > 2 * HIGH_WAIT or (e.snapshot.floors is not None and e.snapshot.floors.unit == "exp2")
    floors = e.sass_floors
    lines = [f"{unit}: at least {cycles:.0f} cycles a step" for unit, cycles in floors.cycles] if floors else []
    if not softmax:
        return Said(
            "clear", lines, "softmax is not the limit: fewer of its instructions would not show", "algebra in softmax"
        )
    if floors is None:
        return Said("unknown", [], "softmax limits, and its instructions were not read", "")
    heaviest = floors.unit
    advice = {
        "exp2": "emulate part of exp2 on the FMA pipes, or fold scales into its argument",
        "issue": "remove any instruction: the schedulers are the limit; fold scales into exp2's argument",
        "fma": "fold scales into exp2's argument; use packed FFMA2",
        "alu": "take the row maximum with the load (tcgen05.ld.red), convert in pairs",
        "convert": "a cheaper format of P",
    }[heaviest]
    return Said("found", lines, f"softmax limits; its heaviest unit is {heaviest}: {advice}", "")


def _split(e: Gathered, text: str, findings: list[TriageFinding]) -> Said:
    if not e.split_knob:
        return Said("unknown", [], "this target has no split on this chip", "")
    sweep = e.snapshot.sweep
    if sweep is None or sweep.state != "done":
        job = e.sweep("handoff")
        again = f": {short_command(job)}" if job is not None else ""
        return Said("unknown", [f"MMA waits {e.wait_p:.0%} of a step for P"], f"not swept{again}", "")
    if sweep.contaminated:
        return Said("unknown", [sweep.text], sweep.contaminated, "")
    rules = "" if findings else "the handoff's split"
    state = "found" if findings else "clear"
    return Said(state, [sweep.text], text or "the present split is as good as any", rules, True)


# what to act on first; what is not named comes with the limit of the step itself
URGENCY = {"output": 0, "foreign process": 1, "flaky": 1, "spills": 2, "split": 3, "clock": 3, "slow SM": 3, "load": 4,
           "launch": 4, "recompiling": 4, "conversion": 4, "bound": 5}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What to act on first, and what else is so; either may be ''."""

    best: str
    rest: str

    @property
    def text(self) -> str:
        """In one sentence."""
        return f"{self.best}. {self.rest}" if self.rest else self.best


def answer(steps: Sequence[TriageStep]) -> Answer:
    """The finding to act on first, then what limits otherwise."""
    sure = {HIGH: 0, MEDIUM: 1, LOW: 2}
    found = [f for step in steps for f in step.findings]
    if not found:
        return Answer("nothing stands out in what was looked at", "")
    best = min(found, key=lambda f: (_urgency(f), sure.get(f.confidence, 3)))
    limit = next((f.text for f in found if f.key == "bound" and f is not best), "")
    if limit:
        return Answer(best.text, f"Otherwise {limit}")
    also = [f.text for f in found if f is not best][:2]
    return Answer(best.text, f"Also: {'; '.join(also)}" if also else "")


def _urgency(finding: TriageFinding) -> int:
    small = finding.key == "last wave" and finding.confidence == HIGH  # most of the chip has nothing to do
    return 4 if small else URGENCY.get(finding.key, 6)
