"""fa4top's coarse probes beside NVIDIA's IKET ranges at the same points, in one process; ratios to the clean kernel.

    python benchmarks/iket_cost.py                      IKET's ranges are stripped when nobody records
    run-iket --postprocess none -- python benchmarks/iket_cost.py     IKET records

Hopper only. Four variants of one kernel, launched in turn: clean, coarse (ours), iket (turn, wait K, wait V as
ranges), clean again (a null arm: its ratio says how far to trust the others).
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pathlib
import random
import statistics
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fa4top.orders.commands import LaunchRequest  # noqa: E402
from fa4top.orders.shapes import parse_shape  # noqa: E402
from fa4top.targets.fa4.description import DESCRIPTION  # noqa: E402
from fa4top.targets.fa4.launch import Fa4Launcher  # noqa: E402


def install_iket(kernel: Any) -> None:
    """Ranges around the turn barrier and around the waits for K and V, by every warp that passes them."""
    import copy

    iket = importlib.import_module("cutlass.cute.experimental.iket")

    def ranged(pipeline: Any, name: str) -> Any:
        base = type(pipeline)

        def consumer_wait(self: Any, *args: Any, **kwargs: Any) -> None:
            iket.range_push(name)
            base.consumer_wait(self, *args, **kwargs)
            iket.range_pop()

        clone = copy.copy(pipeline)
        object.__setattr__(clone, "__class__", type(f"Iket{base.__name__}", (base,), {"consumer_wait": consumer_wait}))
        return clone

    mma, sync = kernel.mma, kernel.warp_scheduler_barrier_sync
    signature = inspect.signature(mma)

    def traced_mma(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        for argument, name in (("pipeline_k", "wait K"), ("pipeline_v", "wait V")):
            bound.arguments[argument] = ranged(bound.arguments[argument], name)
        return mma(*bound.args, **bound.kwargs)

    def traced_sync(self: Any) -> None:
        iket.range_push("turn")
        sync(self)
        iket.range_pop()

    kernel.mma, kernel.warp_scheduler_barrier_sync = traced_mma, traced_sync


class Variants:
    """Compiles the same launch several times with different wrappers around the kernel class."""

    def __init__(self, shape: Any) -> None:
        request = LaunchRequest(
            target="fa4", shape=shape, knobs=DESCRIPTION.defaults(), twin="clean", seed=0, gpu_uuid=""
        )
        self.launcher = Fa4Launcher(request)
        self.launcher.compile(lambda text, progress: None)
        self.launcher.check()
        self.functions = {"clean": self.launcher._function}
        self.modules = [
            importlib.import_module("flash_attn.cute.flash_fwd_sm90").FlashAttentionForwardSm90,
            *(
                c
                for _, c in inspect.getmembers(
                    importlib.import_module("flash_attn.cute.tile_scheduler"), inspect.isclass
                )
            ),
        ]
        self.saved = [(owner, name, value) for owner in self.modules for name, value in vars(owner).items()
                      if callable(value) and not name.startswith("__")]  # fmt: skip

    def compile(self, name: str) -> None:
        """Compile with what is installed now, check the output, take the function, and put the class back."""
        self.launcher._kernels.cache.clear()
        self.launcher._compile_fake(self.launcher._kernels)
        result = self.launcher.check()
        assert result.rms_error < result.limit
        self.functions[name] = self.launcher._function
        for owner, attribute, value in self.saved:
            if getattr(owner, attribute) is not value:
                setattr(owner, attribute, value)

    def time_us(self, name: str, launches: int) -> list[float]:
        """Launches of one variant."""
        self.launcher._function = self.functions[name]
        return self.launcher.clean_burst(launches).times_us


def main() -> None:
    """Compile, interleave, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    variants = Variants(parse_shape(options.shape, DESCRIPTION.default_shape))
    variants.compile("clean again")
    launcher = variants.launcher
    from fa4top.targets.fa4 import injection

    probes = launcher._probes
    injection.install(probes, probes.sets[0], launcher._buffer.address, launcher._buffer.config_address)
    variants.compile("coarse")
    install_iket(variants.modules[0])
    variants.compile("iket")
    times: dict[str, list[float]] = {name: [] for name in variants.functions}
    for _ in range(options.rounds):
        for name in random.sample(list(times), len(times)):
            times[name] += variants.time_us(name, 3)
    base = statistics.median(times["clean"])
    for name, values in times.items():
        print(f"{name:14} {statistics.median(values):10.2f} us   {statistics.median(values) / base:.4f}")


if __name__ == "__main__":
    main()
