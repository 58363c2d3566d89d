"""The event buffer's copies, with memory of the host in the place of a device's."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from fa4top.analysis.trace.layout import H_STATE, H_WRITTEN, STATE_FINISHED, STATE_STARTED, BufferLayout
from fa4top.targets.cuda.trace_buffer import TraceBuffer


class Memory:
    """What CuPy's memory pointers offer, over NumPy bytes."""

    def __init__(self, array: Any, offset: int = 0) -> None:
        self.array, self.offset = array, offset

    @property
    def ptr(self) -> int:
        return int(self.array.ctypes.data) + self.offset

    def __add__(self, offset: int) -> Memory:
        return Memory(self.array, self.offset + offset)

    def copy_to_host_async(self, target: int, size: int, stream: object) -> None:
        ctypes.memmove(target, self.ptr, size)

    def copy_from_host_async(self, source: int, size: int, stream: object) -> None:
        ctypes.memmove(self.ptr, source, size)


class Array(np.ndarray):
    @property
    def data(self) -> Any:
        return Memory(self)


class Pinned(bytearray):
    @property
    def ptr(self) -> int:
        return int(np.frombuffer(self, dtype=np.uint8).ctypes.data)


class Cupy:
    """As much of CuPy as the buffer uses."""

    uint8, uint32 = np.uint8, np.uint32

    class cuda:
        alloc_pinned_memory = Pinned

    @staticmethod
    def zeros(count: int, dtype: Any) -> Array:
        return np.zeros(count, dtype=dtype).view(Array)


class Stream:
    def synchronize(self) -> None:
        pass


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("inflight", [False, True])
def test_a_capture_is_compact_whatever_the_device_has(spread: bool, inflight: bool) -> None:
    layout = BufferLayout(roles=("mma", "softmax0", "softmax1"), capacity=16, stride=8, spread=spread)
    buffer = TraceBuffer(Cupy, layout, inflight, Stream())
    device = np.ctypeslib.as_array((ctypes.c_uint8 * layout.device_bytes).from_address(buffer.address))
    for role in range(3):
        header = layout.header(device, role)
        header[:] = 10 + role
        # of a role that has finished only what was written is copied, of one that runs all that may have been
        header[H_WRITTEN], header[H_STATE] = 3 + role, STATE_FINISHED if role < 2 else STATE_STARTED
        start = layout.slots_at(role)
        device[start : start + layout.role_bytes] = 20 + role
    capture = buffer.capture()
    assert [len(slots) for slots in capture.slots] == [3, 4, 16]
    for role in range(3):
        assert (capture.headers[role, 7:] == 10 + role).all() and len(capture.headers[role]) == 16
        assert (capture.slots[role].view(np.uint8) == 20 + role).all()
    device[:] = 0
    assert all(slots.any() for slots in capture.slots) or inflight, "a capture does not change with the next launch"


def test_two_changes_of_who_records_may_be_in_flight() -> None:
    buffer = TraceBuffer(Cupy, BufferLayout(roles=("mma",), capacity=4, stride=8), False, Stream())
    words = np.ctypeslib.as_array((ctypes.c_uint32 * 2).from_address(buffer.config_address))
    buffer.record_async(0, 7, 3)
    assert words.tolist() == [7, 3]
    buffer.record_async(1, 9, 4)
    assert words.tolist() == [9, 4]
