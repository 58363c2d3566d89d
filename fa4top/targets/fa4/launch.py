"""Compile, check and launch flash-attn-4 through CuPy. Workers only.

CuPy allocates, CuPy streams and events time, CuPy arrays go into the compiled function. Torch serves once, for the
package's own entry, with tensors that are views of the CuPy arrays.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.orders.commands import LaunchRequest
from fa4top.records import Geometry
from fa4top.targets import reference
from fa4top.targets.cuda.launching import CudaLauncher
from fa4top.targets.cuda.trace_buffer import TraceBuffer
from fa4top.targets.fa4 import environment
from fa4top.targets.fa4.geometry import kernel_geometry
from fa4top.targets.fa4.probes import KNOWN_GOOD, PROBES, choose_set
from fa4top.targets.launcher import CheckResult, TargetError

CHECK_ROWS = 24


def make_launcher(request: LaunchRequest) -> Fa4Launcher:
    """Entry point named by the target's description."""
    return Fa4Launcher(request)


class Fa4Launcher(CudaLauncher):
    """One (shape, setting, twin) of flash-attn-4 on one GPU."""

    def __init__(self, request: LaunchRequest) -> None:
        self._private = tempfile.TemporaryDirectory(prefix="fa4top-worker-")
        environment.prepare(request.knobs, self._private.name)
        import cupy

        cupy.cuda.Device(0).use()
        super().__init__(request, cupy)
        device = cupy.cuda.runtime.getDeviceProperties(0)
        self._sm_count = int(device["multiProcessorCount"])
        self.arch = f"sm_{device['major']}{device['minor']}a"
        if self.arch not in PROBES:
            raise TargetError("unsupported GPU", f"there are no fa4 probes for {self.arch}", "use --target sim")
        probes = PROBES[self.arch]
        self._probes = probes
        self._set = choose_set(probes, request.probe_set, request.detail)
        self.layout = probes.layout
        self.probe_set = self._set.name if request.twin == "traced" else ""
        self.probe_sets = [s.name for s in probes.sets]
        self.family = probes.family
        self.versions: dict[str, str] = {}
        self._buffer: TraceBuffer = TraceBuffer(cupy, self.layout, request.inflight, self._stream)
        self._make_inputs()

    def _make_inputs(self) -> None:
        cupy, shape = self._cupy, self._request.shape
        random = cupy.random.RandomState(self._request.seed)

        def draw(length: int, heads: int, dim: int) -> Any:
            values = random.standard_normal((shape.batch, length, heads, dim), dtype=cupy.float32)
            if shape.dtype == "bf16":
                return reference.bf16_bits(values.view(cupy.uint32), cupy)
            if shape.dtype == "fp16":
                return values.astype(cupy.float16).view(cupy.uint16)
            import ml_dtypes

            return cupy.asarray(cupy.asnumpy(values).astype(ml_dtypes.float8_e4m3fn).view(np.uint8))

        self._bits = {
            "q": draw(shape.seqlen_q, shape.heads, shape.head_dim),
            "k": draw(shape.seqlen_k, shape.kv_heads, shape.head_dim),
            "v": draw(shape.seqlen_k, shape.kv_heads, shape.head_dim_v),
        }
        out = (shape.batch, shape.seqlen_q, shape.heads, shape.head_dim_v)
        self._out = cupy.full(out, reference.UNWRITTEN, dtype=cupy.uint16)
        cupy.cuda.runtime.deviceSynchronize()

    def _torch_views(self) -> dict[str, Any]:
        import torch

        kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}
        kind = kinds[self._request.shape.dtype]
        views = {
            name: torch.as_tensor(
                bits.view(self._cupy.int8 if bits.dtype.itemsize == 1 else self._cupy.int16), device="cuda"
            ).view(kind)
            for name, bits in self._bits.items()
        }
        out_kind = torch.bfloat16 if kind == torch.float8_e4m3fn else kind
        views["out"] = torch.as_tensor(self._out.view(self._cupy.int16), device="cuda").view(out_kind)
        return views

    def _arguments(self) -> dict[str, Any]:
        return {"causal": self._request.shape.causal} | keywords(self._request.knobs)

    def compile(self, progress: Callable[[str, float | None], None]) -> Geometry:
        """Compile with fake tensors, so that nothing is launched before this worker holds the GPU token."""
        from fa4top.targets.fa4 import package

        progress("importing flash-attn-4 and the CuTe DSL", 0.1)
        self.versions = package.versions() | {"cupy": str(self._cupy.__version__)}
        kernels = package.Kernels(self._request.knobs)
        injection = None
        if self._request.twin == "traced":
            from fa4top.targets.fa4 import injection as injecting

            try:
                injection = injecting.install(
                    self._probes, self._set, self._buffer.address, self._buffer.config_address
                )
            except injecting.InjectionError as error:
                raise TargetError(
                    "unknown package layout",
                    str(error),
                    f"probes are known to fit flash-attn-4 {', '.join(KNOWN_GOOD)}",
                ) from error
        progress("compiling", 0.4)
        self._compile_fake(kernels)
        self._kernels = kernels
        if injection is not None:
            counts = injection.probe_counts()
            if not counts or not all(counts.values()):
                raise TargetError(
                    "probes missing",
                    f"the compiled kernel has no probes for some roles: {counts}",
                    "this package version does not fit the probes; use a known-good one (fa4top doctor)",
                )
            self.versions["probes"] = ", ".join(f"{role} {count}" for role, count in counts.items())
            if injection.notes:
                self.versions["probe notes"] = "; ".join(dict.fromkeys(injection.notes))
        if message := package.known_good(self.versions):
            self.versions["warning"] = message
        progress("compiled", 1.0)
        self._geometry = kernel_geometry(kernels.kernel, self._request.shape, self._sm_count)
        return self._geometry

    def _compile_fake(self, kernels: Any) -> None:
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode

        shape = self._request.shape
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}[shape.dtype]
        out_kind = torch.bfloat16 if shape.dtype == "fp8" else kind
        with FakeTensorMode():
            q = torch.empty(shape.batch, shape.seqlen_q, shape.heads, shape.head_dim, dtype=kind, device="cuda")
            k = torch.empty(shape.batch, shape.seqlen_k, shape.kv_heads, shape.head_dim, dtype=kind, device="cuda")
            v = torch.empty(shape.batch, shape.seqlen_k, shape.kv_heads, shape.head_dim_v, dtype=kind, device="cuda")
            out = torch.empty(shape.batch, shape.seqlen_q, shape.heads, shape.head_dim_v, dtype=out_kind, device="cuda")
            kernels.forward(q, k, v, out=out, **self._arguments())

    def check(self) -> CheckResult:
        """One launch through the package's own entry; then the same through CuPy arrays, which must agree."""
        import torch

        views = self._torch_views()
        self._record_first(self._buffer)
        self._stream.synchronize()
        self._kernels.forward(views["q"], views["k"], views["v"], out=views["out"], **self._arguments())
        torch.cuda.synchronize()
        first = self._cupy.asnumpy(self._out)
        self._bind(views)
        self._out.fill(reference.UNWRITTEN)
        self._cupy.cuda.runtime.deviceSynchronize()
        self._launch()
        self._stream.synchronize()
        output = self._cupy.asnumpy(self._out)
        if not np.array_equal(first, output):
            raise TargetError(
                "output differs", "launching with CuPy arrays gave another output than the package's call"
            )
        return self._compare(output)

    def _bind(self, views: dict[str, Any]) -> None:
        """Replace the tensors in the noted arguments by CuPy arrays of the same memory."""
        import torch
        import tvm_ffi

        by_address = {view.data_ptr(): name for name, view in views.items()}
        arrays = self._typed_arrays()
        arguments = []
        for argument in self._kernels.cache.arguments:
            if isinstance(argument, torch.Tensor) and argument.data_ptr() in by_address:
                argument = arrays[by_address[argument.data_ptr()]]
            arguments.append(argument)
        self._call_arguments = tuple(arguments)
        self._function = self._kernels.cache.compiled
        self._ffi_stream = tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), self._stream.ptr)

    def _typed_arrays(self) -> dict[str, Any]:
        dtype = self._request.shape.dtype
        if dtype == "bf16":
            import ml_dtypes

            kind: Any = ml_dtypes.bfloat16
        else:
            kind = self._cupy.float16 if dtype == "fp16" else self._cupy.uint8
        arrays = {name: bits.view(kind) for name, bits in self._bits.items()}
        if dtype == "fp8":
            import ml_dtypes

            kind = ml_dtypes.bfloat16
        arrays["out"] = self._out.view(kind)
        return arrays

    def inputs_digest(self) -> str:
        """Of q, k and v."""
        return reference.digest_of(self._cupy.asnumpy(self._bits[name]) for name in ("q", "k", "v"))

    def output(self) -> npt.NDArray[np.float32]:
        """One launch into a buffer full of NaN, widened to FP32; after the check, which binds the arguments."""
        self._out.fill(reference.UNWRITTEN)
        self._cupy.cuda.runtime.deviceSynchronize()
        self._launch()
        self._stream.synchronize()
        bits = self._cupy.asnumpy(self._out)
        if self._request.shape.dtype == "fp16":
            values: npt.NDArray[np.float32] = bits.view(np.float16).astype(np.float32)
            return values
        return reference.bf16_to_float(bits)

    def _compare(self, output: Any) -> CheckResult:
        shape = self._request.shape
        to_float: Callable[[Any], Any]
        if shape.dtype == "fp16":
            to_float = lambda bits: bits.view(np.float16).astype(np.float32)  # noqa: E731
        elif shape.dtype == "bf16":
            to_float = reference.bf16_to_float
        else:
            import ml_dtypes

            to_float = lambda bits: bits.view(ml_dtypes.float8_e4m3fn).astype(np.float32)  # noqa: E731
        out_float = to_float if shape.dtype == "fp16" else reference.bf16_to_float
        outputs, references = [], []
        rows = reference.sample_rows(shape, CHECK_ROWS, self._request.seed)
        ratio = shape.heads // shape.kv_heads
        for batch, head, row in rows:
            q = to_float(self._cupy.asnumpy(self._bits["q"][batch, row, head]))
            k = to_float(self._cupy.asnumpy(self._bits["k"][batch, :, head // ratio]))
            v = to_float(self._cupy.asnumpy(self._bits["v"][batch, :, head // ratio]))
            outputs.append(out_float(output[batch, row, head]))
            references.append(reference.reference_row(q, k, v, row, shape))
        worst, rms = reference.relative_errors(np.stack(outputs), np.stack(references))
        if (output == reference.UNWRITTEN).any():
            worst = rms = float("inf")  # an element that nobody wrote
        digest = hashlib.sha256(output.tobytes()).hexdigest()[:16]
        return CheckResult(len(rows), worst, rms, reference.RMS_LIMITS[shape.dtype], digest)

    def _launch(self) -> None:
        with self._ffi_stream:
            self._function(*self._call_arguments)

    def close(self) -> None:
        """Wait for the stream, and remove the private folder; the process's end frees the rest."""
        super().close()
        self._private.cleanup()


def keywords(knobs: dict[str, str]) -> dict[str, Any]:
    """Knobs that are keyword arguments of the package's forward function; ``auto`` leaves its own choice."""
    chosen: dict[str, Any] = {}
    for name in ("intra_wg_overlap", "mma_pv_is_rs", "pack_gqa"):
        if knobs.get(name, "auto") != "auto":
            chosen[name] = knobs[name] == "on"
    if knobs.get("tile_mn", "auto") != "auto":
        chosen["tile_mn"] = tuple(int(size) for size in knobs["tile_mn"].split("x"))
    return chosen
