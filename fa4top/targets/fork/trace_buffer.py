"""flash-attention-fp4's own trace buffer: decoded whole, with its traps.

Buffer: 32-bit words. Word 0 the number of blocks, word 1 of groups; event k of (block, group) at word 2 + 2 (block
groups + group + k blocks groups): a tag, then %clock. Tag: SM 31..24, block 23..12 (its low 12 bits), event 11..2, kind
1..0.

Traps, handled here: the number of groups comes from word 1, never from a constant; the tag of the first QK begin of
block 0 on SM 0 is zero, so the fork takes it for an empty slot; recording into shared memory stops after 128 events a
group; the last slot of the buffer takes what found no place; clocks wrap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fa4top.analysis.trace.decode import U32, RoleHeader, RoleTrace, Stream, pair, unwrap
from fa4top.analysis.trace.events import event_id
from fa4top.analysis.trace.layout import STATE_FINISHED, STATE_STARTED

GROUPS = ("mma", "softmax0", "softmax1", "correction")
RING_EVENTS = 128
MOST_BLOCKS = 1 << 20
# the fork's event index: our name
EVENT_NAMES: dict[int, str] = {
    0: "QK",
    1: "PV",
    2: "exp2",
    3: "quantise P",
    4: "row max",
    6: "wait S",
    7: "store P",
    8: "wait P",
    10: "wait corr",
    12: "wait KV",
    13: "wait P 2nd",
}
_OURS = np.zeros(1024, dtype=np.uint8)
for _index, _name in EVENT_NAMES.items():
    _OURS[_index] = event_id(_name)


class UnknownTrace(ValueError):
    """The words are no such buffer; the text says what was expected and what was found."""


@dataclass(frozen=True)
class ForkGroup:
    """One recorder of one block. ``missing``: empty slots between recorded ones; ``foreign``: slots of another block or
    SM (an older launch); ``unknown``: event ids or kinds that this layout does not have; ``full``: it stopped because
    its ring was full."""

    trace: RoleTrace
    missing: int
    foreign: int
    unknown: int
    full: bool


@dataclass(frozen=True)
class ForkTrace:
    """One block of a buffer. ``detail``: 12 events a softmax step instead of 8, inferred from what is there."""

    block: int
    sm: int
    blocks: int
    groups: tuple[ForkGroup, ...]
    detail: bool
    notes: tuple[str, ...]

    @property
    def roles(self) -> list[RoleTrace]:
        """Traces of the groups that recorded something."""
        return [group.trace for group in self.groups]

    def role(self, name: str) -> RoleTrace | None:
        """One role's trace."""
        return next((trace for trace in self.roles if trace.role == name), None)


def read_header(words: U32, length: int = 0) -> tuple[int, int, int]:
    """(blocks, groups, slots of each group) of a buffer.

    Args:
        length: words of the whole buffer, when only its beginning is given.

    Raises:
        UnknownTrace: the first two words can not be that.
    """
    if words.dtype != np.uint32 or words.ndim != 1:
        raise UnknownTrace(f"expected a row of 32-bit words, found {words.dtype} of shape {words.shape}")
    if len(words) < 4:
        raise UnknownTrace(f"expected a header of two words and events, found {len(words)} words")
    blocks, groups = int(words[0]), int(words[1])
    if not 1 <= groups <= len(GROUPS) or not 1 <= blocks <= MOST_BLOCKS:
        raise UnknownTrace(
            f"expected the numbers of blocks and groups (1 to {len(GROUPS)}) first, found {blocks} and {groups}: "
            "nothing was recorded, or this is the buffer of an older profiler (64-bit entries)"
        )
    length = length or len(words)
    slots = (length - 2) // 2 // (blocks * groups)
    if not slots:
        raise UnknownTrace(f"{blocks} blocks x {groups} groups do not fit into {length} words")
    return blocks, groups, slots


def sacrificial(length: int, blocks: int, groups: int, slots: int, block: int) -> tuple[int, int] | None:
    """(group, slot) of a block that is the buffer's last one, which takes what found no place; None for other blocks.

    Args:
        length: words of the whole buffer.
    """
    count, last = blocks * groups, (length - 4) // 2
    if last < count * slots and last % count // groups == block:
        return last % count % groups, last // count
    return None


def pack_block(words: U32, block: int) -> U32:
    """One block of a buffer, compact: the header's two words, then (slots, groups, 2). The buffer's last slot reads as
    empty. A launcher does the same on the device, so that 32 MB need not be copied for each sample."""
    blocks, groups, slots = read_header(words)
    count = blocks * groups
    table = words[2 : 2 + 2 * count * slots].reshape(slots, count, 2)
    own = table[:, block * groups : (block + 1) * groups].copy()
    if (lost := sacrificial(len(words), blocks, groups, slots, block)) is not None:
        own[lost[1], lost[0]] = 0
    packed: U32 = np.concatenate([words[:2], own.reshape(-1)])
    return packed


