"""Where things lie in a recording: a mark each second, what sets the scene, where numbers begin. Built in one pass.

The pass decodes envelopes, not bodies, but for the few counts that a viewer keeps for longer than its window. Memory:
8 bytes for each record that sets the scene, 8 more where it makes a line, and a mark a second.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterator

import msgspec

from fa4top.analysis.view.fold import MAX_LINES, Totals, add_losses
from fa4top.analysis.view.jobs import MAX_BLOCKS
from fa4top.analysis.view.snapshot import LossTotals
from fa4top.records import (
    KINDS,
    AbBlock,
    Check,
    CleanBurst,
    EngineState,
    Fault,
    GpuSample,
    HangReport,
    Losses,
    Notice,
    Output,
    Plan,
    SweepBlock,
    TraceSample,
    WorkerState,
)
from fa4top.session.log_bytes import LogBytes

MARK_NS = 1_000_000_000
NUMBERS_GAP_NS = 3_000_000_000
# a viewer keeps so many of a kind at most: earlier ones need not be read again
MOST_OF_A_KIND = {AbBlock.kind: MAX_BLOCKS}
# each of these makes a line of the log screen, and a worker's state does when it is another: of all of them together
# the last lines are read again, and of each kind a few more, for what they say of the present state
LINES = frozenset(body.kind for body in (EngineState, Plan, Check, Fault, Notice, Output, HangReport))
FEW = 64


class _Line(msgspec.Struct):
    kind: str
    mono_ns: int
    body: msgspec.Raw


class _Trace(msgspec.Struct):
    plan_id: int
    losses: Losses


class _Clean(msgspec.Struct):
    plan_id: int
    times_us: list[float]


class _SweepBlock(msgspec.Struct):
    sweep_id: int
    accepted: bool


class _Plan(msgspec.Struct):
    plan_id: int


class _Worker(msgspec.Struct):
    plan_id: int
    twin: str
    state: str


_LINE = msgspec.json.Decoder(_Line)
_TRACE, _CLEAN = msgspec.json.Decoder(_Trace), msgspec.json.Decoder(_Clean)
_SWEEP_BLOCK, _PLAN = msgspec.json.Decoder(_SweepBlock), msgspec.json.Decoder(_Plan)
_WORKER = msgspec.json.Decoder(_Worker)


class _Counter:
    """The counts of ``Totals``, record by record, as the fold has them."""

    def __init__(self) -> None:
        self._records = 0
        self._plan_id = -1
        self._clean = 0
        self._losses = LossTotals()
        self._sweeps: dict[int, tuple[int, int]] = {}
        self._now: Totals | None = None

    def take(self, line: _Line) -> None:
        self._records += 1
        self._now = None
        if line.kind == Plan.kind:
            self._plan_id, self._clean, self._losses = _PLAN.decode(line.body).plan_id, 0, LossTotals()
        elif line.kind == TraceSample.kind:
            trace = _TRACE.decode(line.body)
            if self._plan_id in (-1, trace.plan_id):
                self._losses = add_losses(self._losses, trace.losses)
        elif line.kind == CleanBurst.kind:
            clean = _CLEAN.decode(line.body)
            if self._plan_id in (-1, clean.plan_id):
                self._clean += len(clean.times_us)
        elif line.kind == SweepBlock.kind:
            block = _SWEEP_BLOCK.decode(line.body)
            count, rejected = self._sweeps.get(block.sweep_id, (0, 0))
            self._sweeps[block.sweep_id] = (count + 1, rejected + (not block.accepted))

    def totals(self) -> Totals:
        if self._now is None:
            self._now = Totals(
                records=self._records,
                plan_id=self._plan_id,
                clean_launches=self._clean,
                losses=self._losses,
                sweep_blocks=tuple((sweep, *counts) for sweep, counts in self._sweeps.items()),
            )
        return self._now


class LogIndex:
    """Grows while ``scan`` runs in one thread; may be asked from others. Offsets are those of lines' beginnings."""

    def __init__(self, source: LogBytes) -> None:
        self._source = source
        self._marks_ns, self._marks_at = array("q"), array("Q")
        self._totals: list[Totals] = []
        self._scene: dict[str, array[int]] = {}
        self._lines = array("Q")
        self._states: dict[tuple[int, str], str] = {}
        self._gpu = array("Q")
        self._starts_ns = array("q")
        self.first_ns = 0
        self.last_ns = 0
        self.scanned = 0
        self.complete = False

    def scan(self) -> Iterator[None]:
        """Index what there is, unpacking on the way; yields now and then, so that it can be stopped."""
        counter, at, number_ns = _Counter(), 0, -NUMBERS_GAP_NS - 1
        while not (self._source.complete and at >= self._source.available):
            self._source.advance()
            before = at
            for end, text in self._source.lines(at):
                number_ns = self._take(counter, at, text, number_ns)
                self.scanned = at = end
                if end - before > MARK_BYTES:
                    before = end
                    yield
            if at == before and self._source.complete:
                break
            yield
        self.complete = True

    def _take(self, counter: _Counter, at: int, text: bytes, number_ns: int) -> int:
        try:
            line = _LINE.decode(text)
            kind = KINDS.get(line.kind)
            if kind is None:
                return number_ns
            now = line.mono_ns
            if not self._marks_ns or now >= self._marks_ns[-1] + MARK_NS:
                self._totals.append(counter.totals())
                self._marks_at.append(at)
                self._marks_ns.append(now)
            counter.take(line)
            if line.kind in LINES or (line.kind == WorkerState.kind and self._is_new(_WORKER.decode(line.body))):
                self._lines.append(at)
        except msgspec.MsgspecError:
            return number_ns  # the reader will count it
        self.first_ns = self.first_ns or now
        self.last_ns = max(self.last_ns, now)
        if kind.scene:
            self._scene.setdefault(line.kind, array("Q")).append(at)
        elif line.kind == GpuSample.kind:
            self._gpu.append(at)
        if kind.numbers:
            if now - number_ns > NUMBERS_GAP_NS:
                self._starts_ns.append(now)
            number_ns = now
        return number_ns

    def _is_new(self, worker: _Worker) -> bool:
        who = (worker.plan_id, worker.twin)
        new = self._states.get(who) != worker.state
        self._states[who] = worker.state
        return new

    def mark_before(self, at_ns: int) -> tuple[int, Totals]:
        """(offset, counts so far) of the last mark at or before a moment."""
        index = max(0, bisect.bisect_right(self._marks_ns, at_ns) - 1)
        if not self._totals:
            return 0, Totals()
        return self._marks_at[index], self._totals[index]

    def scene_before(self, offset: int) -> list[int]:
        """Offsets of the records before this place that set the scene for what follows, in order."""
        found = set(_last(self._lines, offset, MAX_LINES))
        for kind, places in self._scene.items():
            few = kind in LINES or kind == WorkerState.kind
            found.update(_last(places, offset, FEW if few else MOST_OF_A_KIND.get(kind, MAX_LINES)))
        last = bisect.bisect_left(self._gpu, offset) - 1
        if last >= 0:
            found.add(self._gpu[last])  # what NVML said last stands until it says something else
        return sorted(found)

    def numbers_after(self, at_ns: int) -> int | None:
        """The moment when, after a gap, numbers begin again; None where no others follow in what is indexed."""
        index = bisect.bisect_right(self._starts_ns, at_ns)
        return self._starts_ns[index] if index < len(self._starts_ns) else None


def _last(places: array[int], offset: int, most: int) -> array[int]:
    count = bisect.bisect_left(places, offset)
    return places[max(0, count - most) : count]


MARK_BYTES = 1 << 20
