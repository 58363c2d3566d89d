"""Compile, check and launch a checkout of flash-attention-fp4 as it is. Workers only.

The first call compiles; a spy in the package's compile cache keeps it from launching and notes the arguments, so that
later launches skip the package's Python interface. Where there is no such cache the interface is called each time.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.capture import Capture
from fa4top.analysis.trace.layout import BufferLayout
from fa4top.orders.commands import PRIMERS, LaunchRequest
from fa4top.orders.jobs import WARM
from fa4top.records import Geometry, GpuSample
from fa4top.targets import reference
from fa4top.targets.fork import environment, inputs
from fa4top.targets.fork.description import case_of
from fa4top.targets.fork.device import make_device
from fa4top.targets.fork.family import FORK, RECORDED, recorded
from fa4top.targets.fork.geometry import kernel_geometry
from fa4top.targets.fork.package import LAYOUT_HINT, Package
from fa4top.targets.fork.split import handoff
from fa4top.targets.fork.trace_buffer import (
    UnknownTrace,
    decode_block,
    decode_packed,
    pack_block,
    read_header,
    recorded_blocks,
    sacrificial,
)
from fa4top.targets.launcher import Burst, CheckResult, TargetError

# The references are attention on unquantised values: published cosines to bf16 are 0.982 to 0.990 (contract, 5.K), so
# a relative error of up to 0.19. Garbage has 1 and more.
RMS_LIMIT = 0.3


def make_launcher(request: LaunchRequest) -> ForkLauncher:
    """Entry point named by the target's description."""
    return ForkLauncher(request)


