"""The last minute of a plan: its bursts and traced launches, and the figures that are made of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from fa4top.analysis.view.snapshot import Point, RoleView
from fa4top.records import CleanBurst, RoleSample, TraceSample

MAX_SAMPLES = 1200
POOLED = 160  # last traced launches whose periods are pooled for percentiles
BINNED = 64  # and those of the histogram
HISTOGRAM_VALUES = 512

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Burst:
    """One burst of the clean twin."""

    time_s: float
    median_us: float
    times_us: F64
    clock_mhz: float | None
    host_us: float | None


@dataclass(frozen=True)
class RoleAt:
    """One role of one traced launch."""

    time_s: float
    sample: RoleSample
    periods: F64


class Window:
    """Samples of the last minute, at most MAX_SAMPLES, in the order of their time."""

    def __init__(self) -> None:
        self.clean: deque[Burst] = deque(maxlen=MAX_SAMPLES)
        self.traced: deque[tuple[float, TraceSample]] = deque(maxlen=MAX_SAMPLES)
        self.roles: dict[str, deque[RoleAt]] = {}

    def add_clean(self, time_s: float, burst: CleanBurst) -> None:
        """One burst of the clean twin."""
        times = np.asarray(burst.times_us, dtype=np.float64)
        if len(times):
            median = float(np.median(times))
            self.clean.append(Burst(time_s, median, times, burst.sm_clock_mhz, burst.host_us))

    def add_traced(self, time_s: float, sample: TraceSample) -> None:
        """One traced launch."""
        self.traced.append((time_s, sample))
        for role in sample.roles:
            known = self.roles.setdefault(role.role, deque(maxlen=MAX_SAMPLES))
            known.append(RoleAt(time_s, role, np.asarray(role.periods_cycles, dtype=np.float64)))

    def prune(self, since_s: float) -> None:
        """Forget what is older."""
        while self.clean and self.clean[0].time_s < since_s:
            self.clean.popleft()
        while self.traced and self.traced[0][0] < since_s:
            self.traced.popleft()
        for known in self.roles.values():
            while known and known[0].time_s < since_s:
                known.popleft()


def role_names(traced: Sequence[TraceSample]) -> list[str]:
    """Roles of these launches, in the order of their first appearance."""
    return list(dict.fromkeys(role.role for sample in traced for role in sample.roles))


def _last(known: deque[RoleAt], count: int) -> Iterable[RoleAt]:
    return islice(known, max(0, len(known) - count), None)


def pooled(known: deque[RoleAt], count: int) -> F64:
    """Periods of the last launches of a role."""
    lists = [role.periods for role in _last(known, count)]
    return np.concatenate(lists) if lists else np.zeros(0)


def thinned(known: deque[RoleAt]) -> tuple[int, ...]:
    """Pooled periods, sorted, thinned to 512 values: enough for any pane's bins."""
    values = np.sort(pooled(known, BINNED))
    return tuple(int(x) for x in values[:: max(1, len(values) // HISTOGRAM_VALUES)])


def role_view(name: str, known: deque[RoleAt], recent_s: float) -> RoleView:
    """One role as a screen shows it."""
    with_period = [role for role in known if role.sample.period_median_cycles is not None]
    points = tuple(Point(role.time_s, role.sample.period_median_cycles or 0.0) for role in with_period)
    lately = [role.sample for role in with_period if role.time_s >= recent_s]
    periods = pooled(known, POOLED)
    p5, median, p95 = percentiles(periods, (0.05, 0.5, 0.95)) if len(periods) else (None,) * 3
    return RoleView(
        role=name,
        series=points,
        now_cycles=points[-1].value if points else None,
        median_cycles=median,
        p5_cycles=p5,
        p95_cycles=p95,
        busy_cycles=_mean([sample.busy_cycles for sample in lately]),
        waits_cycles=_mean_waits(lately),
        steps=sum(sample.steps for sample in lately),
        tile_overhead_cycles=_mean([sample.tile_overhead_cycles for sample in lately]),
    )


def percentiles(values: F64, shares: Sequence[float]) -> tuple[float, ...]:
    """With linear interpolation, as ``np.percentile`` has them; that one takes ten times as long on so few values."""
    ordered = np.sort(values)
    found = []
    for share in shares:
        place = share * (len(ordered) - 1)
        low = int(place)
        a, b, part = float(ordered[low]), float(ordered[min(low + 1, len(ordered) - 1)]), place - low
        found.append(a + (b - a) * part if part < 0.5 else b - (b - a) * (1.0 - part))
    return tuple(found)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def median(values: list[float | None]) -> float | None:
    """Of the values that are known."""
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _mean_waits(samples: list[RoleSample]) -> tuple[tuple[str, float], ...]:
    causes: dict[str, list[float]] = {}
    for sample in samples:
        for cause, cycles in sample.waits_cycles.items():
            causes.setdefault(cause, []).append(cycles)
    return tuple((cause, sum(values) / len(values)) for cause, values in causes.items())


def sm_periods(traced: Sequence[TraceSample]) -> tuple[tuple[int, float], ...]:
    """Mean period by SM, of the first role that knows one, over the window."""
    by_sm: dict[int, list[float]] = {}
    for sample in traced:
        period = next((r.period_median_cycles for r in sample.roles if r.period_median_cycles is not None), None)
        if period is not None and sample.sm >= 0:
            by_sm.setdefault(sample.sm, []).append(period)
    return tuple((sm, sum(periods) / len(periods)) for sm, periods in sorted(by_sm.items()))


def own(traced: Sequence[TraceSample]) -> tuple[tuple[str, float], ...]:
    """Medians of the target's own figures."""
    names = dict.fromkeys(name for sample in traced for name in sample.own)
    return tuple((n, float(np.median([s.own[n] for s in traced if n in s.own]))) for n in names)
