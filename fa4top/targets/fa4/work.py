"""What a step of FA4's forward asks of the chip, from the SASS of the default setting (fa4top sass)."""

from __future__ import annotations

from collections.abc import Mapping

from fa4top.records import Shape, StepWork

# MUFU.EX2 for each element of S: the step's exponentials and one for a row's rescaling; sm_100a emulates part of them
# on the FMA pipes
EXP2_PER_ELEMENT: dict[str, float] = {"sm_90a": 66 / 64, "sm_100a": 105 / 128, "sm_103a": 129 / 128}
TUNING = ("ex2_emu_freq", "ex2_emu_start_frg")


def step_work(shape: Shape, arch: str, knobs: Mapping[str, str]) -> StepWork:
    """Operands as the inputs have them; with a knob that moves exponentials their number is known from SASS alone."""
    moved = any(knobs.get(name, "auto") != "auto" for name in TUNING)
    exp2 = None if moved else EXP2_PER_ELEMENT.get(arch)
    return StepWork(qk_format=shape.dtype, pv_format=shape.dtype, exp2_per_element=exp2)
