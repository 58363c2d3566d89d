"""The targets that exist, by name. Descriptions only: importing this imports no CUDA."""

from __future__ import annotations

from collections.abc import Mapping

from fa4top.targets.base import Description
from fa4top.targets.builtin.description import DESCRIPTION as BUILTIN
from fa4top.targets.fa4.description import DESCRIPTION as FA4
from fa4top.targets.fork.description import DESCRIPTION as FORK
from fa4top.targets.sim.description import DESCRIPTION as SIM

TARGETS: dict[str, Description] = {description.name: description for description in (FA4, FORK, BUILTIN, SIM)}


class UnknownTarget(KeyError):
    """No target has this name; the text names those that exist."""

    def __str__(self) -> str:
        return f"no target {self.args[0]}; there are: {', '.join(TARGETS)}"


QUIET = ("auto", "0", "off")


def shown_knobs(target: str, knobs: Mapping[str, str]) -> dict[str, str]:
    """Knobs worth a place on the screen: all but those that are off by default, and are."""
    known = TARGETS.get(target)
    defaults = {knob.name: knob.default for knob in known.knobs} if known else {}
    return {k: v for k, v in knobs.items() if v not in QUIET or v != defaults.get(k, v)}


def describe(name: str) -> Description:
    """The description of a target.

    Raises:
        UnknownTarget: the name is not known.
    """
    try:
        return TARGETS[name]
    except KeyError as error:
        raise UnknownTarget(name) from error
