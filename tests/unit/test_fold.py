"""Folding: what viewers see, bounded memory, and the verdict's rules."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from fa4top.analysis import fold as fold_module
from fa4top.analysis.fold import Fold, Snapshot
from fa4top.analysis.verdict import verdict
from fa4top.records import (
    Body,
    Check,
    CleanBurst,
    Envelope,
    Fault,
    Geometry,
    GpuSample,
    Header,
    Losses,
    Notice,
    Plan,
    RoleSample,
    Shape,
    TraceSample,
    WorkerState,
)

GEOMETRY = Geometry(148, 148, 1, 768, 64, 384, True, 8.246e11)
PLAN = Plan(1, "fa4", "NVIDIA H200", "GPU-1", "sm_90a", Shape(1, 8192, 8192, 24, 24, 128, 128), {}, 0, False)


def role(name: str, period: float, waits: dict[str, float]) -> RoleSample:
    return RoleSample(name, 64, 1, period, period - 20, period + 30, period - sum(waits.values()), waits, 2000.0,
                      period * 64 + 2000, [int(period)] * 16)  # fmt: skip


def trace(roles: list[RoleSample], sm: int = 3, time_us: float = 365.0, losses: Losses | None = None) -> TraceSample:
    return TraceSample("t", 1, 1, 1, "coarse", False, time_us, 3, sm, 2000.0, 350.0, losses or Losses(100, 0, 0, 0),
                       roles)  # fmt: skip


class Story:
    """Feeds a fold, one record every 100 ms."""

    def __init__(self) -> None:
        self.fold = Fold()
        self.count = 0
        self.tell(PLAN, WorkerState("c", 1, "clean", "ready", 1, geometry=GEOMETRY))

    def tell(self, *bodies: Body) -> Story:
        for body in bodies:
            self.count += 1
            self.fold.feed(Envelope(body.kind, self.count, self.count, self.count * 100_000_000, "x", body))
        return self

    def rounds(self, count: int, roles: list[RoleSample], clean_us: float = 360.0, **kwargs: object) -> Story:
        for number in range(count):
            self.tell(CleanBurst("c", 1, number, [clean_us] * 3), trace(roles, **kwargs))  # type: ignore[arg-type]
        return self


SOFTMAX = role("softmax0", 1900.0, {"wait S": 100.0, "wait corr": 0.0})


def test_the_headline_comes_from_the_clean_twin() -> None:
    snapshot = Story().rounds(20, [SOFTMAX]).fold.snapshot()
    assert snapshot.clean_us == 360.0 and snapshot.tflops == pytest.approx(8.246e11 / 360e-6 / 1e12)
    assert snapshot.probe_effect == pytest.approx(365 / 360 - 1)
    assert snapshot.clean_period_cycles == pytest.approx(360 * 2000 / 384)
    view = snapshot.role("softmax0")
    assert view is not None and view.median_cycles == 1900 and dict(view.waits_cycles)["wait S"] == 100
    assert view.step_cycles == 1900 and not snapshot.simulated


def test_a_new_plan_forgets_the_numbers_of_the_old() -> None:
    story = Story().rounds(5, [SOFTMAX])
    story.tell(replace(PLAN, plan_id=2))
    snapshot = story.fold.snapshot()
    assert snapshot.clean_us is None and not snapshot.roles and snapshot.losses.launches == 0
    assert snapshot.plan is not None and snapshot.plan.plan_id == 2


def test_late_numbers_of_the_old_plan_are_not_the_new_plans() -> None:
    story = Story().rounds(2, [SOFTMAX])
    story.tell(replace(PLAN, plan_id=2))
    story.rounds(3, [SOFTMAX]).tell(WorkerState("c", 1, "clean", "stopped", 1))
    snapshot = story.fold.snapshot()
    assert snapshot.clean_us is None and not snapshot.roles and not snapshot.workers


def test_losses_add_up() -> None:
    snapshot = Story().rounds(4, [SOFTMAX], losses=Losses(10, 3, 2, 1)).fold.snapshot()
    assert (snapshot.losses.dropped, snapshot.losses.unmatched, snapshot.losses.stale) == (12, 8, 4)
    assert snapshot.losses.any


def test_simulated_is_known_from_header_or_plan() -> None:
    fold = Fold()
    fold.feed(Envelope("header", 1, 1, 1, "e", Header("i", 1, 0, "1", [], "3", "x", True)))
    assert fold.snapshot().simulated
    assert Story().tell(replace(PLAN, simulated=True)).fold.snapshot().simulated


def test_memory_is_bounded_over_a_long_session() -> None:
    story = Story()
    story.rounds(fold_module.MAX_SAMPLES + 200, [SOFTMAX])
    tracemalloc.start()
    story.tell(*[Notice("info", f"line {n}") for n in range(fold_module.MAX_LINES)])
    before, _ = tracemalloc.get_traced_memory()
    for number in range(12):  # as much again, several times over
        story.rounds(400, [replace(SOFTMAX, periods_cycles=list(range(number, number + 16)))])
        story.tell(*[Notice("info", f"more {n}") for n in range(400)], *[Fault("w", 1, "r", "t", "h")] * 20)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 4_000_000
    snapshot = story.fold.snapshot()
    assert len(snapshot.lines) == fold_module.MAX_LINES and len(snapshot.faults) == fold_module.MAX_FAULTS


def test_verdicts_name_the_limit() -> None:
    mma = role("mma", 1900.0, {"wait KV": 0.0, "wait P": 900.0, "wait P 2nd": 80.0})
    assert "softmax-bound" in Story().rounds(12, [mma, SOFTMAX]).fold.snapshot().verdict
    early = role("mma", 1900.0, {"wait KV": 0.0, "wait P": 300.0, "wait P 2nd": 700.0})
    assert "larger split" in Story().rounds(12, [early, SOFTMAX]).fold.snapshot().verdict
    turn = role("mma0", 2400.0, {"turn": 600.0, "wait K": 0.0})
    assert "25% of a step in turn" in Story().rounds(12, [turn]).fold.snapshot().verdict
    busy = role("mma0", 2400.0, {"turn": 20.0})
    assert "its own work" in Story().rounds(12, [busy]).fold.snapshot().verdict


def test_verdicts_say_what_stands_in_the_way() -> None:
    assert "starting" in Story().tell(WorkerState("c", 1, "clean", "compiling", 1, "compiling")).fold.snapshot().verdict
    failed = Check("c", 1, "clean", False, 24, 1.0, 1.0, 0.01, "x", "RMS error 1")
    story = Story().rounds(3, [SOFTMAX]).tell(failed)
    assert "FAILED" in story.fold.snapshot().verdict
    dear = Story().rounds(12, [SOFTMAX], time_us=400.0).fold.snapshot()
    assert "probes cost +11.1%" in dear.verdict
    gpu = GpuSample("G", "n", 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, [], [4242])
    assert "another process" in Story().rounds(12, [SOFTMAX]).tell(gpu).fold.snapshot().verdict
    rested = replace(gpu, foreign_pids=[], sm_clock_mhz=2400.0)
    assert "2000 MHz inside the kernel" in Story().rounds(12, [SOFTMAX]).tell(rested).fold.snapshot().verdict
    throttled = replace(gpu, foreign_pids=[], throttle=["SW power cap"])
    assert "SW power cap" in Story().rounds(12, [SOFTMAX]).tell(throttled).fold.snapshot().verdict
    assert verdict(Fold().snapshot()) == "waiting for the engine"


def test_a_slow_sm_is_named_and_a_healthy_chip_is_not_accused() -> None:
    story = Story()
    for sm in range(40):
        story.rounds(1, [SOFTMAX], sm=sm)
    assert "SM" not in story.fold.snapshot().verdict
    story.rounds(3, [replace(SOFTMAX, period_median_cycles=2200.0)], sm=17)
    assert "SM 17 is" in story.fold.snapshot().verdict


def test_unsafe_marks_what_follows() -> None:
    assert Snapshot(plan=replace(PLAN, unsafe=True)).label == "UNSAFE"
    assert Snapshot(plan=replace(PLAN, unsafe=True, simulated=True)).label == "SIMULATED UNSAFE"
    assert Snapshot(plan=PLAN).label == ""
