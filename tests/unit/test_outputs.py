"""Outputs compared, and the check job on the simulated device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fa4top.analysis.compare.outputs import compare_outputs
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.engine.jobs.check import judge, saved_problem
from fa4top.orders.jobs import CheckJob, job_to_data
from fa4top.orders.order import Order
from fa4top.records import Repeats
from tests.inline import run_order

Make = Callable[..., Order]


def output(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, 300, 3, 16), dtype=np.float32)


def test_equal_outputs_are_equal_also_in_their_nans() -> None:
    first = output()
    first[0, 0, 0, 0] = np.nan
    assert compare_outputs(first, first.copy()).equal


def test_a_difference_is_counted_measured_and_placed() -> None:
    first, second = output(), output()
    second[1, 130:132, 2] += np.float32(0.5)
    found = compare_outputs(first, second)
    assert (found.elements, found.total, found.equal) == (32, first.size, False)
    scale = float(np.sqrt(np.mean(np.square(first, dtype=np.float64))))
    assert found.max == pytest.approx(0.5 / scale, rel=1e-3)
    assert found.where == "2 rows, batch 1, head 2, tile 1, rows 130 to 131"
    second[0, 0, 0, 0] = np.inf
    assert compare_outputs(first, second).max == float("inf")
    zero = np.zeros((1, 1, 1, 1), dtype=np.float32)
    assert compare_outputs(zero, -zero).elements == 1  # bits, not values
    with pytest.raises(ValueError, match="shapes"):
        compare_outputs(first, second[:1])


BLANK = Repeats(
    worker="w", plan_id=1, setting="x", times=20, flaky_launches=0, flaky_elements=0, elements=100, where=""
)


@pytest.mark.parametrize(
    ("flaky", "against", "within", "rms", "claimed", "says", "passed"),
    [
        (0, "", True, 1.0, True, "steady: 20 launches bitwise equal", True),
        (2, "", True, 1.0, True, "FLAKY: 2 of 20", False),
        (0, "bitwise", True, 1.0, True, "bitwise equal to the baseline", True),
        (0, "differs", True, 1.0, True, "said to be bitwise", False),
        (0, "differs", True, 1.04, False, "as accurate as the baseline", True),
        (0, "differs", True, 1.06, False, "less accurate", False),
        (0, "bitwise", False, 1.0, True, "above the limit", False),
    ],
)
def test_what_a_setting_is_judged(
    flaky: int, against: str, within: bool, rms: float, claimed: bool, says: str, passed: bool
) -> None:
    from dataclasses import replace

    found = replace(BLANK, flaky_launches=flaky, against=against)
    word, good = judge(found, within, rms, 1.0, claimed)
    assert says in word and good is passed


def run(order: Order) -> Snapshot:
    return run_order(order).snapshot


def test_a_steady_baseline_passes_and_leaves_no_file(sim_order: Make) -> None:
    order = sim_order(job=job_to_data(CheckJob(b={"p_split": "1/2"}, times=9)))
    found = run(order)
    assert found.check_run is not None and found.check_run.passed and found.check_run.state == "done"
    assert [r.verdict for r in found.repeats] == ["steady: 9 launches bitwise equal", "bitwise equal to the baseline"]
    assert not list(Path(order.folder).glob("*.npy"))


def test_a_flake_is_said_first_and_placed(sim_order: Make) -> None:
    found = run(sim_order(job=job_to_data(CheckJob(times=15)), sim_fault="flake"))
    assert found.check_run is not None and found.check_run.passed is False
    assert "baseline: FLAKY: 2 of 15 launches differ (128 of" in found.check_run.text
    assert "head 1, tile 2, rows 300 to 301" in found.check_run.text


def test_the_knob_that_changes_the_output_is_found(sim_order: Make) -> None:
    job = CheckJob(b={"handicap": "1", "p_split": "1/2"}, times=2)
    found = run(sim_order(job=job_to_data(job), sim_fault="not-bitwise"))
    assert found.check_run is not None and found.check_run.passed is False
    assert "though its knobs are said to be bitwise" in found.check_run.text
    assert found.check_run.text.endswith("p_split=1/2 is the first knob that changes the output")


def test_a_kept_baseline_is_held_against_what_comes_later(sim_order: Make, tmp_path: Path) -> None:
    kept = tmp_path / "deep" / "before.npy"
    first = run(sim_order(job=job_to_data(CheckJob(times=3, save=str(kept)))))
    assert first.check_run is not None and "saved as before.npy" in first.check_run.text and kept.exists()
    same = run(sim_order(job=job_to_data(CheckJob(times=3, against=str(kept)))))
    assert (
        same.check_run is not None and same.check_run.passed and "bitwise equal to the baseline" in same.check_run.text
    )
    changed = run(
        sim_order({"p_split": "1/2"}, job=job_to_data(CheckJob(times=3, against=str(kept))), sim_fault="not-bitwise")
    )
    assert changed.check_run is not None and not changed.check_run.passed
    assert changed.repeats[0].against == "differs" and changed.repeats[0].inputs == first.repeats[0].inputs
    assert saved_problem(sim_order(), kept) is None
    assert "of another seed: 0; this is 7" in str(saved_problem(sim_order(seed=7), kept))
    assert "is no kept baseline" in str(saved_problem(sim_order(), tmp_path / "nothing.npy"))


def test_a_flaky_baseline_is_not_kept(sim_order: Make, tmp_path: Path) -> None:
    found = run(sim_order(job=job_to_data(CheckJob(times=15, save=str(tmp_path / "x.npy"))), sim_fault="flake"))
    assert found.check_run is not None and "not saved" in found.check_run.text and not list(tmp_path.glob("x.npy*"))
