"""The targets that exist, by name. Descriptions only, each imported when it is asked for; none imports CUDA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import cast

from fa4top.targets.base import Description

ENTRY_POINTS = "fa4top.targets"  # a package of somebody else adds a Description of its own
OWN = {
    "fa4": "fa4top.targets.fa4.description",
    "fa4-fork": "fa4top.targets.fork.description",
    "builtin": "fa4top.targets.builtin.description",
    "sim": "fa4top.targets.sim.description",
}


@cache
def _installed() -> tuple[dict[str, Description], dict[str, str]]:
    """Descriptions of installed packages, and why some could not be loaded."""
    # asking what is installed takes longer than all of our own descriptions, and workers rarely need to know
    from importlib.metadata import entry_points

    found: dict[str, Description] = {}
    broken: dict[str, str] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            description = entry.load()
        except Exception as error:  # a broken package of somebody else must not take fa4top with it
            broken[entry.name] = f"{type(error).__name__}: {error}"
            continue
        found.setdefault(description.name, description)
    return found, broken


class Catalog(Mapping[str, Description]):
    """Our own targets, then those of installed packages; none of these replaces one of ours."""

    def __getitem__(self, name: str) -> Description:
        if name in OWN:
            return cast(Description, import_module(OWN[name]).DESCRIPTION)
        return _installed()[0][name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*OWN, *_installed()[0]]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @property
    def broken(self) -> Mapping[str, str]:
        """Entry points that could not be loaded, and why."""
        return _installed()[1]


TARGETS = Catalog()


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
