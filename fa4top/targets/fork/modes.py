"""What the fork can compute, and the sizes that its P handoff follows from. Data."""

from __future__ import annotations

from dataclasses import dataclass

from fa4top.analysis.chip.chips import chip_by_key

SM100, SM103 = (chip_by_key(key).arch for key in ("b200", "gb300"))
KEYS_PER_STEP = 128


@dataclass(frozen=True)
class PvMode:
    """A precision of P and V. ``width`` in bits; ``k_tiles`` of PV over 128 keys; ``p_columns`` of tensor memory a row.

    ``rep_knob`` names the knob that chunks P's stores; '' where it is fixed.
    """

    name: str
    width: int
    k_tiles: int
    rep_knob: str
    least_head_dim: int
    qk_modes: tuple[str, ...]

    @property
    def p_columns(self) -> int:
        """f32 columns of tensor memory that one row of P takes."""
        return KEYS_PER_STEP // 32 * self.width


PV_MODES: dict[str, PvMode] = {
    mode.name: mode
    for mode in (
        PvMode("bf16", 16, 8, "", 64, ("nvfp4", "mxfp8")),
        PvMode("fp8", 8, 4, "FA4_FP8_PV_TMEM_STORE_REP", 64, ("nvfp4", "mxfp8")),
        PvMode("fp4", 4, 2, "FA4_FP4_PV_TMEM_STORE_REP", 128, ("nvfp4",)),
        PvMode("mxfp8", 8, 4, "FA4_FP4_PV_TMEM_STORE_REP", 128, ("nvfp4",)),
    )
}
QK_MODES = ("nvfp4", "mxfp8")
BF16_REP = 16


@dataclass(frozen=True)
class Case:
    """What a setting is judged for."""

    pv_mode: str = "bf16"
    qk_mode: str = "nvfp4"
    head_dim: int = 128
    arch: str = SM103

    @property
    def pv(self) -> PvMode:
        """Sizes of the PV mode."""
        return PV_MODES[self.pv_mode]

    def problem(self) -> str | None:
        """Why there is no such kernel; None when there is."""
        if self.pv_mode not in PV_MODES:
            return f"no PV mode {self.pv_mode}; there are: {', '.join(PV_MODES)}"
        if self.qk_mode not in QK_MODES:
            return f"no QK mode {self.qk_mode}; there are: {', '.join(QK_MODES)}"
        if self.qk_mode not in self.pv.qk_modes:
            return f"PV in {self.pv_mode} exists with QK in {', '.join(self.pv.qk_modes)} only, not {self.qk_mode}"
        if self.head_dim not in (64, 128):
            return f"head dim {self.head_dim}: the block-scaled kernels have 64 and 128"
        if self.head_dim < self.pv.least_head_dim:
            return f"PV in {self.pv_mode} needs head dim 128: a scale-factor tile spans 128 columns of V"
        if self.head_dim == 64 and self.qk_mode != "nvfp4":
            return "head dim 64 exists for QK in nvfp4 only"
        return None
