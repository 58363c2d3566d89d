"""The instruction table: PTX, what SASS it must become, how its output is fed back, and what bounds it. Data.

In ``ptx`` {x} is the chain's register, read and written; {a} and {b} are constants. Chains are 32-bit registers. Two
16-bit results are packed into one register, because the hardware merges them for nothing and would need a PRMT for one.
"""

from __future__ import annotations

from dataclasses import dataclass

from fa4top.analysis.chip.chips import CHIPS, at_least, chip_by_key

HOPPER, BLACKWELL = (chip_by_key(key).arch for key in ("h200", "b200"))  # first chips of their instructions

# limits: lanes of an SM's units, threads' instructions per clock (CUDA C++ Programming Guide, "Arithmetic
# Instructions", 9.0 and 10.0); a figure above is a mistake, never a discovery


@dataclass(frozen=True)
class BenchOp:
    """One instruction. ``unit`` is the pipe that executes it, by Nsight Compute's counters on an H200
    (docs/measurements.md): conversions to narrow types share the ALU with max and the integers. ``sass`` is a pattern
    of its opcode; ``per_ptx`` how many of them one step of a chain has.

    ``helpers`` are patterns of instructions that the feedback needs, with their count a step. ``results`` counts values
    per instruction. ``limit`` is per clock and SM, in instructions; ``limits`` overrides it by architecture.
    """

    name: str
    unit: str
    ptx: str
    sass: str
    limit: float
    results: int = 1
    first: str = HOPPER
    only: tuple[str, ...] = ()
    limits: tuple[tuple[str, float], ...] = ()
    helpers: tuple[tuple[str, int], ...] = ()
    bits: int = 32
    per_ptx: int = 1

    def limit_on(self, arch: str) -> float:
        """The unit's limit on this architecture."""
        return dict(self.limits).get(arch, self.limit)

    def exists_on(self, arch: str) -> bool:
        """Does this architecture have it?"""
        if self.only:
            return arch in self.only
        return at_least(arch, self.first)


def _mufu(name: str, ptx: str, sass: str, limits: tuple[tuple[str, float], ...] = ()) -> BenchOp:
    return BenchOp(name, "MUFU", f"{ptx} {{x}}, {{x}};", rf"MUFU\.{sass}$", 16.0, limits=limits)


def _narrow(name: str, kind: str, sass: str, limit: float, first: str = HOPPER, rounding: str = "rn") -> BenchOp:
    """Conversions of two floats to 16 bits in all, two of them into one register."""
    one = f"cvt.{rounding}.satfinite.{kind}.f32"
    ptx = f"{{{{ .reg .b16 g, h; {one} g, {{x}}, {{a}}; {one} h, {{b}}, {{x}}; mov.b32 {{x}}, {{{{g, h}}}}; }}}}"
    return BenchOp(name, "ALU", ptx, sass, limit, results=2, first=first, per_ptx=2)


def _widen(name: str, source: str, target: str, sass: str, first: str = HOPPER) -> BenchOp:
    """A conversion of two values in 16 bits to a pair in 32."""
    ptx = f"{{{{ .reg .b16 h, g; mov.b32 {{{{h, g}}}}, {{x}}; cvt.rn.{target}.{source} {{x}}, h; }}}}"
    return BenchOp(name, "ALU", ptx, sass, 64.0, results=2, first=first)


