"""The fa4 target as data: flash-attn-4, unmodified."""

from __future__ import annotations

from fa4top.analysis.chip.chips import BLACKWELL, HOPPER, NEWEST, arches_of
from fa4top.records import Shape
from fa4top.targets.base import HANDICAP, Description, Knob, common_shape_problem
from fa4top.targets.fa4.probes import PROBES
from fa4top.targets.fa4.work import TUNING, step_work

REGISTERS = ("num_regs_softmax", "num_regs_correction", "num_regs_other")
_BOTH = ("auto", "on", "off")
_BLACKWELL = arches_of(BLACKWELL)
_HOPPER = arches_of(HOPPER)

KNOBS = (
    Knob(
        "intra_wg_overlap",
        "auto",
        "softmax of a block overlaps the GEMMs of the next inside a warpgroup",
        _BOTH,
        numerics="unknown",
        architectures=_HOPPER,
    ),
    Knob(
        "mma_pv_is_rs",
        "auto",
        "PV reads P from registers (on) or from shared memory (off)",
        _BOTH,
        numerics="unknown",
        architectures=_HOPPER,
    ),
    Knob("pack_gqa", "auto", "query heads that share a kv head are packed into one tile", _BOTH, numerics="unknown"),
    Knob(
        "FA_CLC",
        "0",
        "the package's cluster-launch-control scheduler",
        ("0", "1"),
        numerics="unknown",
        architectures=_BLACKWELL,
    ),
    Knob(
        "FA_DISABLE_2CTA",
        "0",
        "never use 2-CTA MMA instructions",
        ("0", "1"),
        numerics="unknown",
        architectures=_BLACKWELL,
    ),
    Knob(
        "FA_DISABLE_S_PING_PONG",
        "0",
        "no S ping-pong for one Q stage",
        ("0", "1"),
        numerics="unknown",
        architectures=_BLACKWELL,
    ),
    Knob(
        "tile_mn",
        "auto",
        "queries x keys of a tile; auto: the package's table",
        ("auto", "128x64", "128x80", "128x96", "128x112", "128x128", "128x144", "128x160", "128x176"),
        numerics="changes",
        architectures=_HOPPER,
    ),
    Knob(
        "split_P_arrive",
        "auto",
        "columns of P (of 128) handed to the MMA role at the first of two signals; 0: one signal; auto: 96",
        ("auto", "0", "32", "64", "96"),
        tries=("0", "32", "64", "96"),
        architectures=_BLACKWELL,
    ),
    Knob(
        "use_ldred_rowmax",
        "auto",
        "the row maximum comes with the load from tensor memory (tcgen05.ld.red)",
        _BOTH,
        numerics="unknown",
        architectures=("sm_103a",),
    ),
    Knob(
        "ex2_emu_freq",
        "auto",
        "4 of every so many exp2 are emulated on the FMA pipes; 0: none (bf16, fp16)",
        ("auto", "0", "8", "10", "12", "14", "16", "24", "32"),
        numerics="changes",
        architectures=_BLACKWELL,
    ),
    Knob(
        "ex2_emu_start_frg",
        "auto",
        "fragment of P at which emulation starts",
        ("auto", "0", "1", "2", "3"),
        numerics="changes",
        architectures=_BLACKWELL,
    ),
    Knob(
        "num_regs_softmax",
        "auto",
        "registers a thread of the two softmax warpgroups (setmaxnreg)",
        ("auto", *map(str, range(128, 257, 8))),
        architectures=_BLACKWELL,
    ),
    Knob(
        "num_regs_correction",
        "auto",
        "registers a thread of the correction warpgroup",
        ("auto", *map(str, range(40, 129, 8))),
        architectures=_BLACKWELL,
    ),
    Knob(
        "num_regs_other",
        "auto",
        "registers a thread of the warps for load, MMA and epilogue",
        ("auto", *map(str, range(24, 129, 8))),
        architectures=_BLACKWELL,
    ),
    HANDICAP,
)

