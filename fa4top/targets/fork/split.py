"""The fork's P handoff, exactly: chunks that the producer signals after, K-tiles that the consumer issues before.

Its function mbar_p_split(k) serves both sides, with k the number of store chunks or of PV K-tiles (contract, 1.1).
"""

from __future__ import annotations

from fa4top.targets.fork.modes import BF16_REP, Case
from fa4top.targets.handoff import Handoff


def split_of(k: int, width: int, head_dim: int, fp8: tuple[int, int], fp4: tuple[int, int]) -> int:
    """mbar_p_split(k): how many of k parts come first."""
    if width == 8 and k > 1:
        numerator, denominator = (3, 4) if head_dim <= 64 else fp8
        return max(1, min(k - 1, k * numerator // denominator))
    if width > 8:
        return k // 4 * 3
    return max(1, min(k - 1, k * fp4[0] // fp4[1]))


def store_rep(case: Case, chosen: dict[str, str]) -> int:
    """Columns of P in one store."""
    knob = case.pv.rep_knob
    if not knob:
        return BF16_REP
    if knob in chosen:
        return int(chosen[knob])
    return 4 if case.pv_mode == "fp8" and case.head_dim <= 64 else 8


def fractions(chosen: dict[str, str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """(fp8, fp4) fractions as (numerator, denominator)."""

    def of(kind: str, numerator: str, denominator: str) -> tuple[int, int]:
        name = f"FA4_{kind}_PV_P_SPLIT_"
        return int(chosen.get(name + "NUM", numerator)), int(chosen.get(name + "DEN", denominator))

    return of("FP8", "3", "4"), of("FP4", "1", "2")


def handoff(case: Case, chosen: dict[str, str]) -> Handoff:
    """The handoff of a setting.

    Args:
        chosen: knobs that are set; their values must be legal.
    """
    fp8, fp4 = fractions(chosen)
    chunks = max(1, case.pv.p_columns // store_rep(case, chosen))
    tiles = case.pv.k_tiles
    return Handoff(
        chunks,
        split_of(chunks, case.pv.width, case.head_dim, fp8, fp4),
        tiles,
        split_of(tiles, case.pv.width, case.head_dim, fp8, fp4),
    )
