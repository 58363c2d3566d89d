"""Folding: what viewers see, bounded memory, and the verdict's rules."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4top.analysis.view import fold as fold_module
from fa4top.analysis.view.fold import Fold, Totals
from fa4top.analysis.view.snapshot import LossTotals, Snapshot
from fa4top.analysis.view.window import MAX_SAMPLES, percentiles
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
from fa4top.session.reading import read_log
from tests.conftest import ROOT

GEOMETRY = Geometry(
    grid_ctas=148,
    sm_count=148,
    ctas_per_sm=1,
    tiles=768,
    steps_per_tile=64,
    steps_longest=384,
    persistent=True,
    flops=8.246e11,
)
PLAN = Plan(
    plan_id=1,
    target="fa4",
    device="NVIDIA H200",
    gpu_uuid="GPU-1",
    arch="sm_90a",
    shape=Shape(batch=1, seqlen_q=8192, seqlen_k=8192, heads=24, kv_heads=24, head_dim=128, head_dim_v=128),
    knobs={},
    seed=0,
    simulated=False,
)


def role(name: str, period: float, waits: dict[str, float]) -> RoleSample:
    return RoleSample(
        role=name,
        steps=64,
        tiles=1,
        period_median_cycles=period,
        period_p5_cycles=period - 20,
        period_p95_cycles=period + 30,
        busy_cycles=period - sum(waits.values()),
        waits_cycles=waits,
        tile_overhead_cycles=2000.0,
        role_cycles=period * 64 + 2000,
        periods_cycles=[int(period)] * 16,
    )


def trace(roles: list[RoleSample], sm: int = 3, time_us: float = 365.0, losses: Losses | None = None) -> TraceSample:
    return TraceSample(
        worker="t",
        plan_id=1,
        launch=1,
        generation=1,
        probe_set="coarse",
        detail=False,
        time_us=time_us,
        cta=3,
        sm=sm,
        sm_clock_mhz=2000.0,
        cta_us=350.0,
        losses=losses or Losses(recorded=100, dropped=0, unmatched=0, stale=0),
        roles=roles,
    )


class Story:
    """Feeds a fold, one record every 100 ms."""

    def __init__(self) -> None:
        self.fold = Fold()
        self.count = 0
        self.tell(PLAN, WorkerState(worker="c", plan_id=1, twin="clean", state="ready", pid=1, geometry=GEOMETRY))

    def tell(self, *bodies: Body) -> Story:
        for body in bodies:
            self.count += 1
            self.fold.feed(
                Envelope(
                    kind=body.kind,
                    seq=self.count,
                    wall_ns=self.count,
                    mono_ns=self.count * 100_000_000,
                    source="x",
                    body=body,
                )
            )
        return self

    def rounds(self, count: int, roles: list[RoleSample], clean_us: float = 360.0, **kwargs: object) -> Story:
        for number in range(count):
            self.tell(CleanBurst(worker="c", plan_id=1, launch=number, times_us=[clean_us] * 3), trace(roles, **kwargs))  # type: ignore[arg-type]
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
    story.rounds(3, [SOFTMAX]).tell(WorkerState(worker="c", plan_id=1, twin="clean", state="stopped", pid=1))
    snapshot = story.fold.snapshot()
    assert snapshot.clean_us is None and not snapshot.roles and not snapshot.workers


def test_losses_add_up() -> None:
    snapshot = Story().rounds(4, [SOFTMAX], losses=Losses(recorded=10, dropped=3, unmatched=2, stale=1)).fold.snapshot()
    assert (snapshot.losses.dropped, snapshot.losses.unmatched, snapshot.losses.stale) == (12, 8, 4)
    assert snapshot.losses.any


def test_simulated_is_known_from_header_or_plan() -> None:
    fold = Fold()
    fold.feed(
        Envelope(
            kind="header",
            seq=1,
            wall_ns=1,
            mono_ns=1,
            source="e",
            body=Header(
                session_id="i",
                schema_major=1,
                schema_minor=0,
                fa4top_version="1",
                argv=[],
                python="3",
                platform="x",
                simulated=True,
            ),
        )
    )
    assert fold.snapshot().simulated
    assert Story().tell(replace(PLAN, simulated=True)).fold.snapshot().simulated


def test_memory_is_bounded_over_a_long_session() -> None:
    story = Story()
    story.rounds(MAX_SAMPLES + 200, [SOFTMAX])
    tracemalloc.start()
    story.tell(*[Notice("info", f"line {n}") for n in range(fold_module.MAX_LINES)])
    before, _ = tracemalloc.get_traced_memory()
    for number in range(12):  # as much again, several times over
        story.rounds(400, [replace(SOFTMAX, periods_cycles=list(range(number, number + 16)))])
        story.tell(
            *[Notice("info", f"more {n}") for n in range(400)],
            *[Fault(worker="w", plan_id=1, reason="r", text="t", hint="h")] * 20,
        )
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 4_000_000
    snapshot = story.fold.snapshot()
    assert len(snapshot.lines) == fold_module.MAX_LINES and len(snapshot.faults) == fold_module.MAX_FAULTS


def test_verdicts_name_the_limit() -> None:
    mma = role("mma", 1900.0, {"wait KV": 0.0, "wait P": 900.0, "wait P 2nd": 80.0})
    assert "softmax-bound" in Story().rounds(12, [mma, SOFTMAX]).fold.snapshot().verdict.text
    early = role("mma", 1900.0, {"wait KV": 0.0, "wait P": 300.0, "wait P 2nd": 700.0})
    assert "larger split" in Story().rounds(12, [early, SOFTMAX]).fold.snapshot().verdict.text
    turn = role("mma0", 2400.0, {"turn": 600.0, "wait K": 0.0})
    assert "25% of a step in turn" in Story().rounds(12, [turn]).fold.snapshot().verdict.text
    busy = role("mma0", 2400.0, {"turn": 20.0})
    assert "its own work" in Story().rounds(12, [busy]).fold.snapshot().verdict.text


def test_verdicts_say_what_stands_in_the_way() -> None:
    assert (
        "starting"
        in Story()
        .tell(WorkerState(worker="c", plan_id=1, twin="clean", state="compiling", pid=1, text="compiling"))
        .fold.snapshot()
        .verdict.text
    )
    failed = Check(
        worker="c",
        plan_id=1,
        twin="clean",
        passed=False,
        rows=24,
        max_error=1.0,
        rms_error=1.0,
        limit=0.01,
        output_hash="x",
        text="RMS error 1",
    )
    story = Story().rounds(3, [SOFTMAX]).tell(failed)
    assert "FAILED" in story.fold.snapshot().verdict.text and story.fold.snapshot().verdict.bad
    dear = Story().rounds(12, [SOFTMAX], time_us=400.0).fold.snapshot()
    assert "probes cost +11.1%" in dear.verdict.text
    gpu = GpuSample(
        gpu_uuid="G",
        name="n",
        sm_clock_mhz=1.0,
        mem_clock_mhz=1.0,
        power_w=1.0,
        power_limit_w=1.0,
        temperature_c=1.0,
        memory_used_mib=1.0,
        memory_total_mib=1.0,
        throttle=[],
        foreign_pids=[4242],
    )
    assert "another process" in Story().rounds(12, [SOFTMAX]).tell(gpu).fold.snapshot().verdict.text
    rested = replace(gpu, foreign_pids=[], sm_clock_mhz=2400.0)
    assert "2000 MHz inside the kernel" in Story().rounds(12, [SOFTMAX]).tell(rested).fold.snapshot().verdict.text
    throttled = replace(gpu, foreign_pids=[], throttle=["SW power cap"])
    assert "SW power cap" in Story().rounds(12, [SOFTMAX]).tell(throttled).fold.snapshot().verdict.text
    assert Fold().snapshot().verdict.text == "waiting for the engine"


def test_a_slow_sm_is_named_and_a_healthy_chip_is_not_accused() -> None:
    story = Story()
    for sm in range(40):
        story.rounds(1, [SOFTMAX], sm=sm)
    assert "SM" not in story.fold.snapshot().verdict.text
    story.rounds(3, [replace(SOFTMAX, period_median_cycles=2200.0)], sm=17)
    assert "SM 17 is" in story.fold.snapshot().verdict.text


def test_unsafe_marks_what_follows() -> None:
    assert Snapshot(plan=replace(PLAN, unsafe=True)).label == "UNSAFE"
    assert Snapshot(plan=replace(PLAN, unsafe=True, simulated=True)).label == "SIMULATED UNSAFE"
    assert Snapshot(plan=PLAN).label == ""


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), share=st.floats(0.0, 1.0))
def test_percentiles_are_numpys(values: list[float], share: float) -> None:
    found = percentiles(np.array(values), (share, 0.5))
    assert found == pytest.approx(np.percentile(values, (100.0 * share, 50.0)), rel=1e-9, abs=1e-6)


def test_totals_hold_what_a_fold_counts_beyond_its_window() -> None:
    fold = Fold(Totals(records=10, plan_id=1, clean_launches=7, losses=LossTotals(launches=2, dropped=1)))
    assert fold.totals() == Totals(records=10, plan_id=-1), "nothing is claimed of a plan that was not seen"
    path = ROOT / "examples" / "h200-live.jsonl.gz"
    whole = Fold()
    for record in read_log(path):
        whole.feed(record)
    found, end = whole.totals(), whole.snapshot()
    assert found.records == end.records > 100 and found.plan_id == (end.plan.plan_id if end.plan else 0)
    assert found.clean_launches == end.clean_launches > 0 and found.losses == end.losses
    swept = Fold()
    for record in read_log(ROOT / "examples" / "h200-split-sweep.jsonl.gz"):
        swept.feed(record)
    state = swept.snapshot()
    assert state.sweep is not None
    assert swept.totals().sweep_blocks == ((state.sweep.sweep_id, state.sweep_blocks, state.sweep_rejected),)