class ForkLauncher:
    """One (shape, setting, twin) of the fork on one GPU."""

    family = FORK
    layout = BufferLayout(roles=RECORDED, capacity=1, stride=8)  # role names; the buffer is the fork's own

    def __init__(self, request: LaunchRequest) -> None:
        self._request = request
        self._private = tempfile.TemporaryDirectory(prefix="fa4top-worker-")
        self._set = environment.prepare(request.knobs, request.twin, request.detail, self._private.name)
        self._detail = request.detail or request.probe_set == "detail"
        self.probe_set = ("detail" if self._detail else "coarse") if request.twin == "traced" else ""
        self.probe_sets = ["coarse", "detail"]
        self.versions: dict[str, str] = {}
        self._package = Package()
        self._device = make_device(request)
        self.arch = self._device.arch
        self._block = 0

    def compile(self, progress: Callable[[str, float | None], None]) -> Geometry:
        """Inputs, then the first call with its launch held back."""
        request = self._request
        progress("importing torch and the checkout", 0.1)
        import torch

        self._torch = torch
        self.versions = {**self._package.versions(), **self._device.versions()}
        case = case_of(request.shape, self.arch, request.knobs)
        self.versions["handoff"] = handoff(case, environment.chosen_knobs(request.knobs)).text()
        self.versions["environment"] = " ".join(f"{k}={v}" for k, v in sorted(self._set.items())) or "no FA4_* set"
        with self._device.scope():
            self._inputs = inputs.load_or_make(
                torch,
                self._package.bench(),
                request.shape,
                case.qk_mode,
                case.pv_mode,
                request.seed,
                self._device.name,
                lambda text: progress(text, 0.2),
            )
            self.versions["inputs"] = self._inputs.digest
            self._device.synchronize()
            progress("compiling", 0.4)
            spy = self._package.spy
            spy.dry = True
            try:
                self._out = self._call()
            finally:
                spy.dry = False
        # of this call: a later one through the interface has an output of its own
        self._compiled, self._arguments = spy.compiled, spy.arguments
        self._direct = self._compiled is not None and bool(self._arguments)
        if not self._direct:
            self.versions["warning"] = (
                "no compile cache to take the kernel from: times contain the package's own Python"
            )
        self.versions["launched by"] = environment.DIRECT if self._direct else environment.INTERFACE
        progress("compiled", 1.0)
        return kernel_geometry(request.shape, self._device.sm_count)

    def _call(self) -> Any:
        shape, tensors = self._request.shape, self._inputs.tensors
        options: dict[str, Any] = {"causal": shape.causal, "mSFQ": tensors["q_sf"], "mSFK": tensors["k_sf"]}
        if "v_sf" in tensors:
            options["mSFV"] = tensors["v_sf"]
        if shape.heads != shape.kv_heads:
            options["pack_gqa"] = False  # its default is numerically wrong in this kernel (contract, 6 e)
        found = self._package.interface.flash_attn_func(tensors["q"], tensors["k"], tensors["v"], **options)
        return found[0] if isinstance(found, tuple) else found

    def _launch(self) -> None:
        if self._direct:
            self._compiled(*self._arguments)
        else:
            self._out = self._call()

    def inputs_digest(self) -> str:
        """Of the kept file's tensors."""
        return self._inputs.digest

    def output(self) -> npt.NDArray[np.float32]:
        """One launch into a buffer full of NaN, widened to FP32."""
        with self._device.scope():
            if self._direct:
                self._out.fill_(float("nan"))
            self._launch()
            return self._output()

    def _output(self) -> npt.NDArray[np.float32]:
        self._device.synchronize()
        values: npt.NDArray[np.float32] = self._out.float().cpu().numpy()
        return values

    def check(self) -> CheckResult:
        """One launch into a buffer of NaN against FP32 rows, and against a call through the package's own interface."""
        with self._device.scope():
            if self._direct:
                self._out.fill_(float("nan"))
            self._launch()
            output = self._output()
            kept, self._out = self._out, self._call()
            again = self._output()
            if self._direct:
                self._out = kept
        worst, rms = self._errors(output)
        if not np.array_equal(output, again, equal_nan=True):
            difference = reference.relative_errors(again, output)[1]
            count = int(np.count_nonzero(output != again))
            # known of quantised P: about 1 launch in 20 differs (contract, 6 d)
            text = f"two launches differ in {count} elements"
            if not difference <= RMS_LIMIT:
                raise TargetError(
                    "output differs",
                    f"launching with noted arguments: {text}, by an RMS of {difference:.2g} of the output",
                )
            self.versions["warning"] = f"{text}: the kernel is not deterministic"
        if self._request.twin == "traced":
            self._read_notes()
        digest = hashlib.sha256(output.tobytes()).hexdigest()[:16]
        return CheckResult(len(self._inputs.rows), worst, rms, RMS_LIMIT, digest)

    def _errors(self, output: npt.NDArray[np.float32]) -> tuple[float, float]:
        shape = self._request.shape
        if output.shape != (shape.batch, shape.seqlen_q, shape.heads, shape.head_dim_v):
            raise TargetError("unknown package layout", f"the output has shape {output.shape}", LAYOUT_HINT)
        if not np.isfinite(output).all():
            return float("inf"), float("inf")
        rows = np.stack([output[batch, row, head] for batch, head, row in self._inputs.rows])
        return reference.relative_errors(rows, self._inputs.references)

    def _buffer(self) -> Any:
        """The fork's own buffer, int32; it allocates it at the first compile."""
        words = getattr(self._package.profiler, "LAST_BUFFER", None)
        if words is None:
            raise TargetError(
                "unknown package layout",
                "profiler.LAST_BUFFER is None after a traced launch: this kernel records nothing",
                LAYOUT_HINT,
            )
        return words.view(-1)

    def _read_notes(self) -> None:
        """What is to be known of this trace, once."""
        capture = self.traced_launch(0)
        notes = decode_packed(capture.recorded.slots[0], capture.cta).notes
        if notes:
            self.versions["trace"] = "; ".join(notes)

    def clean_burst(self, launches: int, l2: str = WARM, primers: int = PRIMERS) -> Burst:
        """Time launches; with the knob ``probes`` they carry the fork's trace."""
        with self._device.scope():
            return self._device.burst(self._launch, launches, l2, primers)

    def traced_launch(self, cta: int) -> Capture:
        """Primers, a cleared buffer, one launch; all blocks record, one is read."""
        with self._device.scope():
            words = self._buffer()
            for _ in range(PRIMERS):
                self._launch()
            words.zero_()
            time_us = self._device.timed(self._launch)
            try:
                packed, block = self._pack(words, cta)
            except UnknownTrace as error:
                raise TargetError("unknown package layout", str(error), LAYOUT_HINT) from error
        return Capture(recorded=recorded(packed), generation=1, cta=block, time_us=time_us)

    def _pack(self, words: Any, cta: int) -> tuple[npt.NDArray[np.uint32], int]:
        """One block's slots, gathered on the device: the whole buffer has 32 MB."""
        blocks, groups, slots, head = _header(words)
        count = blocks * groups
        table = words[2 : 2 + 2 * count * slots].view(slots, count, 2)
        firsts = table[0].view(blocks, groups, 2).cpu().numpy().view(np.uint32)
        block = recorded_block(firsts, cta)
        own = table[:, block * groups : (block + 1) * groups].contiguous().cpu().numpy().view(np.uint32).copy()
        if (lost := sacrificial(int(words.numel()), blocks, groups, slots, block)) is not None:
            own[lost[1], lost[0]] = 0
        return np.concatenate([head, own.reshape(-1)]), block

    def hung_capture(self) -> Capture | None:
        """What a launch that does not end has recorded into global memory; a ring in shared memory can not be read."""
        if self._request.twin != "traced":
            return None
        if self._package.checkout.profiler == "v2" and self._set.get(environment.RING, "1") == "1":
            raise TargetError(
                "hang",
                "its events lie in shared memory until the kernel ends, so nothing can be read; "
                f"--set {environment.RING}=0 records into global memory",
            )
        words = self._device.peek(self._buffer())
        found = [block for block, _ in recorded_blocks(words)]
        if not found:
            return None
        block = hung_block(words, found)
        packed = pack_block(words, block)
        return Capture(recorded=recorded(packed), generation=1, cta=block, time_us=0.0, hung=True)

    def telemetry(self) -> GpuSample | None:
        """NVML is the engine's business."""
        return None

    def close(self) -> None:
        """Wait, and remove the private folder."""
        self._device.synchronize()
        self._private.cleanup()