INSTRUCTIONS: tuple[BenchOp, ...] = (
    _mufu("ex2.approx.ftz.f32", "ex2.approx.ftz.f32", "EX2", tuple((chip.arch, chip.mufu_ex2) for chip in CHIPS)),
    # ptxas knows that the reciprocal of a reciprocal is where it began, and removes the whole loop
    BenchOp(
        "rcp.approx.ftz.f32",
        "MUFU",
        "rcp.approx.ftz.f32 {x}, {x}; xor.b32 {x}, {x}, {a};",
        r"MUFU\.RCP$",
        16.0,
        helpers=((r"LOP3\.LUT", 1),),
    ),
    _mufu("lg2.approx.ftz.f32", "lg2.approx.ftz.f32", "LG2"),
    _mufu("rsqrt.approx.ftz.f32", "rsqrt.approx.ftz.f32", "RSQ"),
    _mufu("tanh.approx.f32", "tanh.approx.f32", "TANH"),
    BenchOp("fma.rn.f32", "FMA", "fma.rn.ftz.f32 {x}, {x}, {a}, {b};", r"FFMA(?!2)", 128.0),
    BenchOp("mul.f32", "FMA", "mul.rn.ftz.f32 {x}, {x}, {a};", r"FMUL(?!2)", 128.0),
    BenchOp("add.f32", "FMA", "add.rn.ftz.f32 {x}, {x}, {a};", r"FADD(?!2)", 128.0),
    BenchOp("fma.rn.f32x2", "FMA", "fma.rn.ftz.f32x2 {x}, {x}, {a}, {b};", r"FFMA2", 64.0, 2, BLACKWELL, bits=64),
    # max and min in turn: Blackwell's ptxas makes one three-input instruction of two maxima in a row
    BenchOp("max.f32", "ALU", "max.ftz.f32 {x}, {x}, {a}; min.ftz.f32 {x}, {x}, {b};", r"FMNMX(?!3)", 64.0, per_ptx=2),
    BenchOp("max.f32, three inputs", "ALU", "max.ftz.f32 {x}, {x}, {a}, {b};", r"FMNMX3", 64.0, first=BLACKWELL),
    BenchOp(
        "cvt.rn.bf16x2.f32", "ALU", "cvt.rn.bf16x2.f32 {x}, {x}, {a};", r"F2FP\.BF16\.F32\.PACK_AB", 64.0, results=2
    ),
    BenchOp("cvt.rn.f16x2.f32", "ALU", "cvt.rn.f16x2.f32 {x}, {x}, {a};", r"F2FP\.F16\.F32\.PACK_AB", 64.0, 2),
    _narrow("cvt.rn.satfinite.e4m3x2.f32", "e4m3x2", r"F2FP\.SATFINITE\.E4M3\.F32\.PACK_AB_MERGE_C", 64.0),
    _narrow("cvt.rn.satfinite.e5m2x2.f32", "e5m2x2", r"F2FP\.SATFINITE\.E5M2\.F32\.PACK_AB_MERGE_C", 64.0),
    BenchOp(
        "cvt.rn.satfinite.e2m1x2.f32",
        "ALU",
        "{{ .reg .b8 h, z; cvt.u8.u32 z, 0; cvt.rn.satfinite.e2m1x2.f32 h, {x}, {a}; mov.b32 {x}, {{h, z, z, z}}; }}",
        r"F2FP\.SATFINITE\.E2M1\.F32\.PACK_AB_MERGE_C",
        64.0,
        2,
        BLACKWELL,
    ),
    _narrow(
        "cvt.rp.satfinite.ue8m0x2.f32", "ue8m0x2", r"F2FP\.SATFINITE\.E8\.F32\.PACK_AB_MERGE_C", 64.0, BLACKWELL, "rp"
    ),
    _widen("cvt.rn.f16x2.e4m3x2", "e4m3x2", "f16x2", r"F2FP\.F16\.E4M3\.UNPACK_B"),
    _widen("cvt.rn.f16x2.e5m2x2", "e5m2x2", "f16x2", r"F2FP\.F16\.E5M2\.UNPACK_B"),
    BenchOp(
        "cvt.rn.f16x2.e2m1x2",
        "ALU",
        "{{ .reg .b8 h, i, j, k; mov.b32 {{h, i, j, k}}, {x}; cvt.rn.f16x2.e2m1x2 {x}, h; }}",
        r"F2FP\.F16\.E2M1\.UNPACK_B",
        64.0,
        2,
        BLACKWELL,
    ),
    _widen("cvt.rn.bf16x2.ue8m0x2", "ue8m0x2", "bf16x2", r"F2FP\.BF16\.E8\.UNPACK_B", BLACKWELL),
    BenchOp(
        "cvt.f32.f16", "FMA", "{{ .reg .b16 h, g; mov.b32 {{h, g}}, {x}; cvt.f32.f16 {x}, h; }}", r"HADD2\.F32", 64.0
    ),
    BenchOp(
        "cvt.f32.bf16",
        "ALU",
        "{{ .reg .b16 h, g; mov.b32 {{h, g}}, {x}; cvt.f32.bf16 {x}, h; }}",
        r"IMAD\.U32|SHF\.L",  # a shift by 16, on either of two units
        128.0,
    ),
    BenchOp("lop3.b32", "ALU", "lop3.b32 {x}, {x}, {a}, {b}, 0x96;", r"LOP3\.LUT", 64.0),
    BenchOp("shf.l.wrap.b32", "ALU", "shf.l.wrap.b32 {x}, {x}, {a}, 7;", r"SHF\.L", 64.0),
    BenchOp("prmt.b32", "ALU", "prmt.b32 {x}, {x}, {a}, 0x2501;", r"PRMT", 64.0),
    BenchOp("selp.b32", "ALU", "{{ .reg .pred p; setp.ne.b32 p, {b}, 0; selp.b32 {x}, {x}, {a}, p; }}", r"SEL", 64.0),
    BenchOp("iadd3", "ALU", "{{ .reg .b32 t; add.s32 t, {x}, {a}; add.s32 {x}, t, {b}; }}", r"IADD3", 64.0),
)

