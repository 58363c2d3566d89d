"""Step metrics, timeline and account on streams whose numbers are known."""

from __future__ import annotations

import numpy as np
import pytest

from fa4top.analysis.trace.events import event_id
from fa4top.analysis.trace.layout import BEGIN, END, MARK, BufferLayout
from fa4top.analysis.view.account import kernel_account
from fa4top.records import Geometry, TraceSample
from fa4top.targets.fa4.family import SM100
from fa4top.targets.sim.trace import LaunchFacts, RoleLog, write_buffer
from tests.traces import analysed

LAYOUT = BufferLayout(roles=("mma", "softmax0", "softmax1", "correction"), capacity=1024, stride=8)
STEP, TILE, WAIT_S = event_id("step"), event_id("tile"), event_id("wait S")


def softmax_log(steps: int = 10, tiles: int = 2) -> RoleLog:
    """Each step 1000 cycles, 200 of them waiting for S; 5000 more between tiles."""
    log = RoleLog()
    now = 0.0
    for _ in range(tiles):
        for _ in range(steps):
            log.event(STEP, MARK, now)
            log.span(WAIT_S, now, now + 200)
            now += 1000
        now += 4000
        log.event(TILE, MARK, now)
        now += 1000
    log.end_cycles = now
    return log


def analyse(logs: dict[str, RoleLog], clock_base: int = 12345, mhz: float = 2000.0) -> TraceSample:
    buffer = np.zeros(LAYOUT.total_bytes, dtype=np.uint8)
    write_buffer(buffer, LAYOUT, logs, LaunchFacts(9, 4, 21, clock_base, 640_000, mhz), LAYOUT.capacity)
    return analysed(buffer, LAYOUT, SM100, 9, timeline=True, steps_of_tile=10, cta=4, time_us=45.0)


@pytest.mark.parametrize("clock_base", [0, 2**32 - 5000])
def test_period_waits_busy_and_overhead(clock_base: int) -> None:
    role = analyse({"softmax0": softmax_log()}, clock_base).roles[0]
    assert (role.steps, role.tiles) == (20, 2)
    assert (role.period_median_cycles, role.period_p5_cycles, role.period_p95_cycles) == (1000, 1000, 1000)
    assert role.waits_cycles["wait S"] == pytest.approx(200) and role.busy_cycles == pytest.approx(800)
    assert role.tile_overhead_cycles == pytest.approx(5000)
    assert role.role_cycles == 30_000 and len(role.periods_cycles) == 18


def test_a_wait_that_never_blocked_is_zero_and_one_not_measured_is_absent() -> None:
    role = analyse({"softmax0": softmax_log()}).roles[0]
    assert role.waits_cycles["wait corr"] == 0.0 and "wait P" not in role.waits_cycles


def test_gaps_across_tiles_are_no_periods() -> None:
    role = analyse({"softmax0": softmax_log(steps=3, tiles=5)}).roles[0]
    assert role.period_p95_cycles == 1000 and len(role.periods_cycles) == 10


@pytest.mark.parametrize(("stages", "steps", "period"), [(2, 6, 1000), (1, 12, 500)])
def test_mma_steps_are_one_pv_gemm_a_stage(stages: int, steps: int, period: int) -> None:
    log = RoleLog()
    for number in range(12):
        log.event(event_id("PV"), BEGIN, number * 500.0)
        log.event(event_id("PV"), END, number * 500.0 + 100)
    log.end_cycles = 6000.0
    others = {f"softmax{stage}": softmax_log() for stage in range(stages)}
    role = analyse({"mma": log, **others}).roles[0]
    assert role.steps == steps and role.period_median_cycles == period


def test_one_step_has_no_period_and_breaks_nothing() -> None:
    log = RoleLog(end_cycles=100.0)
    log.event(STEP, MARK, 10.0)
    role = analyse({"softmax0": log}).roles[0]
    assert role.steps == 1 and role.period_median_cycles is None and role.busy_cycles is None


def test_the_timeline_aligns_roles_by_the_clock_of_their_sm() -> None:
    late = softmax_log()
    late.rows = [(key, cycles + 300) for key, cycles in late.rows]
    result = analyse({"softmax0": softmax_log(), "softmax1": late}, clock_base=2**32 - 9000)
    assert result.timeline is not None and result.timeline.cycles == 4000
    first, second = result.timeline.rows
    waits = [[span.begin_cycles for span in row.spans if span.name == "wait S"] for row in (first, second)]
    assert waits[0] == [0, 1000, 2000, 3000] and waits[1] == [300, 1300, 2300, 3300]
    assert all(0 <= s.begin_cycles < s.end_cycles <= 4000 for row in (first, second) for s in row.spans)


def test_the_account_adds_up_and_finds_the_last_wave() -> None:
    record = analyse({"softmax0": softmax_log()})  # 30 000 cycles at 2000 MHz: 15 us a CTA, 2/3 of it steps
    geometry = Geometry(grid_ctas=20, sm_count=10, ctas_per_sm=1, tiles=40, steps_per_tile=10, steps_longest=60,
                        persistent=False, flops=1.0)  # fmt: skip
    account = kernel_account(geometry, [record], 44.0, 45.0)
    assert account is not None
    assert account.steps + account.tile_ends + account.tail == pytest.approx(1.0)
    assert account.tail == pytest.approx(1 / 3, abs=0.01)
    assert account.steps / (1 - account.tail) == pytest.approx(2 / 3, abs=0.01)
