"""Probes of FA4's Hopper kernel. Workers only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fa4top.analysis.trace.events import WIDE_PHASES, WIDE_STEP
from fa4top.targets.fa4.injection import Injection
from fa4top.targets.fa4.injection import wrap as wrap_method


def wrap(kernel: Any, injection: Injection) -> None:
    """Hopper: clocks of a step stay in registers and leave as one 16-byte record, after the GEMMs are issued."""

    def sync(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any) -> Any:
            recorder = injection.current
            if recorder is None or not injection.has("turn"):
                result = original(self)
                if recorder is not None and injection.has("mark"):
                    clock = recorder.clock("turn end")
                    recorder.register("turn begin")[0] = clock
                    recorder.register("turn end")[0] = clock
                return result
            recorder.register("turn begin")[0] = recorder.clock("turn begin")
            result = original(self)
            recorder.register("turn end")[0] = recorder.clock("turn end")
            return result

        return wrapped

    def store_step(recorder: Any) -> None:
        begin, end = recorder.register("turn begin")[0], recorder.register("turn end")[0]
        k, v = recorder.register("wait K"), recorder.register("wait V")
        recorder.wide(WIDE_STEP, (begin, end, _pack(k[0], v[0])))
        if injection.has("waits"):
            k[0] = 0
            v[0] = 0

    def arrive(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any) -> Any:
            result = original(self)
            recorder = injection.current
            if recorder is not None and recorder.scratch.get("in step") and self.intra_wg_overlap:
                store_step(recorder)
                if injection.has("phases"):
                    recorder.register("GEMMs issued")[0] = recorder.clock("GEMMs issued")
            return result

        return wrapped

    def step(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = injection.current
            if recorder is None:
                return original(self, *args, **kwargs)
            recorder.scratch["in step"] = True
            try:
                result = original(self, *args, **kwargs)
            finally:
                recorder.scratch["in step"] = False
            if not self.intra_wg_overlap:
                store_step(recorder)
            elif injection.has("phases"):
                issued = recorder.register("GEMMs issued")[0]
                recorder.wide(WIDE_PHASES, (issued, recorder.clock("softmax end"), 0))
            return result

        return wrapped

    def epilogue(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            if injection.current is not None and injection.has("tile"):
                injection.current.register("epilogue")[0] = injection.current.clock("epilogue")
            return original(self, *args, **kwargs)

        return wrapped

    wrap_method(kernel, "warp_scheduler_barrier_sync", sync)
    wrap_method(kernel, "warp_scheduler_barrier_arrive", arrive)
    for name in ("mma_one_n_block", "mma_one_n_block_intrawg_overlap"):
        wrap_method(kernel, name, step)
    wrap_method(kernel, "epilogue", epilogue)


def _pack(low: Any, high: Any) -> Any:
    """Two waits in one word, each saturating at 16 bits."""
    from cutlass import Int32

    from fa4top.targets.fa4.record_ops import pack16

    return pack16(Int32(low), Int32(high))
