"""Where a session runs: which target, which GPU or what stands in for one, and the sentence that says why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fa4top.cli.fail import fail
from fa4top.cli.interpreter import inspect
from fa4top.engine.gpus import Gpu, GpuError, choose_gpu, list_gpus
from fa4top.orders import exits
from fa4top.targets.base import Described, Description, Located
from fa4top.targets.catalog import TARGETS, UnknownTarget, describe
from fa4top.targets.references import load

AUTO = "auto"
BEST, STAND_IN = "fa4", "sim"  # what auto takes with a GPU, and without


@dataclass(frozen=True, kw_only=True)
class Place:
    """What was chosen. Exactly one of ``gpu`` and ``stand_in`` is there, but for a target whose knobs choose what
    stands in for a GPU."""

    description: Description
    why: str
    gpu: Gpu | None = None
    stand_in: Described | None = None
    sources: Located | None = None

    @property
    def simulated(self) -> bool:
        """Will nothing of it be measured?"""
        return self.description.simulated or self.stand_in is not None

    def device(self, knobs: dict[str, str]) -> Described:
        """Architecture, name and UUID of what it runs on."""
        if self.gpu is not None:
            return Described(self.gpu.arch, self.gpu.name, self.gpu.uuid)
        if self.stand_in is not None:
            return self.stand_in
        assert self.description.device is not None, "a target without a GPU says what stands in for one"
        return self.description.device(knobs)


def with_sources() -> Description | None:
    """The target that a folder of sources means."""
    return next((description for description in TARGETS.values() if description.locate), None)


def located(description: Description, folder: str, python: str) -> Located:
    """The sources of a target that has its own; leaves with what was looked for."""
    installed = inspect(python).modules.get("flash_attn.cute.interface") or ""
    try:
        found: Located = load(description.locate)(folder, Path.cwd(), installed)
    except ValueError as error:
        fail(f"target {description.name}: {error}", exits.NOTHING_TO_RUN_ON)
    return found


def choose_place(target: str, gpu: str, python: str, folder: str = "") -> Place:
    """The target and the GPU. ``auto`` takes fa4 where a GPU with probes and the package are there, else sim."""
    own = with_sources()
    if folder and own is not None and target in ("", AUTO, own.name):
        return _named(own, gpu, python, folder)
    if folder:
        fail(f"--fa4-path is for --target {own.name if own else '?'}, not {target}", exits.USAGE)
    if target in ("", AUTO):
        return _automatic(gpu, python)
    try:
        return _named(describe(target), gpu, python, "")
    except UnknownTarget as error:
        fail(str(error), exits.USAGE)


def _named(description: Description, gpu: str, python: str, folder: str) -> Place:
    name = description.name
    sources = located(description, folder, python) if description.locate else None
    why = f"target {name}: {sources.sentence}" if sources else f"target {name}, as asked"
    if sources is not None and sources.stand_in is not None:
        _need(description, sources, python)
        why += ": a stand-in without a GPU, everything here is simulated"
        return Place(description=description, why=why, stand_in=sources.stand_in, sources=sources)
    if description.device is not None:
        return Place(description=description, why=why)
    if sources is not None:
        _need(description, sources, python)  # what the sources lack is worth knowing before there is a GPU
    try:
        chosen = choose_gpu(gpu, list_gpus())
    except GpuError as error:
        fail(f"target {name} needs a GPU: {error}. Try --target {STAND_IN}", exits.NOTHING_TO_RUN_ON)
    if sources is None:
        _need(description, sources, python)
    why = why if sources else f"target {name} on {chosen.name}, as asked"
    return Place(description=description, why=why, gpu=chosen, sources=sources)


def _need(description: Description, sources: Located | None, python: str) -> None:
    modules = (*description.requires, *(sources.requires if sources else ()))
    if problem := inspect(python).problem(modules):
        fail(
            f"target {description.name}: {problem}; install it there, or give --python PATH (fa4top doctor shows more)",
            exits.NOTHING_TO_RUN_ON,
        )


def _automatic(gpu: str, python: str) -> Place:
    stand_in, best = describe(STAND_IN), describe(BEST)
    gpus = list_gpus()
    if not gpus:
        return Place(description=stand_in, why=f"target {STAND_IN}, because no NVIDIA GPU answers here")
    try:
        chosen = choose_gpu(gpu, gpus)
    except GpuError as error:
        fail(str(error), exits.NOTHING_TO_RUN_ON)
    if best.shape_problem(best.default_shape, chosen.arch, {}):
        why = f"target {STAND_IN}, because there are no probes for {chosen.name} ({chosen.arch})"
        return Place(description=stand_in, why=why)
    if problem := inspect(python).problem(best.requires):
        why = f"target {STAND_IN}, because {problem}; --python PATH names another interpreter"
        return Place(description=stand_in, why=why)
    return Place(description=best, why=f"target {BEST}, because {chosen.name} and flash-attn-4 are here", gpu=chosen)
