"""Bench results and sweeps as rows of text cells: what the screens and the CLI both show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import expm1
from typing import TypeVar

from fa4top.analysis.compare.evidence import hodges_lehmann
from fa4top.analysis.compare.sweeps import plateau, same_output
from fa4top.analysis.compare.verdict import clock_sentence
from fa4top.analysis.view.metrics import METRICS, metrics_of
from fa4top.records import AbArm, AbBlock, AbPair, AbState, BenchResult, Repeats, SweepPoint, SweepState

AFTER_WAITS = ("SM clock", "power", "probe effect")
RECENT_BLOCKS = 300  # enough for a median, and quick
STATUS_WORDS = {
    "measured": "",
    "compiled": "compiled, not run",
    "refused": "REFUSED",
    "lacking": "not on this chip",
    "failed": "FAILED",
}


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """One microbenchmark. ``note`` says what stands in place of a figure, or behind it."""

    name: str
    value: str
    unit: str
    limit_share: float | None
    limit: str
    published: str
    spread: str
    threads: str
    note: str
    status: str


def bench_row(result: BenchResult) -> BenchRow:
    """The cells of one result. A mix shows its share of perfect overlap in place of a limit."""
    value = f"{result.value:.1f}" if result.value is not None else ""
    share, limit = result.limit_share, f"{result.limit:g}" if result.limit else ""
    note = STATUS_WORDS.get(result.status, result.status)
    if result.status in ("refused", "failed"):
        note += f": {result.text}"
    if result.group == "mix" and result.status == "measured":
        share = result.value / result.perfect if result.perfect and result.value else None
        limit = f"{result.perfect:.1f}" if result.perfect else ""
        note = "of perfect overlap" if share is not None else ""
    if result.group == "handoff":
        share, limit = None, ""  # a floor of plausibility, not a limit to come near to
    spread = ""
    if result.value and result.p5 is not None and result.p95 is not None:
        spread = f"±{max(result.p95 - result.value, result.value - result.p5) / result.value:.1%}"
    published = f"{result.published:g}" if result.published is not None else ""
    threads = str(result.threads) if result.threads else ""
    return BenchRow(
        name=result.name,
        value=value,
        unit=result.unit,
        limit_share=share,
        limit=limit,
        published=published,
        spread=spread,
        threads=threads,
        note=note,
        status=result.status,
    )


def bench_title(results: Sequence[BenchResult]) -> str:
    """Chip, architecture, and whether anything was run."""
    if not results:
        return "no microbenchmark yet"
    last = results[-1]
    ran = sum(r.status == "measured" for r in results)
    where = last.device if last.device != last.arch else f"{last.arch}, compiled, not run"
    counts = [f"{ran} measured"] if ran else []
    for status, word in (
        ("compiled", "compiled"),
        ("refused", "refused"),
        ("failed", "failed"),
        ("lacking", "lacking"),
    ):
        if number := sum(r.status == status for r in results):
            counts.append(f"{number} {word}")
    compiler = next((r.compiler for r in results if r.compiler), "")
    return f"{where} · {', '.join(counts)} of {last.total} · {compiler}".rstrip(" ·")


def bench_verdict(results: Sequence[BenchResult]) -> str:
    """What the table says about a softmax step."""
    by_name = {result.name: result for result in results}
    refused = [r.name for r in results if r.status in ("refused", "failed")]
    if refused:
        return (
            f"not believed: {', '.join(refused[:3])}{' ...' if len(refused) > 3 else ''}; the reasons are in the table"
        )
    ex2 = by_name.get("ex2.approx.ftz.f32")
    step = by_name.get("softmax step, bf16 P")
    if ex2 is None or ex2.value is None:
        compiled = sum(r.status == "compiled" for r in results)
        return f"{compiled} kernels compiled and their SASS is what was meant; nothing was run" if compiled else ""
    cycles = 64 * 128 / ex2.value
    text = f"ex2 runs at {ex2.value:.1f} per clock and SM: a softmax step of 64x128 takes {cycles:.0f} cycles of it"
    if step is not None and step.value and step.perfect:
        text += f"; the full step's mix reaches {step.value / step.perfect:.0%} of perfect overlap"
    return text


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """One setting of a sweep, as cells. ``against`` is the change of time, negative is faster; ``plateau``: a word to
    stand behind it, or ''; ``verdict``: the word alone; ``differs``: the output is not the baseline's."""

    series: str
    value: str
    tflops: str = ""
    spread: str = ""
    against: str = ""
    interval: str = ""
    word: str = ""
    verdict: str = ""
    differs: bool = False
    fresh: str = ""
    period: str = ""
    wait_p: str = ""
    wait_rest: str = ""
    output: str = ""
    plateau: str = ""
    status: str = "waiting"
    note: str = ""