REGISTER_FILE = 512  # registers a thread of one warpgroup, over the four warpgroups of a CTA


def shape_problem(shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
    """Why flash-attn-4 can not run this here; None when it can."""
    if message := common_shape_problem(shape):
        return message
    if shape.dtype not in ("bf16", "fp16", "fp8"):
        return f"dtype {shape.dtype} is unknown; choose bf16, fp16 or (Blackwell) fp8"
    if shape.dtype == "fp8" and arch not in _BLACKWELL:
        return f"fp8 needs Blackwell ({', '.join(_BLACKWELL)}); this GPU is {arch}"
    if arch and arch not in PROBES:
        return f"probes exist for Hopper and datacenter Blackwell ({', '.join(PROBES)}); this GPU is {arch}"
    limit = 256 if arch in _HOPPER else 128
    if shape.head_dim % 8 or shape.head_dim > limit or shape.head_dim_v % 8 or shape.head_dim_v > limit:
        return f"head dims must be multiples of 8 up to {limit} on {arch or 'this GPU'}"
    for knob in KNOBS:
        value = knobs.get(knob.name, knob.default)
        if value != knob.default and knob.architectures and arch not in knob.architectures:
            return f"knob {knob.name} has no effect on {arch}; it is for {', '.join(knob.architectures)}"
    return register_problem(shape, knobs) or fp8_problem(shape, knobs)


def register_problem(shape: Shape, knobs: dict[str, str]) -> str | None:
    """The register knobs must be given together and fit: twice softmax, correction, other."""
    given = {name: knobs.get(name, "auto") for name in REGISTERS}
    if all(value == "auto" for value in given.values()):
        return None
    if missing := [name for name, value in given.items() if value == "auto"]:
        return f"the three register knobs share one budget, so they go together: set {', '.join(missing)} too"
    softmax, correction, other = (int(value) for value in given.values())
    total = 2 * softmax + correction + other
    if total > REGISTER_FILE:
        return (
            f"2 x {softmax} + {correction} + {other} = {total} registers; a CTA of four warpgroups has {REGISTER_FILE}"
        )
    return None


def fp8_problem(shape: Shape, knobs: dict[str, str]) -> str | None:
    """With fp8 inputs the package takes registers and emulation from a table of its own, after our change."""
    if shape.dtype != "fp8":
        return None
    ours = [name for name in (*REGISTERS, *TUNING) if knobs.get(name, "auto") != "auto"]
    return f"{', '.join(ours)}: the package overrides this for fp8 inputs; use bf16 or fp16" if ours else None


DESCRIPTION = Description(
    name="fa4",
    summary="flash-attn-4, unmodified, with probes put in at trace time",
    launcher="fa4top.targets.fa4.launch:make_launcher",
    knobs=KNOBS,
    default_shape=Shape(batch=1, seqlen_q=8192, seqlen_k=8192, heads=24, kv_heads=24, head_dim=128, head_dim_v=128),
    requires=("numpy", "cupy", "torch", "cutlass", "flash_attn.cute.interface"),
    simulated=False,
    shape_problem=shape_problem,
    extra="fa4,cuda13",
    distributions=(
        "torch",
        "triton",
        "flash-attn-4",
        "nvidia-cutlass-dsl",
        "nvidia-cutlass-dsl-libs-cu13",
        "nvidia-cutlass-dsl-libs-cu12",
        "quack-kernels",
        "apache-tvm-ffi",
        "ml-dtypes",
    ),
    doctor="fa4top.targets.fa4.doctor:findings",
    work=step_work,
    prepare="fa4top.targets.fa4.environment:import_ahead",
    compile_only="fa4top.targets.fa4.compile_only:compile_only",
    default_arch=NEWEST,
    tries={"handoff": "split_P_arrive"},
    about=lambda: [
        f"probe sets, {arch}: " + "; ".join(f"{each.name}: {each.text}" for each in probes.sets)
        for arch, probes in PROBES.items()
    ],
    fixed_at_import=tuple(knob.name for knob in KNOBS if knob.name.startswith("FA_")),
)
