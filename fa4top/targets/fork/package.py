"""The fork's modules in a worker: imported from where they should come, with their compiled function in hand."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from fa4top.targets.fa4.compiler import installed_versions
from fa4top.targets.fa4.package import SpyCache
from fa4top.targets.fork.checkout import Checkout, find_bench, inspect_checkout
from fa4top.targets.fork.environment import PATH_VARIABLE
from fa4top.targets.fork.find import refusal
from fa4top.targets.launcher import TargetError

LAYOUT_HINT = "fa4top doctor --target fa4-fork prints what was expected and what was found"


class DrySpy(SpyCache):
    """The compile cache's stand-in that can keep launches from happening: compiling needs a call."""

    def __init__(self) -> None:
        super().__init__()
        self.dry = False

    def __getitem__(self, key: Any) -> Any:
        noting = super().__getitem__(key)

        def call(*arguments: Any) -> Any:
            if self.dry:
                self.arguments = arguments
                return None
            return noting(*arguments)

        return call


class Package:
    """flash_attn.cute of a checkout: interface, profiler, factory, and the spy in its compile cache."""

    def __init__(self) -> None:
        top = os.environ.get(PATH_VARIABLE, "")
        if top:
            sys.path.insert(0, top)
        spec = _spec("flash_attn.cute")
        if spec is None or not spec.submodule_search_locations:
            raise TargetError(
                "missing package",
                "no flash_attn.cute can be imported",
                "--fa4-path DIR of a checkout, or --python PATH",
            )
        folder = Path(next(iter(spec.submodule_search_locations))).resolve()
        if top and folder != (Path(top) / "flash_attn" / "cute").resolve():
            raise TargetError(
                "unknown package layout",
                f"flash_attn.cute comes from {folder}, not from {top}",
                "an editable install or a .pth file comes first on the path: use the environment of that checkout",
            )
        self.checkout: Checkout = inspect_checkout(folder)
        if message := refusal(self.checkout):
            raise TargetError("unknown package layout", message, LAYOUT_HINT)
        try:
            self.interface = importlib.import_module("flash_attn.cute.interface")
            self.profiler = importlib.import_module("flash_attn.cute.profiler")
        except ImportError as error:
            raise TargetError(
                "missing package",
                f"the checkout can not be imported: {error}",
                "--python PATH of the environment that it was installed into",
            ) from error
        self.spy = DrySpy()
        forward = getattr(self.interface, "_flash_attn_fwd", None)
        if isinstance(getattr(forward, "compile_cache", None), dict):
            forward.compile_cache = self.spy  # type: ignore[union-attr]

    def bench(self) -> Any:
        """The module with the tensor factories.

        Raises:
            TargetError: it is not there, or lacks what it imports.
        """
        path = find_bench(self.checkout.package)
        assert path is not None  # inspect_checkout has a row for it
        spec = importlib.util.spec_from_file_location("fa4top_fork_bench", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except ImportError as error:
            raise TargetError(
                "missing package",
                f"{path.name} can not be imported: {error}",
                "it needs flashinfer and triton beside the fork",
            ) from error
        return module

    def versions(self) -> dict[str, str]:
        """What moves results: commit, profiler, DSL and its flavour, torch."""
        found = {"profiler": self.checkout.profiler}
        if self.checkout.commit:
            found["commit"] = self.checkout.commit
        names = ("flash-attn-4", "nvidia-cutlass-dsl", "torch", "flashinfer-python", "quack-kernels")
        return found | installed_versions(names)


def _spec(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
