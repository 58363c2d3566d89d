"""What is wrong with a setting of the fork, in sentences, before anything is launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fa4top.targets.fork.knobs import BY_NAME, WRONG, emulates_exp2
from fa4top.targets.fork.modes import SM100, Case
from fa4top.targets.fork.split import handoff, store_rep

REFUSED, DANGER, NOTE = "refused", "danger", "note"


@dataclass(frozen=True)
class Finding:
    """``level``: refused (it can not work), danger (only with --unsafe), note (it works; know this)."""

    level: str
    text: str


Setting = dict[str, str]
Rule = Callable[[Case, Setting], "Finding | None"]


def _on(chosen: Setting, name: str) -> bool:
    return chosen.get(name) == "1"


def store_chunks(case: Case, chosen: Setting) -> Finding | None:
    """A store must be a power of two that divides P's columns."""
    rep, columns = store_rep(case, chosen), case.pv.p_columns
    if rep & (rep - 1) == 0 and columns % rep == 0:
        return None
    legal = [str(1 << i) for i in range(columns.bit_length()) if columns % (1 << i) == 0]
    text = f"{case.pv.rep_knob}={rep} does not divide the {columns} columns of P; legal: {', '.join(legal)}"
    return Finding(REFUSED, text)


def handoff_contract(case: Case, chosen: Setting) -> Finding | None:
    """Nothing may be read before it is written."""
    found = handoff(case, chosen)
    if found.safe:
        return None
    return Finding(
        DANGER,
        f"P is signalled after {found.producer} of {found.chunks} chunks, but {found.consumer} of {found.tiles} "
        f"K-tiles are read before the second signal: {found.producer}/{found.chunks} < {found.consumer}/{found.tiles}, "
        "so the MMA warp reads tensor memory that nobody wrote",
    )


def descriptor_register(case: Case, chosen: Setting) -> Finding | None:
    """Plain fp8 advances a descriptor that its first loop writes only from the second tile on."""
    if case.pv_mode != "fp8" or handoff(case, chosen).consumer > 1:
        return None
    return Finding(
        DANGER,
        "with plain fp8 the consumer takes 1 K-tile before the second signal: a register of V's descriptor is then "
        "used before it is set (illegal address or instruction); choose a fraction from 1/2 on",
    )


def ldred_needs_sm103(case: Case, chosen: Setting) -> Finding | None:
    """tcgen05.ld.red."""
    if case.arch == SM100 and _on(chosen, "FA4_LDRED_ROWMAX"):
        return Finding(REFUSED, "FA4_LDRED_ROWMAX=1 compiles an instruction that sm_100a does not have")
    return None


def mxfp8_log2(case: Case, chosen: Setting) -> Finding | None:
    """An assertion of the fork."""
    if case.pv_mode == "mxfp8" and chosen.get("FA4_FP4_PV_LOG2_QUANT") == "0":
        return Finding(REFUSED, "PV in mxfp8 asserts FA4_FP4_PV_LOG2_QUANT=1")
    return None


def mxfp8_pipeline(case: Case, chosen: Setting) -> Finding | None:
    """An assertion of the fork."""
    if case.pv_mode == "mxfp8" and _on(chosen, "FA4_FP4_PV_QUANT_STORE_PIPELINE"):
        return Finding(REFUSED, "PV in mxfp8 asserts FA4_FP4_PV_QUANT_STORE_PIPELINE=0")
    return None


def mxfp8_emulation(case: Case, chosen: Setting) -> Finding | None:
    """Not asserted, and wrong."""
    if case.pv_mode != "mxfp8" or not emulates_exp2(case, chosen):
        return None
    why = "FA4_FORCE_E2E=1" if _on(chosen, "FA4_FORCE_E2E") else "exp2 emulation, on by default on sm_100a,"
    return Finding(DANGER, f"{why} sends mxfp8's P to a routine made for E2M1 only: wrong output, and no assertion")


