"""A session's records as spans, counters and a long table: what every export format is made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fa4top.analysis.view.long_table import TRACED, TableRow, table_rows
from fa4top.analysis.view.metrics import metrics_of
from fa4top.orders.shapes import shape_words
from fa4top.orders.typed import setting_words
from fa4top.records import Check, CleanBurst, Envelope, GpuSample, Header, Notice, Plan, TraceSample


@dataclass(frozen=True, kw_only=True)
class SpanRow:
    """One span of a traced launch: nanoseconds since the session's first record. ``duration_ns`` is true time, by the
    launch's own anchors of the SM clock; where a launch lies on the time axis is when its record was written."""

    role: str
    name: str
    begin_ns: float
    duration_ns: float
    launch: int
    cta: int
    sm: int


@dataclass(frozen=True)
class CounterRow:
    """One value over time."""

    name: str
    unit: str
    time_ns: float
    value: float


@dataclass(kw_only=True)
class Exported:
    """All of a session. ``about`` are facts for metadata: target, device, shape, setting, versions, checks."""

    spans: list[SpanRow] = field(default_factory=list)
    counters: list[CounterRow] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    simulated: bool = False
    without_clock: int = 0  # timelines whose launch does not know its SM clock: cycles can not become time

    @property
    def label(self) -> str:
        """What stands in front of every name."""
        return "SIMULATED " if self.simulated else ""


def export_session(records: Iterable[Envelope]) -> Exported:
    """Everything that the formats show, in the records' order."""
    found = Exported()
    start: int | None = None
    for record in records:
        start = record.mono_ns if start is None else start
        at_ns = float(record.mono_ns - start)
        found.simulated |= record.simulated
        body = record.body
        if isinstance(body, Header):
            found.about |= {"session": body.session_id, "fa4top": body.fa4top_version}
            found.simulated |= body.simulated
        elif isinstance(body, Plan):
            shape = body.shape
            found.about |= {
                f"plan {body.plan_id}": f"{body.target} on {body.device} ({body.arch}), {shape_words(shape)}",
                f"knobs of plan {body.plan_id}": setting_words(body.knobs) or "defaults",
            }
        elif isinstance(body, Check):
            found.about[f"check of {body.worker}"] = ("passed: " if body.passed else "FAILED: ") + body.text
        elif isinstance(body, Notice) and body.level == "error":
            found.about[f"error at {at_ns / 1e9:.1f} s"] = body.text
        elif isinstance(body, TraceSample):
            _trace(found, body, at_ns)
        elif isinstance(body, CleanBurst):
            for time_us in body.times_us:
                found.counters.append(CounterRow("kernel, clean", "us", at_ns, time_us))
        elif isinstance(body, GpuSample):
            for metric in metrics_of(GpuSample):
                if (value := metric.value(body)) is not None:
                    found.counters.append(CounterRow(metric.name, metric.unit, at_ns, value))
        found.rows += table_rows(record, at_ns / 1e9)
    return found


def _trace(found: Exported, sample: TraceSample, at_ns: float) -> None:
    for role in sample.roles:
        if role.period_median_cycles is not None:
            found.counters.append(
                CounterRow(f"step period of {role.role}, {TRACED}", "cycles", at_ns, role.period_median_cycles)
            )
    if sample.timeline is None:
        return
    if not sample.sm_clock_mhz:
        found.without_clock += 1
        return
    scale = 1000.0 / sample.sm_clock_mhz
    for row in sample.timeline.rows:
        for span in row.spans:
            begin = at_ns + span.begin_cycles * scale
            length = (span.end_cycles - span.begin_cycles) * scale
            found.spans.append(
                SpanRow(
                    role=row.role,
                    name=span.name,
                    begin_ns=begin,
                    duration_ns=length,
                    launch=sample.launch,
                    cta=sample.cta,
                    sm=sample.sm,
                )
            )
