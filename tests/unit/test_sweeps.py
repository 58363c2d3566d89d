"""Sweeps: the numbers of a point, the sentence, and a whole sweep by an engine on the simulated device."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fa4top.analysis.compare.sweeps import figures, measured_point, plateau, same_output, sweep_verdict
from fa4top.analysis.view.fold import Fold
from fa4top.analysis.view.tables import sweep_rows
from fa4top.engine.client import Control, connect, start_engine
from fa4top.engine.jobs.sweep import settings_of
from fa4top.orders.jobs import BenchJob, SweepJob, job_from_data, job_to_data
from fa4top.orders.order import Order
from fa4top.records import (
    CleanBurst,
    Geometry,
    Losses,
    Plan,
    RoleSample,
    SweepBlock,
    SweepPoint,
    SweepState,
    TraceSample,
)
from fa4top.session.reading import read_log
from fa4top.targets.fa4.family import SM100
from fa4top.targets.sim.description import DESCRIPTION as SIM
from fa4top.ui.screens.sweep import sweep_job
from tests.conftest import wait_until
from tests.inline import run_order
from tests.limits import PATIENCE_S

pytestmark = pytest.mark.usefixtures("copies")
Make = Callable[..., Order]
GEOMETRY = Geometry(
    grid_ctas=132,
    sm_count=132,
    ctas_per_sm=1,
    tiles=1536,
    steps_per_tile=64,
    steps_longest=768,
    persistent=True,
    flops=8.0e11,
)


def sample(period: float, wait: float, rest: float, time_us: float = 1020.0) -> TraceSample:
    def role(name: str, waits: dict[str, float]) -> RoleSample:
        return RoleSample(
            role=name,
            steps=64,
            tiles=1,
            period_median_cycles=period,
            period_p5_cycles=period,
            period_p95_cycles=period,
            busy_cycles=period,
            waits_cycles=waits,
            tile_overhead_cycles=None,
            role_cycles=None,
        )

    roles = [role("mma", {"wait P": wait, "wait P 2nd": rest}), role("softmax0", {})]
    return TraceSample(
        worker="w",
        plan_id=1,
        launch=1,
        generation=1,
        probe_set="coarse",
        detail=False,
        time_us=time_us,
        cta=0,
        sm=0,
        sm_clock_mhz=1500.0,
        cta_us=None,
        losses=Losses(recorded=1, dropped=0, unmatched=0, stale=0),
        roles=roles,
    )


def test_a_point_has_medians_and_their_spread() -> None:
    bursts = [CleanBurst(worker="w", plan_id=1, launch=3, times_us=[t, t, 5 * t]) for t in (1000.0, 990.0, 1010.0)]
    traced = [sample(2000.0, 200.0, 100.0), sample(2100.0, 210.0, 90.0), sample(1900.0, 190.0, 95.0)]
    found = figures(bursts, traced, GEOMETRY, SM100.role_map)
    empty = SweepPoint(sweep_id=1, plan_id=2, series="fp8", value="1/2", status="measured")
    point = measured_point(empty, found, "hash")
    assert point.time_us == 1000.0 and point.tflops == pytest.approx(800.0)
    assert point.tflops_p5 is not None and point.tflops_p95 is not None
    assert point.tflops_p5 < 800.0 < point.tflops_p95
    assert point.period_cycles == 2000.0 and found.waits_cycles == {"wait P": 200.0, "wait P 2nd": 95.0}
    assert point.wait_p_share == pytest.approx(0.1) and point.probe_effect == pytest.approx(0.02)
    assert point.clean_period_cycles == pytest.approx(1000.0 * 1500.0 / 768)


def point(value: str, tflops: float, output: str = "a", series: str = "", status: str = "measured") -> SweepPoint:
    return SweepPoint(
        sweep_id=1,
        plan_id=1,
        series=series,
        value=value,
        status=status,
        text="why",
        time_us=1.0,
        tflops=tflops if status == "measured" else None,
        output=output,
    )


def test_the_plateau_is_within_one_percent_of_the_best() -> None:
    points = [point("1/4", 500.0), point("1/2", 527.0), point("3/4", 530.0), point("7/8", 0.0, status="failed")]
    assert [p.value for p in plateau(points)] == ["1/2", "3/4"]
    assert [p.value for p in plateau([dataclasses.replace(points[0], plateau="in"), points[1]])] == ["1/4"]


def compared(value: str, change: float, word: str, near: str = "out", fresh: float | None = None) -> SweepPoint:
    made = dataclasses.replace(
        point(value, 530.0 / (1 + change / 100)),
        word=word,
        plateau=near,
        change_percent=change,
        low_percent=change - 0.2,
        high_percent=change + 0.2,
    )
    if fresh is None:
        return made
    return dataclasses.replace(
        made,
        fresh_percent=fresh,
        fresh_low_percent=fresh - 0.3,
        fresh_high_percent=fresh + 0.3,
        fresh_word="faster" if fresh < -0.3 else "undecided",
    )


BASE = dataclasses.replace(point("1/2", 530.0), plateau="out")


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([point("1/2", 1.0, status="failed")], "nothing was measured; failed: 1/2"),
        ([BASE, point("3/4", 540.0)], "no comparison yet; p_split 3/4 has the highest median, 540 TFLOP/s"),
        (
            [
                BASE,
                compared("3/4", -5.0, "faster", "in", -4.5),
                compared("7/8", -4.9, "faster", "in"),
                compared("1/4", 6.0, "slower"),
            ],
            "p_split 3/4 is best, 558 TFLOP/s: 4.50% faster than 1/2 (4.20 to 4.80, in fresh processes); "
            "within 1% of it: 7/8; 1/4 is 6.0% slower than 1/2",
        ),
        (
            [BASE, compared("3/4", -0.6, "faster", "in")],
            "0.60% faster than 1/2 (0.40 to 0.80); below the margin of 1%, 1/2 may stay",
        ),
        ([BASE, compared("3/4", -0.4, "faster", "in", -0.1)], "keep p_split 1/2 (530 TFLOP/s): nothing is faster"),
        (
            [dataclasses.replace(BASE, plateau="in"), compared("3/4", 0.1, "equivalent", "in")],
            "keep p_split 1/2 (530 TFLOP/s): nothing is faster for certain; p_split makes no difference above 1%",
        ),
        ([BASE, compared("3/4", 0.4, "undecided", "open")], "undecided: 3/4"),
        (
            # of three, 6 is above log(3 / (0.05 * 2)) = 4.1 with two such; 1 is not
            [
                BASE,
                dataclasses.replace(compared("3/4", 0.4, "undecided", "open"), log_e=6.0),
                dataclasses.replace(compared("7/8", 4.0, "slower"), log_e=9.0),
                dataclasses.replace(compared("1/4", 0.2, "undecided", "open"), log_e=1.0),
            ],
            "likely different, worth a sweep of its own (false discovery rate 5%): 3/4; undecided: 1/4",
        ),
    ],
)
def test_the_sentence_of_a_sweep(points: list[SweepPoint], says: str) -> None:
    assert says in sweep_verdict("p_split", points, {"": "1/2"}, 0.01)


def test_outputs_are_compared_within_a_series() -> None:
    points = [
        point("a", 1.0, "x", "bf16"),
        point("b", 1.0, "x", "bf16"),
        point("a", 1.0, "y", "fp8"),
        point("b", 1.0, "z", "fp8"),
    ]
    assert same_output(points) == {"bf16/a": True, "bf16/b": True, "fp8/a": True, "fp8/b": False}
    state = SweepState(
        sweep_id=1,
        target="t",
        device="d",
        arch="a",
        shape=SIM.default_shape,
        knobs={},
        knob="k",
        values=["a", "b", "c"],
        series_knob="m",
        series=["bf16", "fp8"],
        state="running",
    )
    rows = sweep_rows(state, points)
    assert [row.output for row in rows] == ["baseline", "bitwise", "", "baseline", "differs", ""]
    assert same_output(points, {"fp8": "b"})["fp8/a"] is False and same_output(points, {"fp8": "b"})["fp8/b"]
    assert rows[2].status == "waiting"


def test_jobs_survive_the_way_through_json() -> None:
    for job in (
        BenchJob(names=["ex2"], arch="sm_103a"),
        SweepJob(knob="k", values=["1", "2"], series_knob="m", series=["x"], rounds=5),
    ):
        assert job_from_data(job_to_data(job)) == job
    with pytest.raises(ValueError, match="no job 'dance'"):
        job_from_data({"kind": "dance"})
    with pytest.raises(ValueError, match="sweep"):
        job_from_data({"kind": "sweep", "knob": "k", "speed": 1})


def test_what_is_typed_becomes_a_sweep() -> None:
    assert sweep_job("p_split=1/2, 3/4,1/2", "") == SweepJob(knob="p_split", values=["1/2", "3/4"])
    assert sweep_job("a=1", "b=2,3").series == ["2", "3"]
    with pytest.raises(ValueError, match="write KNOB=VALUE"):
        sweep_job("p_split", "")


def test_dangerous_and_unknown_values_are_refused_before_the_start(sim_order: Make) -> None:
    order = sim_order()
    job = SweepJob(knob="p_split", values=["1/4", "1/2", "5/7"], series_knob="pv_mode", series=["fp8", "bf16"])
    problems = {(s.series, s.value): s.problem for s in settings_of(order, job)}
    assert "at least 2 K-tiles" in str(problems["fp8", "1/4"]) and problems["bf16", "1/4"] is None
    assert "not legal" in str(problems["fp8", "5/7"]) and problems["fp8", "1/2"] is None
    unsafe = settings_of(dataclasses.replace(order, unsafe=True), job)
    assert unsafe[0].problem is None


def run(order: Order) -> list[object]:
    return [record.body for record in run_order(order).records]


def run_with_processes(order: Order) -> list[object]:
    process = start_engine(order)
    control = connect(order.session_id, process)
    assert process.wait(PATIENCE_S) == 0
    control.close()
    return [record.body for record in read_log(Path(order.folder))]


def last_points(bodies: list[object]) -> dict[str, SweepPoint]:
    """The last word on every value, and on the null arm."""
    return {body.value: body for body in bodies if isinstance(body, SweepPoint)}


def test_a_sweep_compares_every_value_with_the_present_one(sim_order: Make) -> None:
    job = SweepJob(knob="p_split", values=["1/4", "1/2", "3/4", "7/8"], rounds=4, fresh=1, budget_s=600.0)
    bodies = run(sim_order(job=job_to_data(job)))
    points = last_points(bodies)
    assert {v: p.status for v, p in points.items()} == {
        "1/4": "refused",
        "1/2": "measured",
        "3/4": "measured",
        "7/8": "measured",
        "null arm": "null",
    }
    half, base, seven = points["1/2"], points["3/4"], points["7/8"]
    assert half.word == "slower" and half.low_percent and half.low_percent > 15, "the simulated fp8 handoff cost"
    assert half.plateau == "out" and half.dropped and base.plateau == seven.plateau == "in"
    assert seven.word == points["null arm"].word == "equivalent" and base.change_percent is None
    assert half.traces >= 4 and half.wait_p_rest_share and base.wait_p_rest_share
    assert half.wait_p_rest_share > base.wait_p_rest_share
    assert seven.fresh_word == "equivalent" and half.fresh_percent is None, "the best alone is measured again"
    states = [body for body in bodies if isinstance(body, SweepState)]
    assert (states[0].state, states[-1].state) == ("running", "done") and "keep p_split 3/4" in states[-1].text
    assert list(states[0].refused) == ["/1/4"] and states[-1].baselines == {"": "3/4"} and not states[-1].contaminated


def test_blocks_of_a_sweep_are_palindromes_in_processes_of_their_own(sim_order: Make) -> None:
    bodies = run(
        sim_order(job=job_to_data(SweepJob(knob="p_split", values=["1/2", "3/4"], rounds=3, fresh=1, budget_s=600.0)))
    )
    blocks = [body for body in bodies if isinstance(body, SweepBlock)]
    measure, fresh = ([b for b in blocks if b.phase == phase] for phase in ("measure", "fresh"))
    assert all(b.order == b.order[::-1] and len(b.slices_us) == len(b.order) for b in blocks)
    assert set(measure[0].order) == {"1/2", "3/4", "null arm"} and set(fresh[0].order) == {"1/2", "3/4"}
    assert len({tuple(b.order) for b in measure}) > 1, "the order is random"
    assert [b.pilot for b in measure[:5]] == [True] * 4 + [False]
    workers = {body.worker for body in bodies if isinstance(body, CleanBurst)}
    assert len(workers) == 5, "two values, the null arm, and both values again in fresh processes"


def test_a_value_that_fails_does_not_end_the_sweep(sim_order: Make) -> None:
    bodies = run_with_processes(
        sim_order(
            job=job_to_data(SweepJob(knob="pv_mode", values=["fp8", "bf16"], rounds=8, budget_s=600.0)),
            sim_fault="crash",
        )
    )
    points = last_points(bodies)
    assert points["fp8"].status == "failed" and "killed" in points["fp8"].text
    assert points["bf16"].status == "failed"
    assert [b.state for b in bodies if isinstance(b, SweepState)][-1] == "done"


def test_the_fold_keeps_the_sweep_across_plans(sim_order: Make) -> None:
    job = SweepJob(knob="p_split", values=["1/2", "3/4"], rounds=3, budget_s=600.0)
    order = sim_order(job=job_to_data(job))
    run(order)
    fold = Fold()
    for record in read_log(Path(order.folder)):
        fold.feed(record)
    snapshot = fold.snapshot()
    assert snapshot.sweep is not None and snapshot.sweep.state == "done"
    assert {p.value for p in snapshot.sweep_points} == {"1/2", "3/4", "null arm"} and snapshot.simulated


def live(order: Order) -> tuple[subprocess.Popen[bytes], Control, Callable[[], list[object]]]:
    """A live engine that shows numbers: its process, a viewer, and what reads the bodies of its log."""
    process = start_engine(order)
    control = connect(order.session_id, process)

    def bodies() -> list[object]:
        return [record.body for record in read_log(Path(order.folder))]

    wait_until(lambda: any(isinstance(body, TraceSample) for body in bodies()))
    return process, control, bodies


def test_a_live_session_sweeps_and_goes_on(sim_order: Make) -> None:
    process, control, bodies = live(sim_order(stay=True))
    refused = control.ask({"do": "job", "job": {"kind": "sweep", "knob": "p_split", "values": ["1/4"]}})
    assert not refused["ok"] and "K-tiles" in refused["error"]
    job = {"kind": "sweep", "knob": "p_split", "values": ["1/2", "3/4"], "rounds": 3, "fresh": 0}
    assert control.ask({"do": "job", "job": job})["ok"]

    def went_on() -> bool:
        found = bodies()
        done = [i for i, body in enumerate(found) if isinstance(body, SweepState) and body.state == "done"]
        return bool(done) and any(isinstance(body, TraceSample) for body in found[done[0] :])

    wait_until(went_on)
    control.ask({"do": "stop"})
    assert process.wait(PATIENCE_S) == 0
    plans = [body for body in bodies() if isinstance(body, Plan)]
    assert plans[-1].knobs["p_split"] == plans[0].knobs["p_split"], "the plan of before"


def test_a_sweep_that_is_cut_short_by_another_plan_does_not_begin_again(sim_order: Make) -> None:
    process, control, bodies = live(sim_order(stay=True))
    job = {"kind": "sweep", "knob": "p_split", "values": ["1/2", "5/8", "3/4"], "rounds": 400}
    assert control.ask({"do": "job", "job": job})["ok"]
    wait_until(lambda: any(isinstance(body, SweepState) for body in bodies()))
    assert control.ask({"do": "plan", "knobs": {"p_split": "7/8"}})["ok"]

    def new_plan_runs() -> bool:
        found = bodies()
        at = [i for i, body in enumerate(found) if isinstance(body, Plan) and body.knobs["p_split"] == "7/8"]
        return bool(at) and any(isinstance(body, TraceSample) for body in found[at[0] :])

    wait_until(new_plan_runs)
    control.ask({"do": "stop"})
    assert process.wait(PATIENCE_S) == 0
    states = [body.state for body in bodies() if isinstance(body, SweepState)]
    assert states[-1] == "stopped" and set(states) == {"running", "stopped"}


def test_a_bench_without_cupy_says_what_to_install(sim_order: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import sys

    order = sim_order(job=job_to_data(BenchJob(names=["ex2"], arch="sm_90a")), simulated=False, gpu_uuid="")
    probe = os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", "import cupy"])
    if probe == 0:
        pytest.skip("CuPy is here")
    process = start_engine(order)
    control = connect(order.session_id, process)
    assert process.wait(PATIENCE_S) == 4
    control.close()
    text = "".join(str(record.body) for record in read_log(Path(order.folder)))
    assert "missing package" in text and "cuda13" in text