def sweep_rows(state: SweepState, points: Sequence[SweepPoint]) -> list[SweepRow]:
    """All settings in the order of the sweep's plan, with those still to come."""
    by_place = {(point.series, point.value): point for point in points}
    equal = same_output(points, state.baselines)
    rows = []
    for series in state.series or [""]:
        own = [by_place[series, value] for value in state.values if (series, value) in by_place]
        near = plateau(own)
        measured = [point for point in own if point.status == "measured"]
        first = next((p for p in measured if p.value == state.baselines.get(series)), None) or next(
            iter(measured), None
        )
        for value in state.values:
            point = by_place.get((series, value))
            rows.append(_sweep_row(series, value, point, first, point in near, equal))
    return rows


@dataclass(frozen=True)
class CheckRow:
    """One setting's outputs, as cells. ``notes`` say where outputs differ."""

    setting: str
    launches: str
    differ: str
    against: str
    error: str
    verdict: str
    passed: bool
    notes: tuple[str, ...]


def check_rows(found: Sequence[Repeats]) -> list[CheckRow]:
    """All settings in the order that they were launched."""
    rows = []
    for each in found:
        error = f"{each.rms_error:.2e}" if each.rms_error is not None else "?"
        places = (("between launches", each.where), ("from the baseline", each.differs_where))
        notes = tuple(f"differs {what}: {where}" for what, where in places if where)
        against = each.against or "is it"
        counts = (str(each.times), str(each.flaky_launches))
        rows.append(CheckRow(each.setting, *counts, against, error, each.verdict, each.passed, notes))
    return rows


def tier_text(state: AbState) -> str:
    """How far the verdict reaches."""
    reach = "replicated over fresh pairs of processes" if state.tier == 2 else "this pair of processes only"
    pace = "at power equilibrium" if state.mode == "sustained" else "bursts of at most 5 ms"
    gap = ", ".join(f"{arm} {percent:+.1f}%" for arm, percent in state.l2_gap_percent.items())
    cold = f" (cold against warm: {gap})" if gap else ""
    return f"{reach} (tier {state.tier}), {pace}, L2 {state.l2}{cold}; at any time {1 - state.alpha:.0%}"


def null_lines(points: Sequence[SweepPoint]) -> list[str]:
    """What the null arms came out as."""
    return [
        f"{point.series} null arm (the baseline again): {point.verdict}".strip()
        for point in points
        if point.status == "null"
    ]


def _sweep_row(
    series: str, value: str, point: SweepPoint | None, first: SweepPoint | None, near: bool, equal: dict[str, bool]
) -> SweepRow:
    if point is None:
        return SweepRow(series=series, value=value)
    if point.status != "measured" or point.tflops is None:
        return SweepRow(series=series, value=value, status=point.status, note=point.text)
    against, interval = "baseline", ""
    if point is not first and point.change_percent is not None:
        against = f"{point.change_percent:+.2f}%"
        interval = percent_span(point.low_percent, point.high_percent)
    elif point is not first and first is not None and first.tflops:
        against = f"{first.tflops / point.tflops - 1:+.1%}"
    spread = ""
    if point.tflops_p5 is not None and point.tflops_p95 is not None:
        spread = f"{point.tflops_p5:.0f} to {point.tflops_p95:.0f}"
    same = "baseline" if point is first else ("bitwise" if equal.get(f"{series}/{value}") else "differs")
    note = "plateau" if near else "plateau?" if point.plateau == "open" and not point.dropped else ""
    return SweepRow(
        series=series,
        value=value,
        tflops=METRICS["tflops"].number(point),
        spread=spread,
        against=against,
        interval=interval,
        word=point.word + (" (dropped)" if point.dropped else "") if point is not first else "",
        verdict=point.word if point is not first else "",
        differs=point is not first and not equal.get(f"{series}/{value}"),
        fresh=f"{point.fresh_percent:+.2f}%" if point.fresh_percent is not None else "",
        period=METRICS["period"].number(point),
        wait_p=METRICS["wait P"].number(point),
        wait_rest=METRICS["wait P 2nd"].number(point),
        output=same,
        plateau=note,
        status=point.status,
    )