BY_NAME: dict[str, BenchOp] = {instruction.name: instruction for instruction in INSTRUCTIONS}

EX2, FMA, ADD, MAX = "ex2.approx.ftz.f32", "fma.rn.f32", "add.f32", "max.f32"
BF16, E4M3, E2M1 = "cvt.rn.bf16x2.f32", "cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e2m1x2.f32"


@dataclass(frozen=True)
class BenchMix:
    """Instructions side by side; counts of one round over the 8 chains. What matters to a softmax step."""

    name: str
    parts: tuple[tuple[str, int], ...]

    def exists_on(self, arch: str) -> bool:
        """Does this architecture have all of them?"""
        return all(BY_NAME[name].exists_on(arch) for name, _ in self.parts)


MIXES: tuple[BenchMix, ...] = (
    BenchMix("4 ex2 + 4 bf16x2", ((EX2, 4), (BF16, 4))),
    BenchMix("4 ex2 + 4 f16x2", ((EX2, 4), ("cvt.rn.f16x2.f32", 4))),
    BenchMix("4 ex2 + 4 e4m3x2", ((EX2, 4), (E4M3, 4))),
    BenchMix("4 ex2 + 4 e5m2x2", ((EX2, 4), ("cvt.rn.satfinite.e5m2x2.f32", 4))),
    BenchMix("4 ex2 + 4 e2m1x2", ((EX2, 4), (E2M1, 4))),
    BenchMix("4 ex2 + 4 fma", ((EX2, 4), (FMA, 4))),
    BenchMix("4 bf16x2 + 4 fma", ((BF16, 4), (FMA, 4))),
    BenchMix("4 e4m3x2 + 4 fma", ((E4M3, 4), (FMA, 4))),
    # for 8 elements: running maximum, scale and shift, exp2, sum, half as many conversions
    BenchMix("softmax step, bf16 P", ((MAX, 8), (FMA, 8), (EX2, 8), (ADD, 8), (BF16, 4))),
    BenchMix("softmax step, e4m3 P", ((MAX, 8), (FMA, 8), (EX2, 8), (ADD, 8), (E4M3, 4))),
    BenchMix("softmax step, e2m1 P", ((MAX, 8), (FMA, 8), (EX2, 8), (ADD, 8), (E2M1, 4))),
)
