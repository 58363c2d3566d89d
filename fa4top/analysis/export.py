"""A session's records as spans, counters and a long table: what every export format is made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fa4top.records import Check, CleanBurst, Envelope, GpuSample, Header, Notice, Plan, SweepPoint, TraceSample

TRACED = "traced"


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class TableRow:
    """One figure of the long table. ``role`` is '' where there is none; ``label`` says traced or clean; simulated data
    say so in every row."""

    time_s: float
    source: str
    plan_id: int
    kind: str
    role: str
    metric: str
    value: float
    unit: str
    label: str
    simulated: bool


@dataclass
class Exported:
    """All of a session. ``about`` are facts for metadata: target, device, shape, setting, versions, checks."""

    spans: list[SpanRow] = field(default_factory=list)
    counters: list[CounterRow] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    simulated: bool = False
    without_clock: int = 0  # timelines whose launch does not know its SM clock: cycles can not become time


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
                f"plan {body.plan_id}": f"{body.target} on {body.device} ({body.arch}), b{shape.batch} "
                f"sq{shape.seqlen_q} sk{shape.seqlen_k} h{shape.heads} hk{shape.kv_heads} d{shape.head_dim} "
                f"{shape.dtype}"
                f"{' causal' if shape.causal else ''}",
                f"knobs of plan {body.plan_id}": " ".join(f"{k}={v}" for k, v in body.knobs.items()) or "defaults",
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
            for name, unit, value in (("SM clock, NVML", "MHz", body.sm_clock_mhz), ("power", "W", body.power_w)):
                if value is not None:
                    found.counters.append(CounterRow(name, unit, at_ns, value))
        found.rows += _rows(record, at_ns / 1e9)
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
            found.spans.append(SpanRow(row.role, span.name, begin, length, sample.launch, sample.cta, sample.sm))


def _rows(record: Envelope, time_s: float) -> Iterator[TableRow]:
    body = record.body

    def row(
        kind: str, plan_id: int, role: str, metric: str, value: float | None, unit: str, label: str
    ) -> list[TableRow]:
        if value is None:
            return []
        return [TableRow(time_s, record.source, plan_id, kind, role, metric, value, unit, label, record.simulated)]

    if isinstance(body, CleanBurst):
        for time_us in body.times_us:
            yield from row("clean", body.plan_id, "", "time", time_us, "us", "clean")
        yield from row("clean", body.plan_id, "", "SM clock", body.sm_clock_mhz, "MHz", "clean")
    elif isinstance(body, TraceSample):
        yield from row("trace", body.plan_id, "", "time", body.time_us, "us", TRACED)
        yield from row("trace", body.plan_id, "", "SM clock", body.sm_clock_mhz, "MHz", TRACED)
        for role in body.roles:
            for metric, value in (
                ("period", role.period_median_cycles),
                ("period p95", role.period_p95_cycles),
                ("busy", role.busy_cycles),
                *role.waits_cycles.items(),
            ):
                yield from row("trace", body.plan_id, role.role, metric, value, "cycles", TRACED)
    elif isinstance(body, GpuSample):
        for metric, value, unit in (
            ("SM clock", body.sm_clock_mhz, "MHz"),
            ("power", body.power_w, "W"),
            ("temperature", body.temperature_c, "C"),
        ):
            yield from row("gpu", 0, "", metric, value, unit, "NVML")
    elif isinstance(body, SweepPoint) and body.status == "measured":
        name = f"{body.series} {body.value}".strip()
        yield from row("sweep", body.plan_id, "", name, body.tflops, "TFLOP/s", "clean")
