"""The device buffer: what probes write and the decoder reads.

    config   64 bytes: word 0 the CTA that records, word 1 the launch generation (1..1023)
    headers  64 bytes a role
    slots    capacity x stride bytes a role

An event is 8 bytes, (u32 tag, u32 %clock); a record is 16 bytes, (u32 tag, three u32 words), written where stores
are dear. A tag is never zero: bits 31..22 hold the launch generation (1..1023), 21..8 nothing, 7..2 the event id and
1..0 the kind. So a stale slot can not be decoded: its generation differs.

On the device the state of a role's probes is one register: generation (10 bits), role (2 bits), slot (20 bits).

One recording CTA a launch; the buffer is small enough that a copy after the launch costs microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CONFIG_BYTES = 64
HEADER_BYTES = 64

BEGIN, END, MARK, WIDE = 0, 1, 2, 3

STATE_STARTED, STATE_FINISHED = 1, 2

# words of a role's header
H_LAYOUT, H_GENERATION, H_WRITTEN, H_DROPPED, H_SM, H_CTA, H_STATE = range(7)
H_TIMER_BEGIN, H_CLOCK_BEGIN, H_TIMER_END, H_CLOCK_END = 8, 10, 12, 14

MAX_GENERATION = 1023
GENERATION_SHIFT = 22
SLOT_BITS = 20
SLOT_MASK = (1 << SLOT_BITS) - 1


@dataclass(frozen=True)
class Recorded:
    """What one launch left, as views: ``headers`` (roles, 16) u32; ``slots`` by role, (n, stride // 4) u32, at least as
    many as the header says were written. A family with a decoder of its own has no headers, and its words in
    ``slots``."""

    headers: npt.NDArray[np.uint32]
    slots: tuple[npt.NDArray[np.uint32], ...]


@dataclass(frozen=True, kw_only=True)
class BufferLayout:
    """Sizes of one target's buffer. ``stride`` is 8 (events) or 16 (records) bytes.

    What a capture holds is always compact: ``capacity`` slots a role, one role after the other. ``late``: a probe may
    read the clock now and store it later (kernels/trace.cuh), so that slots are not in the order of their clocks.
    """

    roles: tuple[str, ...]
    capacity: int
    stride: int
    spread: bool = False
    late: bool = False

    @property
    def device_role_bytes(self) -> int:
        """Bytes from one role's slots to the next one's on the device.

        With ``spread`` all that the slot bits can count, so that role and slot of the state are the index as they
        stand; else the capacity.
        """
        return (1 << SLOT_BITS if self.spread else self.capacity) * self.stride

    @property
    def device_bytes(self) -> int:
        """Bytes from the first header to the end, on the device."""
        return self.slots_offset + len(self.roles) * self.device_role_bytes

    @property
    def role_bytes(self) -> int:
        """Bytes of one role's slots."""
        return self.capacity * self.stride

    @property
    def slots_offset(self) -> int:
        """Byte offset of the first role's slots from the first header."""
        return len(self.roles) * HEADER_BYTES

    @property
    def total_bytes(self) -> int:
        """Bytes from the first header to the end (the config word lies elsewhere, in device memory)."""
        return self.slots_offset + len(self.roles) * self.role_bytes

    def slots_at(self, role: int) -> int:
        """Byte offset of a role's slots from the first header, on the device."""
        return self.slots_offset + role * self.device_role_bytes

    def bytes_recorded(self, header: npt.NDArray[np.uint32]) -> int:
        """Bytes of a role's slots that are worth copying: those that were written; of a role that has not finished all
        that may have been."""
        if header[H_STATE] == STATE_FINISHED:
            return min(int(header[H_WRITTEN]), self.capacity) * self.stride
        return self.role_bytes if header[H_STATE] else 0

    def as_slots(self, words: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
        """Bytes of one role's slots as (n, stride // 4) u32; a view."""
        return words.view(np.uint32).reshape(-1, self.stride // 4)

    def views(self, buffer: npt.NDArray[np.uint8]) -> Recorded:
        """A compact buffer (headers, then ``capacity`` slots a role) as what was recorded; no copy."""
        headers = buffer[: self.slots_offset].view(np.uint32).reshape(len(self.roles), -1)
        return Recorded(headers, tuple(self.slots(buffer, role) for role in range(len(self.roles))))

    def header(self, buffer: npt.NDArray[np.uint8], role: int) -> npt.NDArray[np.uint32]:
        """The 16 header words of a role; a view."""
        start = role * HEADER_BYTES
        return buffer[start : start + HEADER_BYTES].view(np.uint32)

    def slots(self, buffer: npt.NDArray[np.uint8], role: int) -> npt.NDArray[np.uint32]:
        """A role's slots as (capacity, stride // 4) u32; a view."""
        start = self.slots_offset + role * self.role_bytes
        return buffer[start : start + self.role_bytes].view(np.uint32).reshape(self.capacity, self.stride // 4)


def next_generation(generation: int) -> int:
    """The generation after this one; 0 is never used."""
    return generation % MAX_GENERATION + 1
