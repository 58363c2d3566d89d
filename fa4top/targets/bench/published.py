"""Figures that others published, or that were measured before and not checked, by chip (its key), as data for the
reference column.

Source of GB300 and B200: hao-ai-lab/flash-attention-fp4, b300_fp4_pv_analysis.md (2026-06): one SM, 512 threads,
8 chains a thread; instructions per clock and SM.
"""

from __future__ import annotations

from fa4top.analysis.chip.chips import chip_named

SOURCE = "hao-ai-lab/flash-attention-fp4, b300_fp4_pv_analysis.md, 2026-06"

PUBLISHED: dict[str, dict[str, float]] = {
    "gb300": {
        "ex2.approx.ftz.f32": 32.0,
        "cvt.rn.bf16x2.f32": 62.0,
        "cvt.rn.satfinite.e4m3x2.f32": 32.0,
        "cvt.rn.satfinite.e2m1x2.f32": 57.0,
        "4 ex2 + 4 e4m3x2": 54.6,
    },
    "b200": {"ex2.approx.ftz.f32": 16.0},
}


def published(device: str, name: str) -> float | None:
    """The published figure of a microbenchmark on this chip."""
    chip = chip_named(device)
    return PUBLISHED.get(chip.key, {}).get(name) if chip else None
