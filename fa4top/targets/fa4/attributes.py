"""Knobs of flash-attn-4 that are attributes of its kernel object, set between its construction and its compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fa4top.targets.fa4.description import REGISTERS
from fa4top.targets.fa4.work import TUNING
from fa4top.targets.launcher import TargetError

AUTO = "auto"


def apply(kernel: Any, knobs: Mapping[str, str]) -> None:
    """Set what the knobs say; ``auto`` leaves the package's own choice.

    Raises:
        TargetError: this package version has no such attribute.
    """
    for name in ("split_P_arrive", *REGISTERS):
        if knobs.get(name, AUTO) != AUTO:
            _set(kernel, name, int(knobs[name]))
    if knobs.get("use_ldred_rowmax", AUTO) != AUTO:
        _set(kernel, "use_ldred_rowmax", knobs["use_ldred_rowmax"] == "on")
    tuning = {name: int(knobs[name]) for name in TUNING if knobs.get(name, AUTO) != AUTO}
    if tuning:
        _set(kernel, "_tune", {**getattr(kernel, "_tune", {}), **tuning})
        if "ex2_emu_freq" in tuning:
            _set(kernel, "enable_ex2_emu", tuning["ex2_emu_freq"] > 0)


def _set(kernel: Any, name: str, value: Any) -> None:
    if not hasattr(kernel, name):
        raise TargetError(
            "unknown package layout",
            f"{type(kernel).__name__} has no attribute {name}: this version of flash-attn-4 does not know that knob",
            "leave the knob at auto, or use a known-good version (fa4top doctor)",
        )
    setattr(kernel, name, value)
