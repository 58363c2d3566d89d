"""What a session came to, as plain tables and sentences: one description of each job's result.

Text, Markdown, HTML and CSV are drawn from these, whatever the job; the screens draw the same rows with colours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fa4top.analysis.chip.floors import floor_sentence
from fa4top.analysis.compare.sweeps import GRID_FROM
from fa4top.analysis.view.experiments import next_experiments
from fa4top.analysis.view.metrics import METRICS, metrics_of
from fa4top.analysis.view.sass_figures import sass_rows
from fa4top.analysis.view.snapshot import RoleView, Snapshot
from fa4top.analysis.view.tables import (
    ab_rows,
    bench_row,
    bench_title,
    bench_verdict,
    check_rows,
    clock_text,
    milestones,
    null_lines,
    percent_range,
    sweep_rows,
    tier_text,
)
from fa4top.analysis.view.words import shape_text, title
from fa4top.orders.typed import setting_words
from fa4top.records import TriageStep

MILESTONES = 8


@dataclass(frozen=True)
class Column:
    """``left``: words, not numbers."""

    name: str
    left: bool = False


@dataclass(frozen=True)
class Table:
    """Cells as they are shown. ``notes`` stand below it, a line each."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Result:
    """One job's result, or the live numbers. ``head`` says what was done on what; ``sentence`` is the answer, with its
    label; ``below`` what has to be said with it."""

    kind: str
    head: str
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    steps: tuple[TriageStep, ...] = ()
    sentence: str = ""
    below: tuple[str, ...] = ()
    commands: tuple[str, ...] = field(default_factory=tuple)


def results(snapshot: Snapshot) -> list[Result]:
    """All that the session came to: its jobs, then the live numbers where there are any."""
    found = [result for describe in _DESCRIBE if (result := describe(snapshot)) is not None]
    if snapshot.roles or snapshot.clean_us is not None or not found:
        found.append(live_result(snapshot))
    return found


