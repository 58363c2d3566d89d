"""A/B: order, ratio and gate of blocks; whole runs by an engine on the simulated device; exit codes for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fa4top.analysis.compare.blocks import block_order, block_ratio, gate, moved, unfair_gate
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.tables import clock_text, milestones, percent_range
from fa4top.engine.jobs.ab import arm_orders
from fa4top.orders import exits
from fa4top.orders.jobs import AbJob, job_to_data
from fa4top.orders.order import Order
from fa4top.records import AbBlock, AbState, Plan, WorkerState
from fa4top.session.reading import read_log
from fa4top.ui.screens.ab import ab_job
from fa4top.ui.widgets.ab_panes import axis_range
from tests.conftest import run_cli
from tests.inline import run_order

pytestmark = pytest.mark.usefixtures("copies")
Make = Callable[..., Order]


def test_the_coin_is_fair_and_replayable() -> None:
    orders = [block_order(np.random.default_rng(3)) for _ in range(2)]
    assert orders[0] == orders[1]
    random = np.random.default_rng(1)
    share = np.mean([block_order(random) == "ABBA" for _ in range(2000)])
    assert 0.46 < share < 0.54


@pytest.mark.parametrize("order", ["ABBA", "BAAB"])
def test_a_ratio_cancels_a_linear_drift(order: str) -> None:
    drift = [1.00, 1.01, 1.02, 1.03]
    true = {"A": 100.0, "B": 102.0}
    slices = [[true[arm] * np.exp(0.01 * i)] * 3 for i, arm in enumerate(order)]
    ratio, cycles = block_ratio(order, slices, [None] * 4)
    assert ratio == pytest.approx(np.log(1.02)) and cycles is None and drift
    _, same = block_ratio(order, slices, [2000.0] * 4)
    assert same == pytest.approx(np.log(1.02))
    slower_clock = [1000.0 if arm == "B" else 2000.0 for arm in order]
    _, by_clock = block_ratio(order, [[100.0 * 2000.0 / mhz] for mhz in slower_clock], slower_clock)
    assert by_clock == pytest.approx(0.0, abs=1e-12), "a clock's difference is none in cycles"


def test_an_outlier_launch_does_not_move_a_slice() -> None:
    ratio, _ = block_ratio("ABBA", [[1, 1, 50], [1, 1, 1], [1, 1, 1], [1, 1, 1]], [None] * 4)
    assert ratio == 0.0


@pytest.mark.parametrize(
    ("clocks", "throttle", "foreign", "says", "tripped"),
    [
        ([2000.0, 2000.0, 1990.0, 2005.0], [], [], "", ""),
        ([2000.0, 1950.0, 2000.0, 2000.0], [], [], "SM clock of B moved by 2.6%", "B"),
        ([1950.0, 1950.0, 2000.0, 2000.0], [], [], "moved by 2.6%", ""),
        ([1669.0, 1685.0, 1687.0, 1670.0], [], [], "", ""),
        ([2000.0] * 4, ["SW power cap"], [], "clock held back: SW power cap", ""),
        ([2000.0] * 4, [], [77], "pid 77", ""),
        ([None] * 4, [], [], "", ""),
    ],
)
def test_whole_blocks_are_rejected(
    clocks: list[float | None], throttle: list[str], foreign: list[int], says: str, tripped: str
) -> None:
    found = gate("ABBA", clocks, throttle, foreign)
    assert found.accepted == (not says) and says in found.reason and found.tripped == tripped


def test_rejections_that_fall_on_one_arm_are_told() -> None:
    assert unfair_gate(["A", "B"] * 10 + [""] * 50) == ""
    assert "the clock of arm B moves more often" in unfair_gate(["B"] * 12 + ["A"])
    assert unfair_gate(["B"] * 5) == "", "too few to tell"


def test_sustained_blocks_count_whatever_the_clock_does() -> None:
    moving = [2000.0, 1500.0, 1600.0, 1900.0]
    assert gate("ABBA", moving, ["SW power cap"], [], sustained=True).accepted
    assert not gate("ABBA", moving, [], [7], sustained=True).accepted, "another process is never part of the effect"


def test_a_counter_that_moved_is_a_reason() -> None:
    assert moved({"SW power cap": 5, "HW thermal": 1}, {"SW power cap": 9, "HW thermal": 1}) == ["SW power cap"]
    assert moved({}, {"SW power cap": 9}) == [], "nothing is known of before"


def run(order: Order) -> Snapshot:
    return run_order(order).snapshot


def word(snapshot: Snapshot) -> str:
    assert snapshot.ab is not None and snapshot.ab.state == "done"
    return snapshot.ab.word


def test_a_against_a_is_equivalent(sim_order: Make) -> None:
    found = run(sim_order(job=job_to_data(AbJob(seed=4, budget_s=600.0))))
    assert word(found) == "equivalent" and found.simulated
    assert [arm.output_text for arm in found.ab_arms][1] == "bitwise equal to A"
    assert sum(block.pilot for block in found.ab_blocks) == 4 and all(block.accepted for block in found.ab_blocks)


@pytest.mark.parametrize(("handicap", "material"), [("0.25", False), ("3", True)])
def test_a_known_difference_is_found_with_its_size(sim_order: Make, handicap: str, material: bool) -> None:
    found = run(sim_order(job=job_to_data(AbJob(b={"handicap": handicap}, budget_s=600.0))))
    assert word(found) == "slower" and found.ab is not None
    last = found.ab_blocks[-1]
    assert last.low is not None and last.high is not None
    assert last.low <= np.log1p(float(handicap) / 100) <= last.high
    assert ("equivalent within 1%" in found.ab.text) == (not material)


def test_what_differs_is_in_the_log_with_every_launch(sim_order: Make) -> None:
    order = sim_order(job=job_to_data(AbJob(b={"p_split": "1/2"}, until_decided=False, most_blocks=15, budget_s=600.0)))
    snapshot = run(order)
    assert word(snapshot) == "slower"
    bodies = [record.body for record in read_log(Path(order.folder))]
    blocks = [body for body in bodies if isinstance(body, AbBlock)]
    assert len(blocks) > 13, "it watched on after the verdict"
    assert all(len(block.slices_us) == 4 and all(len(times) > 3 for times in block.slices_us) for block in blocks)
    assert {block.order for block in blocks} == {"ABBA", "BAAB"}
    for block in blocks:
        assert block_ratio(block.order, block.slices_us, block.clocks_mhz)[0] == pytest.approx(
            block.log_ratio, abs=1e-3
        )
    states = [body for body in bodies if isinstance(body, AbState)]
    assert list(dict.fromkeys(state.state for state in states)) == ["starting", "running", "done"]
    assert states[0].a["p_split"] == "3/4" and states[0].b["p_split"] == "1/2"
    assert [body.knobs["p_split"] for body in bodies if isinstance(body, Plan)] == ["3/4"]
    arms = {arm.arm: arm for arm in snapshot.ab_arms}
    assert arms["B"].time_us and arms["A"].time_us and arms["B"].time_us > 1.2 * arms["A"].time_us
    assert arms["B"].waits_cycles["wait P 2nd"] > arms["A"].waits_cycles["wait P 2nd"]


def test_a_replicated_a_b_has_fresh_processes_for_each_pair(sim_order: Make) -> None:
    order = sim_order(job=job_to_data(AbJob(b={"handicap": "3"}, tier=2, pairs=3)))
    found = run(order)
    assert [pair.number for pair in found.ab_pairs] == [1, 2, 3] and all(pair.blocks == 5 for pair in found.ab_pairs)
    assert found.ab_pairs[0].low is None and "pilot" in found.ab_pairs[0].text, "what set the scale is no evidence"
    assert all(pair.log_ratio == pytest.approx(np.log1p(0.03), abs=2e-3) for pair in found.ab_pairs)
    assert word(found) == "undecided" and found.ab is not None and "2 of at least 9 pairs" in found.ab.text
    records = [record.body for record in read_log(Path(order.folder))]
    assert len({body.worker for body in records if isinstance(body, WorkerState)}) == 3 * 4


def test_a_wrong_output_is_no_verdict(sim_order: Make) -> None:
    found = run(sim_order(job=job_to_data(AbJob(b={"handicap": "3"}, budget_s=600.0)), sim_fault="check"))
    assert word(found) == "invalid" and found.ab is not None and "the output is wrong" in found.ab.text


@pytest.mark.parametrize("fault", ["drift", "position", "noise"])
def test_what_disturbs_both_arms_leads_to_no_false_verdict(sim_order: Make, fault: str) -> None:
    order = sim_order(
        job=job_to_data(AbJob(most_blocks=44, budget_s=600.0, margin=0.02, until_decided=False)), sim_fault=fault
    )
    found = run(order)
    assert word(found) in ("equivalent", "undecided"), found.ab
    assert len(found.ab_blocks) > 40


@pytest.mark.parametrize("fault", ["drift", "droop"])
def test_a_difference_is_found_in_spite_of_drift_and_of_a_clock_that_droops_under_load(
    sim_order: Make, fault: str
) -> None:
    found = run(sim_order(job=job_to_data(AbJob(b={"handicap": "3"}, budget_s=600.0)), sim_fault=fault))
    assert word(found) == "slower" and clock_text(found.ab_blocks).startswith(("in cycles +2.9", "in cycles +3.0"))


@pytest.mark.parametrize(
    ("fault", "says"), [("foreign", "the gate can not be met"), ("hungry", "compare in sustained mode")]
)
def test_blocks_that_do_not_count_lead_to_no_verdict(sim_order: Make, fault: str, says: str) -> None:
    job = AbJob(b={"handicap": "3"}, budget_s=600.0)
    found = run(sim_order(job=job_to_data(job), sim_fault=fault))
    assert word(found) == "invalid" and found.ab is not None and says in found.ab.text, found.ab
    assert all(block.reason for block in found.ab_blocks if not block.accepted)


def test_sustained_mode_keeps_every_block(sim_order: Make) -> None:
    found = run(
        sim_order(job=job_to_data(AbJob(b={"handicap": "3"}, mode="sustained", budget_s=600.0)), sim_fault="droop")
    )
    assert word(found) == "slower" and found.ab is not None and found.ab.mode == "sustained"
    assert all(block.accepted for block in found.ab_blocks)


def test_dangerous_arms_are_refused(sim_order: Make) -> None:
    problems = arm_orders(sim_order(), AbJob(b={"p_split": "1/4"}))[1]
    assert len(problems) == 1 and problems[0].startswith("arm B: ") and "K-tiles" in problems[0]
    assert arm_orders(sim_order(), AbJob(a={"nope": "1"}))[1][0].startswith("arm A: sim has no knob nope")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--b", "handicap=3", "--expect", "slower"), exits.OK, "B is SLOWER by 3"),
        (("--b", "handicap=3", "--expect", "not-slower"), exits.CHECK_FAILED, "B is SLOWER"),
        (("--self-test", "--expect", "equivalent"), exits.OK, "EQUIVALENT WITHIN 1%"),
        (("--self-test", "--expect", "faster"), exits.CHECK_FAILED, "EQUIVALENT"),
        (("--b", "handicap=0"), exits.USAGE, ""),
        (("--b", "p_split=1/4"), exits.USAGE, ""),
        (("--b", "handicap=1", "--margin", "2x"), exits.USAGE, ""),
        ((), exits.USAGE, ""),
    ],
)
def test_exit_codes_for_scripts(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = run_cli("ab", "--target", "sim", "--no-record", "--budget", "10m", *arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stdout
    if code == exits.USAGE:
        assert done.stderr.startswith("fa4top: ") and not done.stdout
    else:
        assert "SIMULATED" in done.stdout and "tier 1" in done.stdout


def test_coins_of_a_recording_are_drawn_anew(sim_order: Make, tmp_path: Path) -> None:
    order = sim_order(job=job_to_data(AbJob(until_decided=False, most_blocks=16, budget_s=600.0)))
    run(order)
    done = run_cli("ab", "--redraw", order.folder, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["called_different"] <= 0.05 and found["blocks"] >= 13
    assert "coins drawn anew" in run_cli("ab", "--redraw", order.folder).stdout
    nothing = run_cli("ab", "--redraw", str(tmp_path / "none"))
    assert nothing.returncode == exits.USAGE and nothing.stderr.startswith("fa4top: ")


def test_what_is_typed_becomes_a_job() -> None:
    typed = ab_job("p_split=1/2 pv_mode=bf16", "0.5%")
    assert typed == AbJob(b={"p_split": "1/2", "pv_mode": "bf16"}, margin=0.005), "the command line's defaults"
    assert ab_job("", "0.02").margin == 0.02
    for b, margin in (("p_split", "1%"), ("", "0%"), ("", "x"), ("", "70%")):
        with pytest.raises(ValueError, match="write"):
            ab_job(b, margin)


def block(number: int, low: float, high: float) -> AbBlock:
    return AbBlock(
        ab_id=1,
        number=number,
        order="ABBA",
        slices_us=[],
        clocks_mhz=[],
        log_ratio=0.0,
        log_ratio_cycles=None,
        pilot=False,
        accepted=True,
        estimate=(low + high) / 2,
        low=low,
        high=high,
    )


def test_the_axis_keeps_zero_in_sight_unless_it_is_far() -> None:
    near = axis_range([block(9, -0.01, 0.03), block(12, 0.005, 0.02)], 0.01)
    assert near[0] < 0.0 < 0.02 < near[1]
    far = axis_range([block(9, 0.22, 0.221)] * 3, 0.01)
    assert 0.0 < far[0] < 0.22 and far[1] < 0.23


def test_milestones_are_dense_where_the_interval_shrinks() -> None:
    blocks = [block(n, -2.0 / n, 2.0 / n) for n in range(1, 201)]
    shown = [b.number for b in milestones(blocks, 6)]
    assert shown[-1] == 200 and len(shown) == 6 and shown == sorted(shown) and shown[2] < 40
    assert milestones([], 5) == []
    assert percent_range(-0.7, 0.7) == "anything" and percent_range(0.1, -0.1) == "no single ratio fits"
    assert percent_range(0.0, 0.01) == "+0.00% to +1.01%"
