"""A plan in words, the same on screens, in text, reports and exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.orders.shapes import format_shape
from fa4top.orders.typed import setting_words
from fa4top.records import Plan, Shape

NOISE = ("simulated ", "NVIDIA ")  # in a device's name, where the label or the context says it


def device_name(name: str) -> str:
    """A GPU's name without what every name has."""
    for word in NOISE:
        name = name.replace(word, "")
    return name


def shape_text(shape: Shape, blanks: bool = False) -> str:
    """Sizes, and the mask where there is one; with blanks in place of commas for a screen."""
    sizes = format_shape(shape)
    return (sizes.replace(",", " ") if blanks else sizes) + (" causal" if shape.causal else "")


def shown_knobs(plan: Plan, but: Iterable[str] = ()) -> dict[str, str]:
    """Knobs worth a place on the screen."""
    return {name: value for name, value in plan.knobs.items() if name not in plan.quiet and name not in but}


def changed_knobs(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, str]:
    """What B sets otherwise than A; a knob that only one of them has counts too."""
    return {name: value for name, value in b.items() if a.get(name) != value}


def title(snapshot: Snapshot) -> str:
    """Target, shape, setting, device; SIMULATED in front where it is."""
    plan = snapshot.plan
    if plan is None:
        return "fa4top"
    dtype = "" if plan.simulated else f" {plan.shape.dtype}"
    knobs = setting_words(shown_knobs(plan))
    return f"{snapshot.prefix}{plan.target}{dtype} {shape_text(plan.shape)} on {plan.device}  {knobs}".rstrip()