def _header(words: Any) -> tuple[int, int, int, npt.NDArray[np.uint32]]:
    head = words[:2].cpu().numpy().view(np.uint32).copy()
    # the size is all that read_header takes from the rest
    blocks, groups, slots = read_header(np.concatenate([head, np.zeros(2, dtype=np.uint32)]), int(words.numel()))
    return blocks, groups, slots, head


def recorded_block(firsts: npt.NDArray[np.uint32], cta: int) -> int:
    """The asked block, or the next one that recorded something and did not run on SM 0, whose first event is lost.

    Args:
        firsts: (blocks, groups, 2), the first slot of each group.
    """
    written = (firsts != 0).any(axis=(1, 2))
    good = written & ((firsts[:, :, 0].max(axis=1) >> np.uint32(24)) != 0)
    choice = np.flatnonzero(good) if good.any() else np.flatnonzero(written)
    if not len(choice):
        raise UnknownTrace("no block recorded anything: was FA4_PROFILE_PIPELINE=1 seen by the first compile?")
    return int(choice[np.searchsorted(choice, cta % len(firsts)) % len(choice)])


def hung_block(words: npt.NDArray[np.uint32], found: list[int]) -> int:
    """The block with the fewest events: where all stand still, it stood still first."""

    def events(block: int) -> int:
        return sum(role.stream.recorded for role in decode_block(words, block).roles)

    return min(found[:64], key=events)
