"""The event buffer of one traced kernel, on the device or mapped from the host. Workers only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.layout import CONFIG_BYTES, BufferLayout, Recorded

NOBODY = 0xFFFFFFFF  # no CTA has this index


class TraceBuffer:
    """Allocates the buffer and the config words; sets who records; copies out what was recorded."""

    def __init__(self, cupy: Any, layout: BufferLayout, inflight: bool, stream: Any) -> None:
        self._layout = layout
        self._inflight = inflight
        self._stream = stream
        self._config = cupy.zeros(CONFIG_BYTES // 4, dtype=cupy.uint32)
        size = self._size = layout.device_bytes if inflight else layout.total_bytes
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

    def peek(self, cupy: Any) -> Recorded:
        """What is recorded while a kernel still runs (or hangs), by a stream of its own; called from another thread."""
        stream = cupy.cuda.Stream(non_blocking=True)
        host = np.frombuffer(cupy.cuda.alloc_pinned_memory(self._size), dtype=np.uint8, count=self._size)
        return self._copied(host, stream)

    def capture(self) -> Recorded:
        """Wait for the stream; then what was recorded: headers first, then only the slots that were written. Views of
        pinned memory, which the next capture overwrites."""
        self._stream.synchronize()
        return self._copied(self.host_bytes, self._stream)

    def _copied(self, host: npt.NDArray[np.uint8], stream: Any) -> Recorded:
        layout = self._layout
        if self._inflight and host is not self.host_bytes:
            host[:] = self.host_bytes
        self._fetch(host, 0, 0, layout.slots_offset, stream)
        headers = host[: layout.slots_offset].view(np.uint32).reshape(len(layout.roles), -1)
        places, at = [], layout.slots_offset
        for role, header in enumerate(headers):
            size = layout.bytes_recorded(header)
            start = layout.slots_at(role) if self._inflight else at
            places.append((start, size))
            if size and not self._inflight:
                (self._device.data + layout.slots_at(role)).copy_to_host_async(host.ctypes.data + at, size, stream)
                at += size
        stream.synchronize()
        return Recorded(headers, tuple(layout.as_slots(host[start : start + size]) for start, size in places))

    def _fetch(self, host: npt.NDArray[np.uint8], source: int, target: int, size: int, stream: Any) -> None:
        if self._inflight:
            return  # it is the host's memory already
        (self._device.data + source).copy_to_host_async(host.ctypes.data + target, size, stream)
        stream.synchronize()
