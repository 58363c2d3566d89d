"""The chips that fa4top knows, one row each. All else that depends on a chip is looked up here.

A new chip of a known generation is one more row; a new generation also needs kernels of its own in the targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HOPPER, BLACKWELL = "Hopper", "Blackwell"
ISSUE_PER_CLOCK = 128.0  # four schedulers, a warp of 32 threads each, a clock and SM
SCHEDULERS = 4


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Results (or lanes) a clock and SM. ``tensor``: dense FLOP by the narrower operand's format; ``source`` says which
    figures were measured."""

    exp2: float
    fma: float
    alu: float
    convert: float
    tensor: Mapping[str, float]
    source: str


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One chip. ``names`` are parts of its GPUs' names as NVML spells them; ``clock_mhz`` is the boost clock.
    ``mufu_ex2`` is the physical limit of ``ex2`` a clock and SM, where ``rates.exp2`` is what was measured or
    published; ``tensor_limits`` likewise, by format, where they differ from the rates that kernels reach.
    """

    key: str
    names: tuple[str, ...]
    arch: str
    compute_capability: tuple[int, int]
    generation: str
    sms: int
    clock_mhz: float
    mufu_ex2: float
    rates: Rates
    tensor_limits: Mapping[str, float] = field(default_factory=dict)

    def tensor_limit(self, kind: str) -> float:
        """Dense FLOP a clock and SM that no kernel exceeds."""
        return self.tensor_limits.get(kind, self.rates.tensor[kind])


# Tensor: NVIDIA's dense peak over SMs and boost clock (H200 989 TFLOP/s bf16, 132 SMs, 1830 MHz; B200 and B300 2.25 to
# 2.5 PFLOP/s, 148 SMs). FMA and ALU lanes: the CUDA programming guide's table.
_HOPPER_TENSOR = {"bf16": 4096.0, "fp16": 4096.0, "fp8": 8192.0}
_BLACKWELL_TENSOR = {"bf16": 8192.0, "fp16": 8192.0, "fp8": 16384.0, "mxfp8": 16384.0, "fp4": 32768.0, "nvfp4": 32768.0}
CHIPS: tuple[Chip, ...] = (
    Chip(
        key="h200",
        names=("H200", "H100", "GH200"),
        arch="sm_90a",
        compute_capability=(9, 0),
        generation=HOPPER,
        sms=132,
        clock_mhz=1980.0,
        mufu_ex2=16.0,
        rates=Rates(
            exp2=16.0,
            fma=128.0,
            alu=64.0,
            convert=64.0,
            tensor=_HOPPER_TENSOR,
            source="exp2 and convert measured by fa4top bench on an H200",
        ),
    ),
    Chip(
        key="b200",
        names=("GB200", "B200"),
        arch="sm_100a",
        compute_capability=(10, 0),
        generation=BLACKWELL,
        sms=148,
        clock_mhz=1965.0,
        mufu_ex2=16.0,
        rates=Rates(
            exp2=16.0,
            fma=128.0,
            alu=64.0,
            convert=64.0,
            tensor=_BLACKWELL_TENSOR,
            source="exp2 published for B200; not run here",
        ),
    ),
    Chip(
        key="gb300",
        names=("GB300", "B300"),
        arch="sm_103a",
        compute_capability=(10, 3),
        generation=BLACKWELL,
        sms=148,
        clock_mhz=2070.0,
        mufu_ex2=32.0,
        rates=Rates(
            exp2=32.0,
            fma=128.0,
            alu=64.0,
            convert=62.0,
            tensor=_BLACKWELL_TENSOR,
            source="exp2 and convert published for GB300; not run here",
        ),
        tensor_limits={"nvfp4": 49152.0},  # datasheet: 1.5 times the B200's FP4 rate
    ),
)
ARCHITECTURES = tuple(dict.fromkeys(chip.arch for chip in CHIPS))  # older ones first
NEWEST = ARCHITECTURES[-1]


def chip_of(arch: str) -> Chip | None:
    """The chip of an architecture; None for one that is not known."""
    return next((chip for chip in CHIPS if chip.arch == arch), None)


def chip_by_key(key: str) -> Chip:
    """The chip with this key; KeyError when there is none."""
    return {chip.key: chip for chip in CHIPS}[key]


def chip_named(device: str) -> Chip | None:
    """The chip of a GPU's name, or of an architecture; None for one that is not known."""
    return next((c for c in CHIPS if c.arch == device or any(name in device for name in c.names)), None)


def arch_of(compute_capability: tuple[int, int]) -> str:
    """The architecture of a compute capability; of an unknown one the plain name, which nothing here runs on."""
    known = {chip.compute_capability: chip.arch for chip in CHIPS}
    return known.get(compute_capability, "sm_{}{}".format(*compute_capability))


def arches_of(generation: str) -> tuple[str, ...]:
    """Architectures of a generation, older ones first."""
    return tuple(dict.fromkeys(chip.arch for chip in CHIPS if chip.generation == generation))


def at_least(arch: str, first: str) -> bool:
    """Is this architecture that one, or a later one? An unknown one is neither."""
    return arch in ARCHITECTURES and ARCHITECTURES.index(arch) >= ARCHITECTURES.index(first)
