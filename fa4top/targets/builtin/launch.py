"""Compile, check and launch the builtin kernel through CuPy. Workers only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.layout import next_generation
from fa4top.orders.commands import LaunchRequest
from fa4top.records import Geometry
from fa4top.targets import reference
from fa4top.targets.builtin import build
from fa4top.targets.builtin.description import ARCH, BLOCK, HEAD_DIM
from fa4top.targets.builtin.family import BUILTIN
from fa4top.targets.builtin.geometry import kernel_geometry
from fa4top.targets.builtin.split import handoff
from fa4top.targets.cuda import tensor_map
from fa4top.targets.cuda.by_value import by_value
from fa4top.targets.cuda.launching import CudaLauncher
from fa4top.targets.cuda.trace_buffer import NOBODY, TraceBuffer
from fa4top.targets.launcher import CheckResult, TargetError
from fa4top.targets.reference import digest_of

CHECK_ROWS = 24
STAGE_ROWS = 64
# order of the keys inside each 16 of the transposed fp8 V (kernels/attention_sm90.cu)
FP8_KEY_ORDER = (0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)


def make_launcher(request: LaunchRequest) -> BuiltinLauncher:
    """Entry point named by the target's description."""
    return BuiltinLauncher(request)


class BuiltinLauncher(CudaLauncher):
    """One (shape, setting, twin) of the builtin kernel on one GPU."""

    def __init__(self, request: LaunchRequest) -> None:
        import cupy

        cupy.cuda.Device(0).use()
        super().__init__(request, cupy)
        device = cupy.cuda.runtime.getDeviceProperties(0)
        self._sm_count = int(device["multiProcessorCount"])
        self.arch = f"sm_{device['major']}{device['minor']}a"
        if self.arch != ARCH:
            raise TargetError(
                "unsupported GPU", f"the builtin kernel is for {ARCH}, this is {self.arch}", "--target fa4"
            )
        self.layout = build.LAYOUT
        self.family = BUILTIN
        self._detail = request.detail or request.probe_set == "detail"
        self.probe_set = ("detail" if self._detail else "coarse") if request.twin == "traced" else ""
        self.probe_sets = ["coarse", "detail"]
        self.versions: dict[str, str] = {"cupy": str(cupy.__version__)}
        self._fp8 = request.knobs["pv_mode"] == "fp8"
        self._buffer: TraceBuffer | None = None
        self._arguments: tuple[Any, ...] = ()

    def compile(self, progress: Callable[[str, float | None], None]) -> Geometry:
        """Compile or take from the cache. Nothing runs on the GPU yet: another worker may be measuring."""
        request = self._request
        if request.probe_set not in ("", *self.probe_sets):
            raise TargetError("unknown probe set", f"no probe set {request.probe_set}; there are: coarse, detail")
        progress("compiling", 0.2)
        trace = (2 if self._detail else 1) if request.twin == "traced" else 0
        cubin = build.build(request.shape, request.knobs, trace)
        self.versions["compiler"] = cubin.compiler + (", from the cache" if cubin.cached else "")
        module = self._cupy.cuda.function.Module()
        module.load(cubin.data)
        self._module = module
        self._function = module.get_function("attention")
        self._shared = build.shared_bytes(request.knobs)
        # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._cupy.cuda.driver.funcSetAttribute(self._function.ptr, 8, self._shared)
        self.versions["handoff"] = handoff(request.knobs).text()  # what "auto" meant then, in recordings too
        self._traced = bool(trace)
        self._geometry = kernel_geometry(request.shape, request.knobs, self._sm_count)
        progress("compiled", 1.0)
        return self._geometry

    def _make_inputs(self) -> None:
        """Normal values, rounded as the kernel takes them: (batch, length, heads, dim)."""
        cupy, shape = self._cupy, self._request.shape
        random = cupy.random.RandomState(self._request.seed)

        def draw(length: int, heads: int) -> Any:
            bits = random.standard_normal((shape.batch, length, heads, HEAD_DIM), dtype=cupy.float32).view(cupy.uint32)
            return reference.bf16_bits(bits, cupy)

        self._q = draw(shape.seqlen_q, shape.heads)
        self._k = draw(shape.seqlen_k, shape.kv_heads)
        self._v = draw(shape.seqlen_k, shape.kv_heads)
        if self._fp8:
            self._v8 = reference.bf16_bits_to_e4m3(self._v, cupy)
            by_head = self._v8.transpose(0, 2, 3, 1)
            groups = by_head.reshape(shape.batch, shape.kv_heads, HEAD_DIM, shape.seqlen_k // 16, 16)
            self._v_kernel = cupy.ascontiguousarray(groups[..., list(FP8_KEY_ORDER)])
        else:
            self._v_kernel = self._v
        self._out = cupy.full(
            (shape.batch, shape.seqlen_q, shape.heads, HEAD_DIM), reference.UNWRITTEN, dtype=cupy.uint16
        )
        cupy.cuda.runtime.deviceSynchronize()

    def _bind(self) -> None:
        shape = self._request.shape

        def bf16_map(array: Any, length: int, heads: int, rows: int) -> Any:
            extents = (HEAD_DIM, heads, length, shape.batch)
            return tensor_map.encode(array.data.ptr, "bf16", extents, (64, 1, rows, 1))

        if self._fp8:
            extents = (shape.seqlen_k, HEAD_DIM, shape.kv_heads, shape.batch)
            v_map = tensor_map.encode(self._v_kernel.data.ptr, "u8", extents, (BLOCK, HEAD_DIM, 1, 1))
        else:
            v_map = bf16_map(self._v_kernel, shape.seqlen_k, shape.kv_heads, BLOCK)
        problem = np.zeros((), dtype=build.PROBLEM)
        problem[()] = (
            shape.batch,
            shape.heads,
            shape.kv_heads,
            shape.seqlen_q,
            shape.seqlen_k,
            np.float32(np.log2(np.e) / np.sqrt(HEAD_DIM)),
        )
        addresses = (self._buffer.address, self._buffer.config_address) if self._buffer else (0, 0)
        self._arguments = (
            bf16_map(self._q, shape.seqlen_q, shape.heads, STAGE_ROWS),
            bf16_map(self._k, shape.seqlen_k, shape.kv_heads, BLOCK),
            v_map,
            bf16_map(self._out, shape.seqlen_q, shape.heads, STAGE_ROWS),
            problem,
            by_value(np.array(addresses, dtype=np.uint64)),
        )

    def _launch(self) -> None:
        with self._stream:
            self._function((self._geometry.grid_ctas,), (build.THREADS,), self._arguments, shared_mem=self._shared)

    def inputs_digest(self) -> str:
        """Of q, k and v as they were drawn."""
        return digest_of(self._cupy.asnumpy(array) for array in (self._q, self._k, self._v_kernel))

    def output(self) -> npt.NDArray[np.float32]:
        """One launch into a buffer full of NaN, widened to FP32."""
        return reference.bf16_to_float(self.output_bits())

    def output_bits(self) -> Any:
        """Launch once into a buffer full of NaN; bf16 bits, (batch, queries, heads, dim), on the host."""
        if self._buffer:
            self._record_first(self._buffer)
        with self._stream:
            self._out.fill(reference.UNWRITTEN)
        self._launch()
        self._stream.synchronize()
        return self._cupy.asnumpy(self._out)

    def prepare(self) -> None:
        """Inputs, event buffer, parameters; once."""
        if self._arguments:
            return
        self._buffer = (
            TraceBuffer(self._cupy, self.layout, self._request.inflight, self._stream) if self._traced else None
        )
        self._make_inputs()
        self._bind()

    def check(self) -> CheckResult:
        """Launch once; sampled rows against FP32 attention on the values as the kernel takes them."""
        self.prepare()
        output = self.output_bits()
        shape = self._request.shape
        rows = reference.sample_rows(shape, CHECK_ROWS, self._request.seed)
        outputs, references = [], []
        ratio = shape.heads // shape.kv_heads
        for batch, head, row in rows:
            q = reference.bf16_to_float(self._cupy.asnumpy(self._q[batch, row, head]))
            k = reference.bf16_to_float(self._cupy.asnumpy(self._k[batch, :, head // ratio]))
            if self._fp8:
                v = reference.e4m3_to_float(self._cupy.asnumpy(self._v8[batch, :, head // ratio]))
            else:
                v = reference.bf16_to_float(self._cupy.asnumpy(self._v[batch, :, head // ratio]))
            outputs.append(reference.bf16_to_float(output[batch, row, head]))
            references.append(reference.reference_row(q, k, v, row, shape))
        worst, rms = reference.relative_errors(np.stack(outputs), np.stack(references))
        if (output == reference.UNWRITTEN).any():
            worst = rms = float("inf")
        digest = hashlib.sha256(output.tobytes()).hexdigest()[:16]
        limit = reference.RMS_LIMITS["fp8" if self._fp8 else "bf16"]
        return CheckResult(len(rows), worst, rms, limit, digest)

    def record_nobody(self) -> None:
        """From the next launch on no CTA records."""
        if self._buffer:
            self._buffer.record_async(0, NOBODY, next_generation(self._generation))
