"""Build, check, time: the suite on the GPU that is here, or compiled only. Workers only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fa4top.analysis.chip.throughput import perfect_overlap, timed_cycles
from fa4top.records import BenchResult
from fa4top.targets.bench.build import ENTRY, build, sass_problem
from fa4top.targets.bench.instructions import BY_NAME
from fa4top.targets.bench.published import published
from fa4top.targets.bench.suite import RATE, SUITE, Kernel
from fa4top.targets.cuda.compile import CompileError, Cubin
from fa4top.targets.launcher import TargetError

REPEATS = 7
UNITS = {instruction.name: instruction.unit for instruction in BY_NAME.values()}


def choose(names: Iterable[str]) -> tuple[Kernel, ...]:
    """Kernels whose name or group contains one of the words; mixes bring their parts along. No words: all."""
    words = [word.lower() for word in names]
    if not words:
        return SUITE
    chosen = [k for k in SUITE if any(w in k.name.lower() or w in k.group for w in words)]
    needed = {name for kernel in chosen if kernel.group == "mix" for name, _ in kernel.parts}
    return tuple(k for k in SUITE if k in chosen or k.name in needed)


class Suite:
    """Measures one kernel after another, and keeps the rates that mixes are compared with."""

    def __init__(self, worker: str, plan_id: int, arch: str, run: bool) -> None:
        self._worker, self._plan_id, self._arch = worker, plan_id, arch
        self._rates: dict[str, float] = {}
        self._cupy: Any = None
        self.device = arch
        if run:
            import cupy

            self._cupy = cupy
            cupy.cuda.Device(0).use()
            properties = cupy.cuda.runtime.getDeviceProperties(0)
            self.device = properties["name"].decode()
            self._arch = f"sm_{properties['major']}{properties['minor']}a"
            self._stream = cupy.cuda.Stream(non_blocking=True)

    @property
    def arch(self) -> str:
        """The architecture that is compiled for."""
        return self._arch

    def one(self, kernel: Kernel, index: int, total: int) -> BenchResult:
        """Build, check and time one; ``index`` of ``total`` goes into the record."""

        def result(status: str, text: str = "", **more: Any) -> BenchResult:
            return BenchResult(
                worker=self._worker,
                plan_id=self._plan_id,
                arch=self._arch,
                device=self.device,
                name=kernel.name,
                group=kernel.group,
                unit=kernel.unit,
                status=status,
                index=index,
                total=total,
                limit=kernel.limit_on(self._arch),
                published=published(self.device, kernel.name),
                results=kernel.results,
                text=text,
                **more,
            )

        if self._arch not in kernel.archs:
            return result("lacking", f"{self._arch} has no such instruction")
        try:
            cubin = build(kernel, self._arch)
            if problem := sass_problem(kernel, cubin):
                return result("refused", f"not what was meant: {problem}", compiler=cubin.compiler)
        except CompileError as error:
            return result("failed", error.text)
        if self._cupy is None:
            meant = ", ".join(f"{want.count} {want.pattern}" for want in kernel.expected).replace("\\", "")
            return result("compiled", f"compiled, not run; the timed loop holds {meant}", compiler=cubin.compiler)
        return self._measured(kernel, cubin, result)

    def _measured(self, kernel: Kernel, cubin: Cubin, result: Callable[..., BenchResult]) -> BenchResult:
        curve: list[tuple[int, float]] = []
        spreads: list[tuple[float, float]] = []
        for threads in kernel.threads:
            cycles = self.cycles(kernel, cubin, threads)
            values = [kernel.value(float(c), threads) for c in cycles]
            p5, median, p95 = (float(x) for x in np.percentile(values, (5, 50, 95)))
            curve.append((threads, median))
            spreads.append((p5, p95))
        pick = max if kernel.kind == RATE else min
        best = pick(range(len(curve)), key=lambda i: curve[i][1])
        threads, value = curve[best]
        for count, each in curve:
            if problem := kernel.problem(each, self._arch):
                return result("refused", f"{count} threads: {problem}", compiler=cubin.compiler)
        if kernel.group == "throughput":
            self._rates[kernel.name] = value
        perfect = perfect_overlap(kernel.parts, UNITS, self._rates) if kernel.group == "mix" else None
        return result(
            "measured",
            value=value,
            p5=spreads[best][0],
            p95=spreads[best][1],
            limit_share=kernel.share_of_limit(value, self._arch),
            perfect=perfect,
            threads=threads,
            curve=curve,
            compiler=cubin.compiler,
        )

    def cycles(self, kernel: Kernel, cubin: Cubin, threads: int) -> Any:
        """Cycles of each repeat, after one launch that warms the instruction cache."""
        cupy = self._cupy
        module = cupy.cuda.function.Module()
        module.load(cubin.data)
        function = module.get_function(ENTRY)
        if kernel.shared_bytes > 48 * 1024:
            cupy.cuda.driver.funcSetAttribute(function.ptr, 8, kernel.shared_bytes)
        warps = threads // 32
        clocks = cupy.zeros((REPEATS + 1, warps, 2), dtype=cupy.uint64)
        chain = np.uint64 if kernel.chain_bytes == 8 else np.uint32
        sink = cupy.zeros(threads, dtype=chain)
        cupy.cuda.runtime.deviceSynchronize()
        with self._stream:
            for repeat in range(REPEATS + 1):
                arguments = (np.int32(kernel.iterations), clocks[repeat], sink, chain(3), chain(5))
                function((kernel.ctas,), (threads,), arguments, shared_mem=kernel.shared_bytes)
        try:
            self._stream.synchronize()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise TargetError("CUDA error", f"{kernel.name}: {error}", "run compute-sanitizer on it") from error
        host = cupy.asnumpy(clocks)[1:]
        used = (host != 0).all(axis=(0, 2))  # kernels with one issuing thread leave the other warps' clocks at zero
        return timed_cycles(host[:, used])
