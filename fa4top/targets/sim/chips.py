"""Chips and PV modes of the simulated device, read from data/chips.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from fa4top.analysis.chip import chips
from fa4top.analysis.trace.family import Family
from fa4top.targets.fa4.family import SM90, SM100
from fa4top.targets.handoff import Handoff

DATA = Path(__file__).parent / "data" / "chips.json"


@dataclass(frozen=True)
class Mode:
    """One PV mode on one chip; cycles of one step of one stage (128 queries, 128 keys)."""

    name: str
    pv_cycles: int
    softmax_cycles: int
    store_cycles: int
    contention: float
    store_chunks: int
    k_tiles: int
    split_applies: bool


@dataclass(frozen=True)
class Common:
    """Costs that no mode changes. Cycles unless named otherwise; shares are of one step's softmax."""

    row_max_cycles: int
    row_sum_cycles: int
    correction_cycles: int
    signal_cycles: int
    issue_cycles: int
    load_cycles: int
    kv_bytes_cycles: int
    prologue_cycles: int
    epilogue_cycles: int
    launch_us: float
    probe_share: float
    detail_share: float
    step_noise: float
    launch_noise: float


@dataclass(frozen=True)
class Chip:
    """One simulated chip."""

    key: str
    real: chips.Chip
    name: str
    power_limit_w: float
    memory_mib: float
    source: str
    qk_cycles: int
    modes: dict[str, Mode]
    common: Common

    @property
    def arch(self) -> str:
        """Architecture of the chip that is simulated."""
        return self.real.arch

    @property
    def sm_count(self) -> int:
        """Its SMs."""
        return self.real.sms

    @property
    def clock_mhz(self) -> float:
        """Its boost clock."""
        return self.real.clock_mhz

    @property
    def hopper(self) -> bool:
        """Does FA4 run its Hopper kernel there?"""
        return self.real.generation == chips.HOPPER

    @property
    def family(self) -> Family:
        """Roles and rules of the simulated kernel."""
        return SM90 if self.hopper else SM100


@cache
def _data() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DATA.read_text())
    return loaded


@cache
def chip_names() -> tuple[str, ...]:
    """Names of the chips that have data."""
    return tuple(_data()["chips"])


@cache
def load_chip(key: str) -> Chip:
    """One chip.

    Raises:
        KeyError: there is no such chip.
    """
    data, split = _data()["chips"][key], _data()["split"]
    common = Common(**{name: value for name, value in _data()["common"].items() if name != "source"})
    modes = {
        name: Mode(
            name,
            mode["pv_cycles"],
            mode["softmax_cycles"],
            mode["store_cycles"],
            mode["contention"],
            split["store_chunks"][name],
            split["k_tiles"][name],
            split["knob_applies"][name],
        )
        for name, mode in data["modes"].items()
    }
    plain = {name: value for name, value in data.items() if name != "modes"}
    return Chip(key=key, real=chips.chip_by_key(key), modes=modes, common=common, **plain)


def split_counts(mode: Mode, split: Fraction) -> tuple[int, int]:
    """(store chunks, K-tiles) in front of the first of the two P signals, as flash-attention-fp4 counts them:
    max(1, min(k - 1, k N // D)); bf16 ignores the knob and takes k // 4 x 3.

    Source: reference fork_contract, section 1.1.
    """

    def count(k: int) -> int:
        if not mode.split_applies:
            return max(1, k // 4 * 3)
        return max(1, min(k - 1, k * split.numerator // split.denominator))

    return count(mode.store_chunks), count(mode.k_tiles)


def split_hazard(mode: Mode, split: Fraction) -> str | None:
    """Why this split must not run; None when it is safe."""
    chunks, tiles = split_counts(mode, split)
    handoff = Handoff(mode.store_chunks, chunks, mode.k_tiles, tiles)
    if not handoff.safe:
        return f"p_split {split}: {handoff.sentence()}"
    if mode.name == "fp8" and tiles < 2:
        return (
            f"p_split {split}: with fp8 the consumer needs at least 2 K-tiles before the second signal "
            "(its descriptor register is not set before)"
        )
    return None
