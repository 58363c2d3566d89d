"""The event buffer of one traced kernel, on the device or mapped from the host. Workers only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.analysis.layout import CONFIG_BYTES, BufferLayout

NOBODY = 0xFFFFFFFF  # no CTA has this index


class TraceBuffer:
    """Allocates the buffer and the config words; sets who records; copies out what was recorded."""

    def __init__(self, cupy: Any, layout: BufferLayout, inflight: bool, stream: Any) -> None:
        self._layout = layout
        self._inflight = inflight
        self._stream = stream
        self._config = cupy.zeros(CONFIG_BYTES // 4, dtype=cupy.uint32)
        size = layout.device_bytes if inflight else layout.total_bytes
        self._host = cupy.cuda.alloc_pinned_memory(size)
        self.host_bytes = np.frombuffer(self._host, dtype=np.uint8, count=size)
        self.host_bytes[:] = 0
        self._host_config = np.frombuffer(cupy.cuda.alloc_pinned_memory(16), dtype=np.uint32, count=4)
        if inflight:
            # pinned memory is mapped at the same address under unified addressing
            self.address = int(self._host.ptr)
        else:
            self._device = cupy.zeros(layout.device_bytes, dtype=cupy.uint8)
            self.address = int(self._device.data.ptr)

    @property
    def config_address(self) -> int:
        """Device address of the config words."""
        return int(self._config.data.ptr)

    def record_async(self, slot: int, cta: int, generation: int) -> None:
        """Queue a change of the config words; pinned source words differ per slot, so both may be in flight."""
        words = self._host_config[2 * slot : 2 * slot + 2]
        words[:] = (cta, generation)
        self._config[:2].data.copy_from_host_async(words.ctypes.data, 8, self._stream)

    def peek(self, cupy: Any) -> npt.NDArray[np.uint8]:
        """What is recorded while a kernel still runs (or hangs), by a stream of its own; called from another thread."""
        stream = cupy.cuda.Stream(non_blocking=True)
        host = cupy.cuda.alloc_pinned_memory(self._layout.total_bytes)
        found = np.frombuffer(host, dtype=np.uint8, count=self._layout.total_bytes)
        for device_offset, host_offset, size in self._layout.pieces():
            if self._inflight:
                found[host_offset : host_offset + size] = self.host_bytes[device_offset : device_offset + size]
            else:
                (self._device.data + device_offset).copy_to_host_async(found.ctypes.data + host_offset, size, stream)
        stream.synchronize()
        whole: npt.NDArray[np.uint8] = found.copy()
        return whole

    def capture(self) -> npt.NDArray[np.uint8]:
        """Wait for the stream; then a copy of what was recorded, one role after the other."""
        self._stream.synchronize()
        if self._inflight:
            pieces = [(start, size) for start, _, size in self._layout.pieces()]
        else:
            for device_offset, host_offset, size in self._layout.pieces():
                (self._device.data + device_offset).copy_to_host_async(
                    self.host_bytes.ctypes.data + host_offset, size, self._stream
                )
            self._stream.synchronize()
            pieces = [(0, self._layout.total_bytes)]
        whole: npt.NDArray[np.uint8] = np.concatenate([self.host_bytes[start : start + n] for start, n in pieces])
        return whole