def percent_span(low: float | None, high: float | None) -> str:
    """An interval in percent; one that spans a factor of two says nothing."""
    if low is None or high is None or high - low > 100.0:
        return "?"
    return f"{low:+.2f} to {high:+.2f}"


def percent_range(low: float | None, high: float | None) -> str:
    """Log ratios as changes in percent; beyond a factor of two nothing is known."""
    if low is None or high is None:
        return "?"
    if low > high:
        return "no single ratio fits"
    if high - low > 1.3:
        return "anything"
    return f"{100 * expm1(low):+.2f}% to {100 * expm1(high):+.2f}%"


Unit = TypeVar("Unit", AbBlock, AbPair)


def milestones(blocks: Sequence[Unit], count: int) -> list[Unit]:
    """Up to ``count`` blocks (or pairs) whose intervals say something; dense at first, where they shrink."""
    known = [block for block in blocks if block.low is not None and block.high is not None]
    telling = [block for block in known if (block.high or 0.0) - (block.low or 0.0) < 1.3] or known[-1:]
    if not telling:
        return []
    last = len(telling) - 1
    places = sorted({round((last + 1) ** (i / max(1, count - 1))) - 1 for i in range(count)} | {last})
    return [telling[place] for place in places[-count:]]


def clock_text(blocks: Sequence[AbBlock]) -> str:
    """What B's ratio is in cycles, and how far the clock makes the difference; '' where clocks are not known."""
    counted = [block for block in blocks if block.accepted and not block.pilot]
    cycles = [block.log_ratio_cycles for block in counted if block.log_ratio_cycles is not None]
    last = counted[-1] if counted else None
    if last is None or len(cycles) != len(counted) or last.estimate is None or last.low is None or last.high is None:
        return ""
    return clock_sentence(last.estimate, hodges_lehmann(cycles[-RECENT_BLOCKS:]), max(0.0, last.high - last.low) / 2.0)


def ab_rows(state: AbState, arms: Sequence[AbArm]) -> list[tuple[str, str, str]]:
    """(what, arm A, arm B) line by line; what differs in the settings comes first."""
    differing = [name for name in {**state.a, **state.b} if state.a.get(name) != state.b.get(name)]
    rows = [(f"knob {name}", state.a.get(name, "-"), state.b.get(name, "-")) for name in differing] or [
        ("setting", "the same", "the same")
    ]
    by_name = {arm.arm: arm for arm in arms}
    a, b = by_name.get("A"), by_name.get("B")

    def line(what: str, text: Callable[[AbArm], str]) -> None:
        rows.append((what, text(a) if a else "?", text(b) if b else "?"))

    known = metrics_of(AbArm)
    for metric in (m for m in known if m.name not in AFTER_WAITS):
        line(metric.heading, metric.number)
    for cause in sorted({cause for arm in arms for cause, cycles in arm.waits_cycles.items() if cycles > 0.5}):
        line(f"mma {cause}", lambda arm, cause=cause: _wait(arm, cause))  # type: ignore[misc]
    for metric in (m for m in known if m.name in AFTER_WAITS):
        if metric.name != "power" or any(arm.power_w is not None for arm in arms):
            line(metric.heading, metric.number)
    line("output", lambda arm: arm.output_text)
    return rows


def _wait(arm: AbArm, cause: str) -> str:
    cycles = arm.waits_cycles.get(cause, 0.0)
    share = f"  {cycles / arm.step_cycles:.0%}" if arm.step_cycles else ""
    return f"{cycles:.0f}{share}"
