"""Where a kernel's time goes, as shares that add up to 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fa4top.records import Geometry, TraceSample


@dataclass(frozen=True)
class Account:
    """Shares of the kernel's time: steps, tile ends (prologue, epilogue), idle SMs."""

    steps: float
    tile_ends: float
    tail: float


def kernel_account(
    geometry: Geometry | None, samples: Sequence[TraceSample], clean_us: float | None, traced_us: float | None
) -> Account | None:
    """Shares of the kernel's time from the sampled CTAs' lives.

    Busy share of the chip = CTAs x mean CTA life / (SMs x CTAs per SM x kernel time); the rest is idle: the last wave.
    Within a life the step share is steps x mean step / life of the roles that know both.
    """
    kernel_us = traced_us or clean_us
    if geometry is None or not kernel_us:
        return None
    lives = [sample.cta_us for sample in samples if sample.cta_us]
    shares = []
    for sample in samples:
        for role in sample.roles:
            if role.role_cycles and role.tile_overhead_cycles is not None and role.tiles:
                ends = role.tile_overhead_cycles * role.tiles / role.role_cycles
                shares.append(min(1.0, max(0.0, 1.0 - ends)))
                break
    if not lives or not shares:
        return None
    slots = geometry.sm_count * geometry.ctas_per_sm
    busy = min(1.0, geometry.grid_ctas * sum(lives) / len(lives) / (slots * kernel_us))
    steps = sum(shares) / len(shares)
    return Account(busy * steps, busy * (1.0 - steps), 1.0 - busy)