def recorded_blocks(words: U32) -> list[tuple[int, int]]:
    """(block, SM) of all blocks that recorded something."""
    blocks, groups, _ = read_header(words)
    first = words[2 : 2 + 2 * blocks * groups].reshape(blocks, groups, 2)
    found = (first != 0).any(axis=(1, 2))
    sms = (first[:, :, 0].max(axis=1) >> np.uint32(24)).astype(int)
    return [(int(block), int(sms[block])) for block in np.flatnonzero(found)]


def choose_block(words: U32) -> int:
    """The block that loses least: the first one that did not run on SM 0.

    Raises:
        UnknownTrace: no block recorded anything.
    """
    found = recorded_blocks(words)
    if not found:
        raise UnknownTrace("no block recorded anything: was FA4_PROFILE_PIPELINE=1 set before the first compile?")
    return next((block for block, sm in found if sm), found[0][0])


def decode_block(words: U32, block: int) -> ForkTrace:
    """Decode one block.

    Raises:
        UnknownTrace: no such buffer, or no such block in it.
    """
    blocks = read_header(words)[0]
    if not 0 <= block < blocks:
        raise UnknownTrace(f"there are blocks 0 to {blocks - 1}, not {block}")
    return decode_packed(pack_block(words, block), block)


def decode_packed(packed: U32, block: int, hung: bool = False) -> ForkTrace:
    """Decode what ``pack_block`` made.

    Args:
        hung: the launch has not ended, so a role whose last event begins a wait is in it.

    Raises:
        UnknownTrace: no such buffer.
    """
    if len(packed) < 2 or not 1 <= int(packed[1]) <= len(GROUPS) or (len(packed) - 2) % (2 * int(packed[1])):
        raise UnknownTrace(f"expected two words and the slots of 1 to {len(GROUPS)} groups, found {len(packed)} words")
    blocks, groups = int(packed[0]), int(packed[1])
    table = packed[2:].reshape(-1, groups, 2).transpose(1, 0, 2)
    state = STATE_STARTED if hung else STATE_FINISHED
    found = [_decode_group(slots, GROUPS[g], block, state) for g, slots in enumerate(table)]
    kept = tuple(group for group in found if group is not None)
    detail = any((group.trace.stream.key >> 2 == event_id("row max")).any() for group in kept)
    sm = kept[0].trace.header.sm if kept else -1
    return ForkTrace(block, sm, blocks, kept, detail, tuple(_notes(kept, sm)))


def _decode_group(slots: npt.NDArray[np.uint32], role: str, block: int, state: int) -> ForkGroup | None:
    written = np.flatnonzero((slots != 0).any(axis=1))
    if not len(written):
        return None
    extent = int(written[-1]) + 1
    tags, clocks = slots[written, 0], slots[written, 1]
    sms = tags >> np.uint32(24)
    # a zero tag with a clock is the first QK begin of block 0 on SM 0
    sm = int(np.bincount(sms.astype(np.int64)).argmax())
    own = (sms == sm) & ((tags >> np.uint32(12) & np.uint32(0xFFF)) == np.uint32(block & 0xFFF))
    foreign = int(np.count_nonzero(~own))
    tags, clocks = tags[own], clocks[own]
    index, kind = (tags >> np.uint32(2)) & np.uint32(0x3FF), tags & np.uint32(3)
    known = (_OURS[index] != 0) & (kind < 2)
    unknown = int(np.count_nonzero(~known))
    index, kind, clocks = index[known], kind[known], np.ascontiguousarray(clocks[known])
    time, backward = unwrap(clocks)
    key = (_OURS[index] << 2 | kind.astype(np.uint8)).astype(np.uint8)
    stream = Stream(key, time, int(clocks[0]) if len(clocks) else 0, len(key), foreign, backward)
    header = RoleHeader(1, len(key), 0, sm, block, state, (0, 0), (0, 0))
    trace = RoleTrace(role, header, stream, pair(stream))
    return ForkGroup(trace, extent - len(written), foreign, unknown, extent == RING_EVENTS)


def _notes(groups: tuple[ForkGroup, ...], sm: int) -> list[str]:
    notes = []
    if full := [group.trace.role for group in groups if group.full]:
        notes.append(
            f"{', '.join(full)}: recording stopped after {RING_EVENTS} events (the first tile begins only); "
            "FA4_PROF_SMEM=0 records all, and takes 40 to 140% longer"
        )
    if sm == 0 and any(group.missing for group in groups):
        notes.append("this block ran on SM 0: its first QK begin has a tag of zero and was not flushed; choose another")
    if foreign := sum(group.foreign for group in groups):
        notes.append(f"{foreign} slots of another launch: the buffer was not zeroed before this one")
    if unknown := sum(group.unknown for group in groups):
        notes.append(f"{unknown} events of a kind that this layout does not have: another version of the profiler?")
    return notes
