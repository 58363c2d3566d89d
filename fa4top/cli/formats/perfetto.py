"""A session's spans and counters in Perfetto's native format (the `export` extra)."""

from __future__ import annotations

from typing import Any

from fa4top.analysis.view.spans import Exported, SpanRow

ROOT, FIRST_TRACK = 1, 10


class _Trace:
    """Tracks by name, and packets on them."""

    def __init__(self, label: str) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder

        self._builder = TraceProtoBuilder()
        self._kinds = TrackEvent.Type
        self._label = label
        self._tracks: dict[tuple[int, str], int] = {}
        root = self._packet().track_descriptor
        root.uuid, root.name = ROOT, f"{label}fa4top, traced launches"

    def _packet(self) -> Any:
        packet = self._builder.add_packet()
        packet.trusted_packet_sequence_id = 1
        return packet

    def track(self, parent: int, name: str, unit: str = "") -> int:
        """The track of this name, made when it is first asked for."""
        key = (parent, name)
        if key not in self._tracks:
            self._tracks[key] = FIRST_TRACK + len(self._tracks)
            made = self._packet().track_descriptor
            made.uuid, made.parent_uuid, made.name = self._tracks[key], parent, name
            if unit:
                made.counter.unit_name = unit
        return self._tracks[key]

    def event(self, kind: str, time_ns: float, track: int, name: str = "", **notes: str | int) -> Any:
        """One event; notes are shown beside it."""
        packet = self._packet()
        packet.timestamp = round(time_ns)
        event = packet.track_event
        event.type, event.track_uuid = getattr(self._kinds, f"TYPE_{kind}"), track
        if name:
            event.name = name
        for key, value in notes.items():
            note = event.debug_annotations.add()
            note.name = key
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = value
        return event

    def span(self, span: SpanRow) -> None:
        """A span on the track of its role and kind, so that nothing is forced into a stack."""
        role = self.track(ROOT, f"{self._label}{span.role} (traced)")
        track = self.track(role, span.name)
        notes: dict[str, str | int] = {"launch": span.launch, "CTA": span.cta, "SM": span.sm}
        self.event("SLICE_BEGIN", span.begin_ns, track, span.name, **notes)
        self.event("SLICE_END", span.begin_ns + span.duration_ns, track)

    def bytes(self) -> bytes:
        """The whole trace."""
        data: bytes = self._builder.serialize()
        return data


def perfetto(found: Exported) -> bytes:
    """All spans and counters."""
    trace = _Trace(found.label)
    trace.event("INSTANT", 0.0, ROOT, f"{found.label}session", **found.about)
    for span in found.spans:
        trace.span(span)
    for counter in found.counters:
        track = trace.track(ROOT, f"{found.label}{counter.name}", counter.unit)
        trace.event("COUNTER", counter.time_ns, track).double_counter_value = counter.value
    return trace.bytes()
