"""The sim target as data: a simulated device."""

from __future__ import annotations

from fractions import Fraction

from fa4top.records import Shape, StepWork
from fa4top.targets.base import Described, Description, Knob, common_shape_problem
from fa4top.targets.fa4.work import EXP2_PER_ELEMENT
from fa4top.targets.sim.chips import chip_names, load_chip, split_hazard

FAULTS: dict[str, str] = {
    "droop": "the clock falls under sustained load",
    "throttled": "the driver holds the clock back by 15%",
    "slow-host": "the host takes 10 ms to queue a launch",
    "slow-load": "K and V take twenty times as long to arrive",
    "slow-sm": "one SM is 15% slower than the others",
    "drop-events": "the event buffer is too small",
    "stale": "one role's header is of an older launch now and then",
    "noise": "ten times the usual noise",
    "drift": "all launches get slower as time goes by, by 3% a minute",
    "position": "a burst that follows one of its own process at once is 2% faster",
    "foreign": "another process computes on the same device",
    "hungry": "a setting without a handicap pulls the clock down by 2.5% in every other burst",
    "check": "the output is wrong",
    "flake": "one launch in seven has another output in a few rows",
    "not-bitwise": "another split than the default changes bits of the output",
    "probes": "probes change bits of the output",
    "inputs": "another split than the default gets other inputs",
    "crash": "the worker dies after some launches",
    "hang": "a launch never ends",
    "error": "the device reports a sticky CUDA error",
    "oom": "the device has no memory left",
    "compile": "the kernel does not compile",
}

KNOBS = (
    Knob("chip", "gb300", "which chip is simulated", chip_names(), numerics="unknown"),
    Knob(
        "pv_mode",
        "fp8",
        "precision of P and V; Q and K are NVFP4 (bf16 on h200)",
        ("bf16", "fp8", "nvfp4", "mxfp8"),
        numerics="changes",
    ),
    Knob(
        "p_split",
        "3/4",
        "fraction of P handed over at the first of the two signals",
        ("1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8"),
        numerics="bitwise",
        tries=("1/2", "5/8", "3/4", "7/8"),
    ),
    Knob(
        "handicap",
        "0",
        "percent by which the simulated kernel is slower: a known difference, to see whether an A/B finds it",
        ("0", "0.25", "1", "3"),
        numerics="bitwise",
    ),
)


def shape_problem(shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
    """Why the simulated device can not run this; None when it can."""
    if message := common_shape_problem(shape):
        return message
    if shape.head_dim != 128 or shape.head_dim_v != 128:
        return "the simulated kernels have head dim 128 only"
    if shape.seqlen_k < 1024:
        return "the simulated device wants at least 1024 keys (8 steps), or its figures mean nothing"
    if shape.seqlen_q * shape.batch * shape.heads > 1 << 24:
        return "too large for the simulated device; keep batch x heads x queries under 16 million"
    chip = load_chip(knobs.get("chip", "gb300"))
    mode = knobs.get("pv_mode", "fp8")
    if mode not in chip.modes:
        return f"the simulated {chip.key} has pv_mode {', '.join(chip.modes)}, not {mode}"
    return None


def setting_hazard(shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
    """A value that is known to read unwritten memory; only --unsafe launches it."""
    chip = load_chip(knobs["chip"])
    mode = chip.modes.get(knobs["pv_mode"])
    return split_hazard(mode, Fraction(knobs["p_split"])) if mode and mode.split_applies else None


def step_work(shape: Shape, arch: str, knobs: dict[str, str]) -> StepWork:
    """Operands of the simulated kernel: Q and K in NVFP4 on Blackwell."""
    qk = shape.dtype if load_chip(knobs["chip"]).hopper else "nvfp4"
    return StepWork(qk_format=qk, pv_format=knobs["pv_mode"], exp2_per_element=EXP2_PER_ELEMENT.get(arch))


def simulated_device(knobs: dict[str, str]) -> Described:
    """What stands in for a GPU."""
    chip = load_chip(knobs["chip"])
    return Described(chip.arch, chip.name, f"SIM-{chip.key}")


DESCRIPTION = Description(
    name="sim",
    summary="a simulated device: FA4's pipeline as a discrete-event model, plainly labelled",
    launcher="fa4top.targets.sim.launch:make_launcher",
    knobs=KNOBS,
    default_shape=Shape(batch=1, seqlen_q=8192, seqlen_k=8192, heads=24, kv_heads=24, head_dim=128, head_dim_v=128),
    requires=("numpy",),
    simulated=True,
    shape_problem=shape_problem,
    hazard=setting_hazard,
    work=step_work,
    prepare="fa4top.targets.sim.launch:import_ahead",
    tries={"handoff": "p_split"},
    device=simulated_device,
    faults=FAULTS,
    about=lambda: ["--sim-fault: " + "; ".join(f"{name}: {text}" for name, text in FAULTS.items())],
)
