"""Finding flash-attn-4, its versions, and its compiled functions. Workers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fa4top.targets.fa4 import attributes
from fa4top.targets.fa4.compiler import installed_versions
from fa4top.targets.fa4.probes import KNOWN_GOOD
from fa4top.targets.launcher import TargetError


def versions() -> dict[str, str]:
    """Versions that move results: the package, the DSL and its flavour, torch, CuPy."""
    return installed_versions(("flash-attn-4", "nvidia-cutlass-dsl", "quack-kernels", "apache-tvm-ffi", "torch"))


def known_good(found: dict[str, str]) -> str | None:
    """None when this pair of versions was seen to work; else a sentence."""
    package, dsl = found.get("flash-attn-4", "?"), found.get("nvidia-cutlass-dsl", "?")
    if dsl in KNOWN_GOOD.get(package, ()):
        return None
    tested = "; ".join(f"{p} with DSL {', '.join(d)}" for p, d in KNOWN_GOOD.items())
    return f"flash-attn-4 {package} with DSL {dsl} was never tried (tried: {tested}); probes are verified by count"


class SpyCache(dict[Any, Any]):
    """Stands in for the package's compile cache: holds what was compiled, in memory only, and notes the arguments of
    the last call, so that the compiled function can be launched again without the package's Python interface."""

    def __init__(self) -> None:
        super().__init__()
        self.compiled: Any = None
        self.arguments: tuple[Any, ...] = ()

    def __setitem__(self, key: Any, function: Any) -> None:
        self.compiled = function
        super().__setitem__(key, function)

    def __getitem__(self, key: Any) -> Callable[..., Any]:
        function = super().__getitem__(key)

        def call(*arguments: Any) -> Any:
            self.arguments = arguments
            return function(*arguments)

        return call


class Kernels:
    """The package's forward function with the spy in place, and the kernel object of the last compile.

    ``knobs`` that are attributes of the kernel object are set just before it is compiled."""

    def __init__(self, knobs: Mapping[str, str] = MappingProxyType({})) -> None:
        try:
            import cutlass.cute as cute
            import flash_attn.cute.interface as interface
        except ImportError as error:
            raise TargetError(
                "missing package",
                f"flash-attn-4 can not be imported: {error}",
                "install it where the worker runs: pip install 'fa4top[fa4]', or give --python PATH of the "
                "environment that has it",
            ) from error
        self.interface = interface
        self.cache = SpyCache()
        interface._flash_attn_fwd.compile_cache = self.cache
        self.kernel: Any = None
        original = cute.compile

        def compile_and_note(*args: Any, **kwargs: Any) -> Any:
            self.kernel = args[0]
            attributes.apply(self.kernel, knobs)
            return original(*args, **kwargs)

        interface.cute = _Attributes(cute, compile=compile_and_note)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The package's own entry below autograd."""
        return self.interface._flash_attn_fwd(*args, **kwargs)


class _Attributes:
    """A module with some attributes replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self.__dict__.update(replaced)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
