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
    """One burst of the clean twin. ``point`` is its median, us, for a graph."""

    point: Point
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
        self.points: dict[str, deque[Point]] = {}  # by role: median periods, for a graph
        self.sms: deque[tuple[float, int, float | None]] = deque(maxlen=MAX_SAMPLES)  # time, SM, the lead's period

    def add_clean(self, time_s: float, burst: CleanBurst) -> None:
        """One burst of the clean twin."""
        times = np.asarray(burst.times_us, dtype=np.float64)
        if len(times):
            median = percentiles(times, (0.5,))[0]
            self.clean.append(Burst(Point(time_s, median), times, burst.sm_clock_mhz, burst.host_us))

    def add_traced(self, time_s: float, sample: TraceSample) -> None:
        """One traced launch."""
        self.traced.append((time_s, sample))
        first: float | None = None
        for role in sample.roles:
            known = self.roles.setdefault(role.role, deque(maxlen=MAX_SAMPLES))
            period = role.period_median_cycles
            first = period if first is None else first
            known.append(RoleAt(time_s, role, np.asarray(role.periods_cycles, dtype=np.float64)))
            if period is not None:
                self.points.setdefault(role.role, deque(maxlen=MAX_SAMPLES)).append(Point(time_s, period))
        self.sms.append((time_s, sample.sm, first))

    def prune(self, since_s: float) -> None:
        """Forget what is older."""
        while self.clean and self.clean[0].point.time_s < since_s:
            self.clean.popleft()
        while self.traced and self.traced[0][0] < since_s:
            self.traced.popleft()
            self.sms.popleft()
        for known in self.roles.values():
            while known and known[0].time_s < since_s:
                known.popleft()
        for points in self.points.values():
            while points and points[0].time_s < since_s:
                points.popleft()


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
    # through a list: taking numbers out of an array one by one takes ten times as long
    return tuple(values[:: max(1, len(values) // HISTOGRAM_VALUES)].astype(np.int64).tolist())


def role_view(name: str, window: Window, recent_s: float) -> RoleView:
    """One role as a screen shows it."""
    known, points = window.roles[name], tuple(window.points.get(name, ()))
    lately = _lately(known, recent_s)
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


def _lately(known: deque[RoleAt], since_s: float) -> list[RoleSample]:
    """Samples with a period of the last seconds, oldest first."""
    found = []
    for role in reversed(known):
        if role.time_s < since_s:
            break
        if role.sample.period_median_cycles is not None:
            found.append(role.sample)
    return found[::-1]


def percentiles(values: F64, shares: Sequence[float]) -> tuple[float, ...]:
    """With linear interpolation, as ``np.percentile`` has them; that one takes ten times as long on so few values."""
    places = [share * (len(values) - 1) for share in shares]
    wanted = sorted({min(int(place) + more, len(values) - 1) for place in places for more in (0, 1)})
    ordered = np.partition(values, wanted)
    found = []
    for place in places:
        low = int(place)
        a, b, part = float(ordered[low]), float(ordered[min(low + 1, len(ordered) - 1)]), place - low
        found.append(a + (b - a) * part if part < 0.5 else b - (b - a) * (1.0 - part))
    return tuple(found)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def median(values: Iterable[float | None]) -> float | None:
    """Of the values that are known."""
    known = [value for value in values if value is not None]
    return percentiles(np.asarray(known, dtype=np.float64), (0.5,))[0] if known else None


def _mean_waits(samples: list[RoleSample]) -> tuple[tuple[str, float], ...]:
    causes: dict[str, list[float]] = {}
    for sample in samples:
        for cause, cycles in sample.waits_cycles.items():
            causes.setdefault(cause, []).append(cycles)
    return tuple((cause, sum(values) / len(values)) for cause, values in causes.items())


def sm_periods(sms: Iterable[tuple[float, int, float | None]]) -> tuple[tuple[int, float], ...]:
    """Mean period by SM, of the first role that knows one, over the window; ``sms`` are (time, SM, period)."""
    by_sm: dict[int, list[float]] = {}
    for _, sm, period in sms:
        if period is not None and sm >= 0:
            by_sm.setdefault(sm, []).append(period)
    return tuple((sm, sum(periods) / len(periods)) for sm, periods in sorted(by_sm.items()))


def own(traced: Sequence[TraceSample]) -> tuple[tuple[str, float], ...]:
    """Medians of the target's own figures."""
    names = dict.fromkeys(name for sample in traced if sample.own for name in sample.own)
    return tuple((n, median(s.own.get(n) for s in traced) or 0.0) for n in names)
