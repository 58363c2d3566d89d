"""Figures that others published, or that were measured before and not checked, by chip. Data, for the reference column.

Source of GB300 and B200: hao-ai-lab/flash-attention-fp4, b300_fp4_pv_analysis.md (2026-06): one SM, 512 threads,
8 chains a thread; instructions per clock and SM.
"""

from __future__ import annotations

SOURCE = "hao-ai-lab/flash-attention-fp4, b300_fp4_pv_analysis.md, 2026-06"

PUBLISHED: dict[str, dict[str, float]] = {
    "GB300": {
        "ex2.approx.ftz.f32": 32.0,
        "cvt.rn.bf16x2.f32": 62.0,
        "cvt.rn.satfinite.e4m3x2.f32": 32.0,
        "cvt.rn.satfinite.e2m1x2.f32": 57.0,
        "4 ex2 + 4 e4m3x2": 54.6,
    },
    "B200": {"ex2.approx.ftz.f32": 16.0},
}

# other names of the same silicon, as NVML spells them; the architecture where no GPU is there
_CHIPS = (
    ("GB300", "GB300"),
    ("B300", "GB300"),
    ("GB200", "B200"),
    ("B200", "B200"),
    ("sm_103a", "GB300"),
    ("sm_100a", "B200"),
)


def published_chip(device: str) -> str:
    """The chip whose figures fit a GPU's name or an architecture; '' when there are none."""
    return next((chip for word, chip in _CHIPS if word in device), "")


def published(device: str, name: str) -> float | None:
    """The published figure of a microbenchmark on this chip."""
    return PUBLISHED.get(published_chip(device), {}).get(name)
