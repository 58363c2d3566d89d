"""The targets that exist, by name. Descriptions only: importing this imports no CUDA."""

from __future__ import annotations

from importlib.metadata import entry_points

from fa4top.targets.base import Description
from fa4top.targets.builtin.description import DESCRIPTION as BUILTIN
from fa4top.targets.fa4.description import DESCRIPTION as FA4
from fa4top.targets.fork.description import DESCRIPTION as FORK
from fa4top.targets.sim.description import DESCRIPTION as SIM

ENTRY_POINTS = "fa4top.targets"  # a package of somebody else adds a Description of its own


def _found() -> dict[str, Description]:
    """Our own targets, then those of installed packages; none of these replaces one of ours."""
    found = {description.name: description for description in (FA4, FORK, BUILTIN, SIM)}
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            description = entry.load()
        except Exception as error:  # a broken package of somebody else must not take fa4top with it
            BROKEN[entry.name] = f"{type(error).__name__}: {error}"
            continue
        found.setdefault(description.name, description)
    return found


BROKEN: dict[str, str] = {}  # entry points that could not be loaded, and why
TARGETS: dict[str, Description] = _found()


class UnknownTarget(KeyError):
    """No target has this name; the text names those that exist."""

    def __str__(self) -> str:
        return f"no target {self.args[0]}; there are: {', '.join(TARGETS)}"


def compiled_without_gpu() -> list[str]:
    """Names of the targets that can be compiled where no GPU is."""
    return [name for name, description in TARGETS.items() if description.compile_only]


def describe(name: str) -> Description:
    """The description of a target.

    Raises:
        UnknownTarget: the name is not known.
    """
    try:
        return TARGETS[name]
    except KeyError as error:
        raise UnknownTarget(name) from error
