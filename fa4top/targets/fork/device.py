"""Where the fork's kernels run: CUDA, through torch's tensors on a stream of CuPy's. Workers only.

Our tests' stand-in brings a device of its own, with the same interface.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fa4top.orders.commands import LaunchRequest
from fa4top.targets.base import handicap_percent
from fa4top.targets.fork.modes import SM100, SM103
from fa4top.targets.launcher import Burst, TargetError

Launch = Callable[[], None]


class Device(Protocol):
    """One GPU as the launcher uses it."""

    arch: str
    sm_count: int
    name: str  # of torch's device

    def scope(self) -> contextlib.AbstractContextManager[None]:
        """What is launched in it goes to this device's stream."""
        ...

    def burst(self, launch: Launch, launches: int, l2: str, primers: int) -> Burst:
        """Time launches."""
        ...

    def timed(self, launch: Launch) -> float:
        """Microseconds of one launch."""
        ...

    def peek(self, buffer: Any) -> npt.NDArray[np.uint32]:
        """A copy of int32 words while a launch runs, or hangs; from another thread."""
        ...

    def synchronize(self) -> None:
        """Wait for everything."""
        ...

    def versions(self) -> dict[str, str]:
        """What it is made of."""
        ...


def make_device(request: LaunchRequest) -> Device:
    """The stand-in's device when its package is on the path, else CUDA."""
    if importlib.util.find_spec("flash_attn.cute.fa4top_stand_in") is not None:
        stand_in = importlib.import_module("flash_attn.cute.fa4top_stand_in")
        device: Device = stand_in.make_device(request)
        return device
    return CudaDevice(request)


class CudaDevice:
    """A Blackwell GPU."""

    name = "cuda"

    def __init__(self, request: LaunchRequest) -> None:
        import cupy
        import torch

        cupy.cuda.Device(0).use()
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.arch = f"sm_{properties['major']}{properties['minor']}a"
        self.sm_count = int(properties["multiProcessorCount"])
        if self.arch not in (SM100, SM103):
            raise TargetError(
                "unsupported GPU",
                f"flash-attention-fp4's block-scaled kernels do not run on {self.arch}",
                "--target fa4",
            )
        self._cupy, self._torch = cupy, torch
        self._delay = handicap_percent(request.knobs)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._external = torch.cuda.ExternalStream(self._stream.ptr)
        self._timer: Any = None

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Torch's present stream, and tvm-ffi's, which the compiled functions ask."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._torch.cuda.stream(self._external))
            if importlib.util.find_spec("tvm_ffi") is not None:
                import tvm_ffi

                stack.enter_context(tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), self._stream.ptr))
            yield

    def burst(self, launch: Launch, launches: int, l2: str, primers: int) -> Burst:
        """Time launches, as for every target."""
        from fa4top.targets.cuda.bursts import BurstTimer

        if self._timer is None:
            self._timer = BurstTimer(self._cupy, self._stream, launch, self.arch, self._delay)
        burst: Burst = self._timer.burst(launches, l2, primers)
        return burst

    def timed(self, launch: Launch) -> float:
        """Microseconds of one launch, by events around it."""
        begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        begin.record(self._stream)
        launch()
        end.record(self._stream)
        self._stream.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(begin, end)) * 1000.0

    def peek(self, buffer: Any) -> npt.NDArray[np.uint32]:
        """By a stream of its own: the other one is taken by the launch that hangs."""
        self._cupy.cuda.Device(0).use()
        stream = self._cupy.cuda.Stream(non_blocking=True)
        count = int(buffer.numel())
        host = self._cupy.cuda.alloc_pinned_memory(4 * count)
        found = np.frombuffer(host, dtype=np.uint32, count=count)
        memory = self._cupy.cuda.UnownedMemory(int(buffer.data_ptr()), 4 * count, buffer)
        self._cupy.cuda.MemoryPointer(memory, 0).copy_to_host_async(found.ctypes.data, 4 * count, stream)
        stream.synchronize()
        words: npt.NDArray[np.uint32] = found.copy()
        return words

    def synchronize(self) -> None:
        """All streams."""
        self._torch.cuda.synchronize()

    def versions(self) -> dict[str, str]:
        """CuPy's version; torch's is the package's business."""
        return {"cupy": str(self._cupy.__version__)}