def _numbers(names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def live_result(snapshot: Snapshot) -> Result:
    """The live screen's numbers."""
    facts: list[tuple[str, str]] = []
    if snapshot.clean_us is not None:
        launches = f"{snapshot.clean_launches} launches"
        parts = [METRICS["time"].text(snapshot), f"p95 {METRICS['time p95'].number(snapshot)}"]
        facts.append(("kernel, clean", "   ".join([*parts, METRICS["tflops"].text(snapshot), launches])))
    plan = snapshot.plan
    if plan is not None and plan.published is not None:
        facts.append(("published", f"{plan.published.tflops:.0f} TFLOP/s ({plan.published.source})"))
    facts.append(
        (
            "clean period",
            f"{METRICS['clean period'].text(snapshot)}   probe effect {METRICS['probe effect'].text(snapshot)}   "
            f"SM clock by kernel {METRICS['SM clock'].text(snapshot)}",
        )
    )
    if text := floor_sentence(snapshot.clean_period_cycles, snapshot.floors):
        facts.append(("floor", text))
    if snapshot.own:
        words = "  ".join(f"{name.replace('_', ' ')} {value:.0f}" for name, value in snapshot.own)
        facts.append(("own, cycles", f"{words} (by the target's own definitions)"))
    account = snapshot.account
    if account is not None:
        shares = f"steps {account.steps:.0%}   tile ends {account.tile_ends:.0%}   tail {account.tail:.0%}"
        facts.append(("kernel account", shares))
    losses = snapshot.losses
    facts.append(
        (
            "events",
            f"{losses.recorded} in {losses.launches} launches   lost {losses.dropped}   "
            f"unmatched {losses.unmatched}   stale {losses.stale}",
        )
    )
    facts += [(f"check, {c.twin}", f"{'ok' if c.passed else 'FAILED'}: {c.text}") for c in snapshot.checks]
    shown = metrics_of(RoleView)
    rows = tuple((view.role, *(metric.number(view) for metric in shown), _waits(view)) for view in snapshot.roles)
    columns = (Column("role", True), *_numbers([m.name for m in shown]), Column("waits, cycles a step (share)", True))
    return Result(
        kind="live",
        head=title(snapshot),
        facts=tuple(facts),
        tables=(Table("a step by role, cycles", columns, rows),),
        sentence=snapshot.verdict.text + snapshot.suffix,
    )


def _waits(view: RoleView) -> str:
    step = view.step_cycles or 1.0
    return "  ".join(f"{cause} {cycles:.0f} ({cycles / step:.0%})" for cause, cycles in view.waits_cycles) or "-"


def bench_result(snapshot: Snapshot) -> Result | None:
    """Every microbenchmark."""
    if not snapshot.bench:
        return None
    tables = []
    for group in dict.fromkeys(result.group for result in snapshot.bench):
        limit = "perfect" if group == "mix" else "limit"
        rows = []
        for result in snapshot.bench:
            if result.group == group:
                row = bench_row(result)
                share = f"{row.limit_share:.1%}" if row.limit_share is not None else ""
                rows.append(
                    (row.name, row.value, row.unit, row.limit, share, row.published, row.spread, row.threads, row.note)
                )
        columns = (
            Column(group, True),
            Column("figure"),
            Column("unit", True),
            *_numbers((limit, "share", "publ.", "spread", "threads")),
            Column("", True),
        )
        tables.append(Table(group, columns, tuple(rows)))
    return Result(
        kind="bench",
        head=snapshot.prefix + bench_title(snapshot.bench),
        tables=tuple(tables),
        sentence=bench_verdict(snapshot.bench) + snapshot.suffix,
    )


def sweep_result(snapshot: Snapshot) -> Result | None:
    """Every setting against the present one."""
    state = snapshot.sweep
    if state is None:
        return None
    series = f" · {state.series_knob} {', '.join(state.series)}" if state.series_knob else ""
    rows = []
    for row in sweep_rows(state, snapshot.sweep_points):
        mark = f"{row.output}  < {row.plateau}" if row.plateau else row.output
        note = mark if row.status == "measured" else f"{row.status}: {row.note}".rstrip(": ")
        numbers = (row.tflops, row.against, row.interval, row.word, row.fresh, row.period, row.wait_p, row.wait_rest)
        rows.append((row.series, row.value, *numbers, note))
    columns = (
        Column("series", True),
        Column("value", True),
        *_numbers(("TFLOP/s", "time", "95% together")),
        Column("verdict", True),
        *_numbers(("fresh", "period", "wait P", "P 2nd")),
        Column("output", True),
    )
    tables = [Table(f"{state.knob}, time against the present value", columns, tuple(rows))]
    tables[0] = Table(tables[0].title, columns, tuple(rows), tuple(null_lines(snapshot.sweep_points)))
    if len(state.series) >= GRID_FROM:
        tables.append(_grid(snapshot))
    return Result(
        kind="sweep",
        head=f"{snapshot.prefix}sweep {state.knob} · {state.target} on {state.device}{series}",
        facts=(("setting", setting_words(state.knobs)),),
        tables=tuple(tables),
        sentence=(state.text or state.state) + snapshot.suffix,
    )


def _grid(snapshot: Snapshot) -> Table:
    """Two knobs as a table of TFLOP/s."""
    state = snapshot.sweep
    assert state is not None
    by_place = {(point.series, point.value): point.tflops for point in snapshot.sweep_points}
    rows = []
    for series in state.series:
        cells = [by_place.get((series, value)) for value in state.values]
        rows.append((series, *(f"{cell:.0f}" if cell else "-" for cell in cells)))
    return Table("TFLOP/s by both knobs", (Column(state.series_knob, True), *_numbers(state.values)), tuple(rows))


def ab_result(snapshot: Snapshot) -> Result | None:
    """Arms side by side, the interval after some of the blocks, the verdict."""
    state = snapshot.ab
    if state is None:
        return None
    arms = Table(
        "A and B", (Column("", True), Column("A", True), Column("B", True)), tuple(ab_rows(state, snapshot.ab_arms))
    )
    known = [(f"pair {p.number}", percent_range(p.low, p.high)) for p in milestones(snapshot.ab_pairs, MILESTONES)]
    if state.tier == 1:
        blocks = milestones(snapshot.ab_blocks, MILESTONES)
        known += [(f"block {block.number}", percent_range(block.low, block.high)) for block in blocks]
    rejected = sum(not block.accepted for block in snapshot.ab_blocks)
    pilots = sum(block.pilot for block in snapshot.ab_blocks)
    pairs = f"{len(snapshot.ab_pairs)} pairs of processes, " if snapshot.ab_pairs else ""
    counts = f"{pairs}{len(snapshot.ab_blocks)} blocks: {pilots} pilot, {rejected} rejected"
    course = Table("B against A, time", (Column("after", True), Column("change", True)), tuple(known), (counts,))
    below = [tier_text(state)]
    if state.tier == 1 and (clock := clock_text(snapshot.ab_blocks)):
        below.append(clock)
    return Result(
        kind="ab",
        head=f"{snapshot.prefix}A/B · {state.target} on {state.device} · {state.mode}, tier {state.tier}",
        facts=(("A", setting_words(state.a)), ("B", setting_words(state.b))),
        tables=(arms, course),
        sentence=(state.text or state.state) + snapshot.suffix,
        below=tuple(below),
    )


def sass_result(snapshot: Snapshot) -> Result | None:
    """Counts of the compiled code, a column a setting."""
    if not snapshot.sass:
        return None
    first = snapshot.sass[0]
    good = [report for report in snapshot.sass if not report.error]
    tables = []
    for name, rows in sass_rows(good):
        columns = (Column(name, True), *_numbers([report.setting for report in good]))
        tables.append(Table(name, columns, tuple((label, *cells) for _, label, cells in rows)))
    failed = tuple(f"{report.setting}: {report.error}" for report in snapshot.sass if report.error)
    difference = f"{good[1].difference}. " if len(good) > 1 else ""
    return Result(
        kind="sass",
        head=f"{snapshot.prefix}SASS · {first.target} {first.arch}",
        facts=tuple(first.versions.items()),
        tables=tuple(tables),
        sentence=(difference + good[-1].headline if good else "nothing could be read") + snapshot.suffix,
        below=("static counts are not time", *failed),
    )


def triage_result(snapshot: Snapshot) -> Result | None:
    """The six steps, the answer and the next experiments."""
    run = snapshot.triage
    if run is None:
        return None
    mode = f" · {run.knobs['pv_mode']} PV" if "pv_mode" in run.knobs else ""
    facts = [
        ("target", f"{run.target} on {run.device} ({run.arch})"),
        ("shape", f"{shape_text(run.shape)} {run.shape.dtype}"),
        ("setting", setting_words(run.knobs) or "defaults"),
    ]
    facts += [("versions", "; ".join(f"{n} {v}" for n, v in w.versions.items())) for w in snapshot.workers[:1]]
    if snapshot.clean_us:
        facts.append(("kernel", f"{METRICS['time'].text(snapshot)}, {METRICS['tflops'].text(snapshot)}"))
    return Result(
        kind="triage",
        head=f"{snapshot.prefix}triage · {run.target}{mode} · {shape_text(run.shape)} · {run.device} {run.arch}",
        facts=tuple(facts),
        steps=snapshot.triage_steps,
        sentence=(run.text or run.state) + snapshot.suffix,
        commands=tuple(finding.command for finding in next_experiments(snapshot.triage_steps)),
    )


def check_result(snapshot: Snapshot) -> Result | None:
    """A line a setting: flakes, against the baseline, error against FP32."""
    run = snapshot.check_run
    if run is None:
        return None
    columns = (
        Column("setting", True),
        *_numbers(("launches", "differ", "against baseline", "RMS error")),
        Column("verdict", True),
    )
    found = check_rows(snapshot.repeats)
    notes = tuple(f"{row.setting}: {note}" for row in found for note in row.notes)
    rows = tuple((row.setting, row.launches, row.differ, row.against, row.error, row.verdict) for row in found)
    return Result(
        kind="check",
        head=f"{snapshot.prefix}check · {run.target} on {run.device}, {shape_text(run.shape)}",
        tables=(Table("outputs", columns, rows, notes),),
        sentence=(run.text or run.state) + snapshot.suffix,
    )


_DESCRIBE: tuple[Callable[[Snapshot], Result | None], ...] = (
    bench_result,
    sweep_result,
    ab_result,
    sass_result,
    triage_result,
    check_result,
)
