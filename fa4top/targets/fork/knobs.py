"""The fork's environment knobs as data: type, default, when read, what they change, where they matter."""

from __future__ import annotations

from dataclasses import dataclass

from fa4top.targets.fork.modes import SM100, Case

SWITCH, INTEGER, NUMBER, CHOICE = "switch", "int", "float", "choice"
INIT, TRACE, CALL = "the kernel object is made", "the kernel is traced", "every call"
BITWISE, CHANGES, WRONG = "bitwise", "changes", "wrong output"


@dataclass(frozen=True)
class ForkKnob:
    """One FA4_* variable. ``modes`` are the PV modes that it acts on (none: all); ``qk`` the QK modes; ``caution`` is
    shown beside it always; ``offered`` are the numbers that a form offers, any other legal one may be typed."""

    name: str
    kind: str
    default: str
    when: str
    numerics: str
    text: str
    modes: tuple[str, ...] = ()
    qk: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    caution: str = ""
    offered: tuple[str, ...] = ()

    def problem(self, value: str) -> str | None:
        """Why the fork would not take this value, or would take it for another one; None when it is good."""
        if self.kind == SWITCH and value not in ("0", "1"):
            return f"{self.name}={value}: only the exact text 1 switches it on; {value!r} counts as off. Write 0 or 1"
        if self.kind == CHOICE and value not in self.values:
            return f"{self.name}={value}: taken for {self.values[0]} without a word; there are {', '.join(self.values)}"
        if self.kind in (INTEGER, NUMBER):
            try:
                number = int(value) if self.kind == INTEGER else float(value)
            except ValueError:
                return f"{self.name}={value} is no {'whole number' if self.kind == INTEGER else 'number'}"
            if (self.least is not None and number < self.least) or (self.most is not None and number > self.most):
                low = f"at least {self.least:g}" if self.least is not None else ""
                high = f"at most {self.most:g}" if self.most is not None else ""
                return f"{self.name}={value}: {' and '.join(filter(None, (low, high)))}"
        return None

    def applies(self, case: Case) -> bool:
        """Does it act on this mode at all?"""
        return (not self.modes or case.pv_mode in self.modes) and (not self.qk or case.qk_mode in self.qk)


def _switch(name: str, default: str, when: str, numerics: str, text: str, **more: object) -> ForkKnob:
    return ForkKnob(name, SWITCH, default, when, numerics, text, **more)  # type: ignore[arg-type]


