"""All metrics, one row each: what it is, its unit, how it reads, and where it comes from in each kind of record.

Screens, text, exports and help read this table. A record type that a metric can be read from is named in ``of``; a new
metric is one row here (and, where nobody has it yet, a field of a record).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fa4top.analysis.view.snapshot import RoleView, Snapshot
from fa4top.records import AbArm, BenchResult, CleanBurst, GpuSample, RoleSample, SweepPoint, TraceSample

Getter = Callable[[Any], "float | None"]
UNKNOWN = "?"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric.

    Attributes:
        unit: of the value; ``shown`` is (unit, factor) where people read it in another.
        places: digits after the point as shown; ``percent``: a share, shown in percent; ``signed``: with its sign.
        clean: does it come from the clean twin? None: from neither (NVML).
        of: by type of record: the value, None where it is not known.
    """

    name: str
    unit: str
    help: str
    of: Mapping[type[Any], Getter]
    shown: tuple[str, float] | None = None
    places: int = 0
    percent: bool = False
    signed: bool = False
    clean: bool | None = None

    def value(self, record: Any) -> float | None:
        """The figure in ``unit``; None where it is not known."""
        return self.of[type(record)](record)

    def number(self, record: Any) -> str:
        """The figure as it is shown, without its unit."""
        value = self.value(record)
        if value is None:
            return UNKNOWN
        sign = "+" if self.signed else ""
        if self.percent:
            return f"{value:{sign}.{self.places}%}"
        return f"{value * (self.shown[1] if self.shown else 1.0):{sign}.{self.places}f}"

    @property
    def shown_unit(self) -> str:
        """The unit as it is shown; '' for a share, whose number carries the sign."""
        return "" if self.percent else self.shown[0] if self.shown else self.unit

    @property
    def heading(self) -> str:
        """Name and unit, for the head of a column or a row."""
        return f"{self.name}, {self.shown_unit}" if self.shown_unit and self.shown_unit not in self.name else self.name

    def text(self, record: Any) -> str:
        """The figure with its unit."""
        number = self.number(record)
        return number if number == UNKNOWN or not self.shown_unit else f"{number} {self.shown_unit}"


def _median(values: list[float]) -> float | None:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None


METRICS: dict[str, Metric] = {
    "time": Metric(
        name="time",
        unit="us",
        shown=("ms", 1e-3),
        places=4,
        clean=True,
        help="median time of the clean twin, a process whose kernel has no probes",
        of={
            Snapshot: lambda s: s.clean_us,
            AbArm: lambda a: a.time_us,
            SweepPoint: lambda p: p.time_us,
            CleanBurst: lambda b: _median(b.times_us),
        },
    ),
    "traced time": Metric(
        name="traced time",
        unit="us",
        shown=("ms", 1e-3),
        places=4,
        clean=False,
        help="median time of the traced twin; never a headline",
        of={Snapshot: lambda s: s.traced_us, TraceSample: lambda t: t.time_us},
    ),
    "time p95": Metric(
        name="p95",
        unit="us",
        shown=("ms", 1e-3),
        places=4,
        clean=True,
        help="95th percentile of the clean launches of the last minute",
        of={Snapshot: lambda s: s.clean_p95_us},
    ),
    "tflops": Metric(
        name="TFLOP/s",
        unit="TFLOP/s",
        clean=True,
        help="2 b h sq sk (d + dv), half for causal, over the clean time",
        of={Snapshot: lambda s: s.tflops, AbArm: lambda a: a.tflops, SweepPoint: lambda p: p.tflops},
    ),
    "period": Metric(
        name="period",
        unit="cycles",
        clean=False,
        help="gap between consecutive step begins (one KV iteration) of a role, in cycles of its own SM; median",
        of={
            RoleView: lambda r: r.median_cycles,
            RoleSample: lambda r: r.period_median_cycles,
            AbArm: lambda a: a.period_cycles,
            SweepPoint: lambda p: p.period_cycles,
        },
    ),
    "period p5": Metric(
        name="p5",
        unit="cycles",
        clean=False,
        help="5th percentile of the periods",
        of={RoleView: lambda r: r.p5_cycles, RoleSample: lambda r: r.period_p5_cycles},
    ),
    "period p95": Metric(
        name="p95",
        unit="cycles",
        clean=False,
        help="95th percentile of the periods",
        of={RoleView: lambda r: r.p95_cycles, RoleSample: lambda r: r.period_p95_cycles},
    ),
    "busy": Metric(
        name="busy",
        unit="cycles",
        clean=False,
        help="a step less its waits",
        of={RoleView: lambda r: r.busy_cycles, RoleSample: lambda r: r.busy_cycles},
    ),
    "wait P": Metric(
        name="wait P",
        unit="share",
        percent=True,
        places=1,
        clean=False,
        help="part of the MMA role's step that waits for the first part of P",
        of={SweepPoint: lambda p: p.wait_p_share},
    ),
    "wait P 2nd": Metric(
        name="P 2nd",
        unit="share",
        percent=True,
        places=1,
        clean=False,
        help="part of the MMA role's step that waits, inside PV, for the rest of P",
        of={SweepPoint: lambda p: p.wait_p_rest_share},
    ),
    "clean period": Metric(
        name="clean period",
        unit="cycles",
        clean=True,
        help="clean time x SM clock / steps of the busiest SM; contains prologues, epilogues and the last wave",
        of={Snapshot: lambda s: s.clean_period_cycles, SweepPoint: lambda p: p.clean_period_cycles},
    ),
    "probe effect": Metric(
        name="probe effect",
        unit="share",
        percent=True,
        places=1,
        signed=True,
        help="traced twin's time over the clean twin's, measured in the same minute, less 1",
        of={Snapshot: lambda s: s.probe_effect, AbArm: lambda a: a.probe_effect, SweepPoint: lambda p: p.probe_effect},
    ),
    "SM clock": Metric(
        name="SM clock",
        unit="MHz",
        help="of the launches themselves, from the kernel's own anchors or from stamps around the burst",
        of={
            Snapshot: lambda s: s.sm_clock_mhz,
            AbArm: lambda a: a.sm_clock_mhz,
            SweepPoint: lambda p: p.sm_clock_mhz,
            CleanBurst: lambda b: b.sm_clock_mhz,
            TraceSample: lambda t: t.sm_clock_mhz,
        },
    ),
    "SM clock, NVML": Metric(
        name="SM clock, NVML",
        unit="MHz",
        help="between bursts, when it has recovered: believe the kernel's own",
        of={GpuSample: lambda g: g.sm_clock_mhz},
    ),
    "power": Metric(
        name="power",
        unit="W",
        help="NVML's instantaneous reading; of an A/B's arms in sustained mode only, bursts are too short for it",
        of={GpuSample: lambda g: g.power_w, AbArm: lambda a: a.power_w},
    ),
    "temperature": Metric(
        name="temperature", unit="C", help="of the GPU, by NVML", of={GpuSample: lambda g: g.temperature_c}
    ),
    "figure": Metric(
        name="figure",
        unit="",
        places=1,
        help="what a microbenchmark came to, in its own unit: best of the thread counts",
        of={BenchResult: lambda b: b.value},
    ),
    "share": Metric(
        name="share",
        unit="share",
        percent=True,
        places=1,
        help="of the unit's limit; for mixes, of what they would reach if every unit ran as fast as alone",
        of={BenchResult: lambda b: b.limit_share},
    ),
}


def metrics_of(kind: type[Any]) -> list[Metric]:
    """Metrics that can be read from a type of record, in the table's order."""
    return [metric for metric in METRICS.values() if kind in metric.of]