def scale_factor_slot(case: Case, chosen: Setting) -> Finding | None:
    """Scale factors beside O."""
    slot = chosen.get("FA4_SFQK_TMEM_SLOT", "s")
    if slot == "s":
        return None
    return Finding(DANGER, f"FA4_SFQK_TMEM_SLOT={slot}: QK's scale factors can collide with the accumulator of O")


def debug_knobs(case: Case, chosen: Setting) -> Finding | None:
    """Knobs for performance probes only."""
    wrong = [name for name in chosen if BY_NAME[name].numerics == WRONG and _on(chosen, name)]
    return Finding(DANGER, f"{', '.join(wrong)}: the output is wrong, on purpose") if wrong else None


def stale_registers(case: Case, chosen: Setting) -> Finding | None:
    """No zero fill."""
    if chosen.get("FA4_FP8_PV_ZERO_FILL_REGS") == "0":
        return Finding(DANGER, "FA4_FP8_PV_ZERO_FILL_REGS=0 may leave stale bytes in P's registers")
    return None


def spilling_unroll(case: Case, chosen: Setting) -> Finding | None:
    """Range unroll."""
    if case.pv_mode == "fp8" and int(chosen.get("FA4_FP8_PV_RANGE_UNROLL", "0")) > 0:
        return Finding(NOTE, "FA4_FP8_PV_RANGE_UNROLL above 0 spills: 227 TFLOP/s instead of 1 909 on a GB300")
    return None


def without_effect(case: Case, chosen: Setting) -> Finding | None:
    """Knobs that this mode does not read."""
    idle = [name for name in chosen if not BY_NAME[name].applies(case)]
    if case.head_dim <= 64:
        idle += [name for name in chosen if name.startswith("FA4_FP8_PV_P_SPLIT") and name not in idle]
    if emulates_exp2(case, chosen):
        needs_off = ("FA4_FP8_PV_PACK_STORE_PIPELINE", "FA4_FP8_PV_RANGE_UNROLL", "FA4_FP4_PV_LOG2_QUANT")
        idle += [name for name in needs_off if chosen.get(name, "0") != "0" and name not in idle]
    if case.pv_mode == "fp4" and _on(chosen, "FA4_FP4_PV_QUANT_STORE_PIPELINE"):
        idle += [name for name in chosen if name.startswith("FA4_FP4_PV_P_SPLIT")]
    if not idle:
        return None
    where = f"QK {case.qk_mode}, PV {case.pv_mode}, head dim {case.head_dim} on {case.arch}"
    return Finding(NOTE, f"{', '.join(idle)}: no effect here ({where})")


def numerics(case: Case, chosen: Setting) -> Finding | None:
    """What to compare with."""
    changing = [name for name in chosen if BY_NAME[name].numerics == "changes" and BY_NAME[name].applies(case)]
    if not changing:
        return None
    return Finding(NOTE, f"{', '.join(changing)}: outputs change; compare errors against FP32, not bits")


RULES: tuple[Rule, ...] = (
    handoff_contract,
    descriptor_register,
    ldred_needs_sm103,
    mxfp8_log2,
    mxfp8_pipeline,
    mxfp8_emulation,
    scale_factor_slot,
    debug_knobs,
    stale_registers,
    spilling_unroll,
    without_effect,
    numerics,
)


def judge(case: Case, chosen: Setting) -> list[Finding]:
    """Everything that is to be said of a setting; [] when nothing is. Values come first: rules need them legal."""
    if problem := case.problem():
        return [Finding(REFUSED, problem)]
    found = []
    for name, value in chosen.items():
        if name not in BY_NAME:
            near = [known for known in BY_NAME if set(name.split("_")[1:]) & set(known.split("_")[3:])]
            hint = f"; near: {', '.join(near[:3])}" if near else ""
            found.append(Finding(REFUSED, f"the fork has no knob {name}{hint}"))
        elif message := BY_NAME[name].problem(value):
            found.append(Finding(REFUSED, message))
    if not found and (chunks := store_chunks(case, chosen)):
        found.append(chunks)
    return found or [finding for rule in RULES if (finding := rule(case, chosen))]