KNOBS: tuple[ForkKnob, ...] = (
    ForkKnob(
        "FA4_FP8_PV_P_SPLIT_NUM",
        INTEGER,
        "3",
        TRACE,
        BITWISE,
        "numerator of the fraction of P handed over at the first signal; head dim 64 has 3/4 fixed",
        ("fp8", "mxfp8"),
        least=1,
        caution="1/2 instead of 3/4 cost 24% on a GB300; a consumer fraction of 1 tile crashes plain fp8",
        offered=("1", "2", "3", "5", "7"),
    ),
    ForkKnob(
        "FA4_FP8_PV_P_SPLIT_DEN",
        INTEGER,
        "4",
        TRACE,
        BITWISE,
        "denominator of that fraction",
        ("fp8", "mxfp8"),
        least=1,
        offered=("2", "4", "8"),
    ),
    ForkKnob(
        "FA4_FP4_PV_P_SPLIT_NUM",
        INTEGER,
        "1",
        TRACE,
        BITWISE,
        "numerator of the fraction of P handed over at the first signal",
        ("fp4",),
        least=1,
        offered=("1", "3", "7"),
    ),
    ForkKnob(
        "FA4_FP4_PV_P_SPLIT_DEN",
        INTEGER,
        "2",
        TRACE,
        BITWISE,
        "its denominator",
        ("fp4",),
        least=1,
        offered=("2", "4", "8"),
    ),
    ForkKnob(
        "FA4_FP8_PV_TMEM_STORE_REP",
        INTEGER,
        "8 (4 at head dim 64)",
        TRACE,
        BITWISE,
        "columns of P in one store: the handoff moves in such chunks",
        ("fp8",),
        least=1,
        most=32,
        offered=("1", "2", "4", "8", "16", "32"),
    ),
    ForkKnob(
        "FA4_FP4_PV_TMEM_STORE_REP",
        INTEGER,
        "8",
        TRACE,
        BITWISE,
        "the same for quantised P",
        ("fp4", "mxfp8"),
        least=1,
        most=32,
        offered=("1", "2", "4", "8", "16"),
    ),
    ForkKnob(
        "FA4_FP8_PV_KV_STAGE_CAP",
        INTEGER,
        "4 (0, no cap, at head dim 64)",
        TRACE,
        BITWISE,
        "at most so many KV stages; 0: no cap",
        ("fp8",),
        least=0,
        offered=("0", "2", "3", "4", "5"),
    ),
    ForkKnob(
        "FA4_FP8_PV_P_LOG2_OFFSET",
        NUMBER,
        "8.0 (0.0 at head dim 64)",
        TRACE,
        CHANGES,
        "P is scaled by 2 to this power, to use e4m3's range",
        ("fp8",),
        offered=("0.0", "4.0", "8.0"),
    ),
    _switch(
        "FA4_LDRED_ROWMAX",
        "1 on sm_103a, 0 on sm_100a",
        INIT,
        BITWISE,
        "the row maximum comes with the load of S (tcgen05.ld.red)",
        caution="an instruction of sm_103a only",
    ),
    _switch(
        "FA4_FP4_PV_LOG2_QUANT",
        "1",
        INIT,
        CHANGES,
        "quantise P in the log domain; as accurate as without",
        modes=("fp4", "mxfp8"),
    ),
    _switch(
        "FA4_FORCE_E2E",
        "by table: on for sm_100a at head dim 128, off on sm_103a",
        INIT,
        CHANGES,
        "exp2 by polynomial for part of the elements; on: no log-domain quantisation, no fp8 pipeline, no range unroll",
    ),
    ForkKnob(
        "FA4_E2E_FREQ",
        INTEGER,
        "by table: 16, with fp8 9 or 10",
        INIT,
        CHANGES,
        "how often exp2 is emulated",
        least=1,
        offered=("8", "9", "10", "12", "16"),
    ),
    ForkKnob(
        "FA4_E2E_START_FRG",
        INTEGER,
        "by table",
        INIT,
        CHANGES,
        "fragment at which emulation starts",
        least=0,
        offered=("0", "1", "2"),
    ),
    _switch("FA4_FP8_PV_USE_EXPLICIT_PACK", "1", INIT, BITWISE, "0: the generic conversion to e4m3", modes=("fp8",)),
    _switch(
        "FA4_FP8_PV_USE_FUSED_PACK",
        "0",
        INIT,
        BITWISE,
        "exp2 and pack fragment by fragment",
        modes=("fp8",),
        caution="the QUANT span of detailed traces then has no width",
    ),
    _switch(
        "FA4_FP8_PV_PACK_STORE_PIPELINE",
        "0",
        INIT,
        BITWISE,
        "pack and store as a pipeline",
        modes=("fp8",),
        caution="work moves into the STORE_P span; clean kernels were equally fast",
    ),
    _switch(
        "FA4_FP4_PV_QUANT_STORE_PIPELINE",
        "0",
        INIT,
        CHANGES,
        "quantise and store as a pipeline",
        modes=("fp4", "mxfp8"),
        caution="both P signals fire together: the split does nothing",
    ),
    ForkKnob(
        "FA4_FP8_PV_RANGE_UNROLL",
        INTEGER,
        "0",
        INIT,
        BITWISE,
        "-1: unroll all; above 0: by so many",
        ("fp8",),
        least=-1,
        caution="above 0 it spills: 227 instead of 1 909 TFLOP/s",
        offered=("-1", "0", "2", "4"),
    ),
    _switch(
        "FA4_FP8_PV_ZERO_FILL_REGS",
        "1",
        INIT,
        BITWISE,
        "clear P's registers first",
        caution="0 may leave stale bytes in P",
    ),
    _switch("FA4_MXFP8_USE_INLINE_PTX", "0", INIT, BITWISE, "inline PTX for QK", qk=("mxfp8",)),
    _switch("FA4_DEBUG_FORCE_GENERIC_MXFP8_QK", "0", INIT, BITWISE, "the generic GEMM for QK"),
    ForkKnob(
        "FA4_SFQK_TMEM_SLOT",
        CHOICE,
        "s",
        INIT,
        BITWISE,
        "where QK's scale factors lie in tensor memory",
        values=("s", "o", "o_stagger"),
    ),
    _switch("FA4_DEBUG_SKIP_SFQ_S2T", "0", INIT, WRONG, "skip the copy of Q's scale factors"),
    _switch("FA4_DEBUG_SKIP_SFK_S2T", "0", INIT, WRONG, "skip the copy of K's scale factors"),
    _switch("FA4_DEBUG_SF_OFFSETS", "0", TRACE, BITWISE, "print scale-factor offsets"),
    _switch("FA4_ALLOW_PURE_FP8_QK", "0", CALL, CHANGES, "Q and K in fp8, no scale factors: another kernel, no trace"),
    _switch("FA4_PROFILE_PIPELINE", "0", CALL, BITWISE, "compile with the trace", caution="fa4top sets it"),
    _switch(
        "FA4_PROFILE_DETAIL",
        "0",
        INIT,
        BITWISE,
        "12 events a softmax step instead of 8",
        caution="spans grow by 15 to 30%: proportions only",
    ),
    _switch(
        "FA4_PROF_SMEM",
        "1",
        TRACE,
        BITWISE,
        "record into shared memory, flushed once; 0: a global store an event",
        caution="1: the first 128 events of each group only; 0: the kernel takes 40 to 140% longer",
    ),
    _switch("FA4_PROF_EMPTY", "0", TRACE, BITWISE, "barriers in the place of records: what their scheduling costs"),
)
BY_NAME: dict[str, ForkKnob] = {knob.name: knob for knob in KNOBS}


def emulates_exp2(case: Case, chosen: dict[str, str]) -> bool:
    """Is exp2 emulated in part? Unless said otherwise by the table: on sm_100a, head dim 128, scales of 16 values."""
    if "FA4_FORCE_E2E" in chosen:
        return chosen["FA4_FORCE_E2E"] == "1"
    return case.arch == SM100 and case.head_dim == 128 and case.qk_mode == "nvfp4"
