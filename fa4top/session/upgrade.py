"""Logs of schema 1.0 to 1.3 as 1.4 has them: what a target now says of itself is filled in from what was known then.

The tables here are frozen: they describe recordings, not targets. A newer schema says all of it in its records.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from fa4top.records import (
    Body,
    Header,
    Plan,
    RoleMap,
    StepWork,
    SweepPoint,
    Timeline,
    TraceSample,
    TriageStep,
    WorkerState,
)

SAYS_IT_ALL = 4  # the minor version from which records do
_HOPPER = "sm_90a"
_SOFTMAX = ["softmax0", "softmax1"]
_QUIET = ("auto", "0", "off")
# MUFU.EX2 for each element of S, by (target, architecture)
_EXP2: dict[tuple[str, str], float] = {
    ("fa4", "sm_90a"): 66 / 64,
    ("fa4", "sm_100a"): 105 / 128,
    ("fa4", "sm_103a"): 129 / 128,
    ("builtin", "sm_90a"): 66 / 64,
    ("sim", "sm_90a"): 66 / 64,
    ("sim", "sm_100a"): 105 / 128,
    ("sim", "sm_103a"): 129 / 128,
    ("fa4-fork", "sm_103a"): 129 / 128,
}
_EMULATION = ("ex2_emu_freq", "ex2_emu_start_frg", "FA4_FORCE_E2E", "FA4_E2E_FREQ", "FA4_E2E_START_FRG")
# steps whose conclusion was made of their findings' texts, unless they were not looked at
_OF_FINDINGS = (2, 3, 5, 6)


class Upgrade:
    """One log being read from its beginning (or from its header and plans on, after a jump)."""

    def __init__(self) -> None:
        self._old = False
        self._plan: Plan | None = None
        self._work: StepWork | None = None  # of that plan, and its roles: once, not for every worker's record
        self._roles: RoleMap | None = None

    def body(self, body: Body) -> Body:
        """The body as this version has it."""
        if isinstance(body, Header):
            self._old = body.schema_minor < SAYS_IT_ALL
            return body
        if not self._old:
            return body
        if isinstance(body, Plan):
            self._plan = replace(body, quiet=[name for name, value in body.knobs.items() if value in _QUIET])
            self._work, self._roles = _work(body), _roles(body)
            return self._plan
        if isinstance(body, WorkerState) and self._plan is not None and body.twin != "bench":
            geometry = body.geometry
            if geometry is not None and geometry.work is None:
                geometry = replace(geometry, work=self._work)
            return replace(body, geometry=geometry, roles=body.roles or self._roles)
        if isinstance(body, TraceSample) and body.timeline is not None:
            return replace(body, timeline=_with_waits(body.timeline))
        if isinstance(body, SweepPoint):
            return replace(body, verdict=body.verdict.removeprefix("B is "))
        if isinstance(body, TriageStep) and body.number in _OF_FINDINGS and body.state != "unknown":
            return replace(body, said=[finding.key for finding in body.findings])
        return body


def _with_waits(timeline: Timeline) -> Timeline:
    def is_wait(name: str) -> bool:
        return name == "turn" or name.startswith("wait ")

    rows = [replace(r, spans=[replace(s, wait=is_wait(s.name)) for s in r.spans]) for r in timeline.rows]
    return replace(timeline, rows=rows)


def _roles(plan: Plan) -> RoleMap:
    if plan.target == "builtin":
        return RoleMap(names=["mma", *_SOFTMAX, "load"], lead="softmax0", mma=["mma"])
    if plan.arch == _HOPPER:
        return RoleMap(names=["mma0", "mma1", "mma2"], lead="mma0", mma=["mma0"])
    return RoleMap(names=["mma", *_SOFTMAX, "correction"], lead="softmax0", mma=["mma"])


def _work(plan: Plan) -> StepWork:
    exp2 = _EXP2.get((plan.target, plan.arch))
    if any(plan.knobs.get(knob, "auto") != "auto" for knob in _EMULATION):
        exp2 = None
    try:
        emulated = float(Fraction(plan.knobs.get("exp2_emulation", "0")))
    except (ValueError, ZeroDivisionError):
        exp2, emulated = None, 0.0
    return StepWork(
        qk_format=plan.knobs.get("qk_mode", plan.shape.dtype),
        pv_format=plan.knobs.get("pv_mode", plan.shape.dtype),
        exp2_per_element=exp2 - emulated if exp2 is not None else None,
    )
