"""A launch that does not end: noticed from another thread, read in flight, explained."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fa4top.analysis.trace.decode import RoleHeader, RoleTrace, Stream, pair
from fa4top.analysis.trace.events import event_id
from fa4top.analysis.trace.hangs import FINISHED, RUNNING, WAITING, RoleState, explain, role_states
from fa4top.analysis.trace.layout import BEGIN, END, MARK, STATE_FINISHED, STATE_STARTED
from fa4top.engine.client import connect, start_engine
from fa4top.orders.jobs import AbJob, job_to_data
from fa4top.orders.order import Order
from fa4top.records import EngineState, Fault, HangReport, TraceSample
from fa4top.session.reading import read_log
from fa4top.targets.builtin.family import BUILTIN
from fa4top.targets.fa4.family import SM100
from fa4top.worker.watch import Watch
from tests.conftest import wait_until
from tests.limits import PATIENCE_S

Make = Callable[..., Order]
ROLES = ("mma", "softmax0", "softmax1", "correction")


def waits(role: str, cause: str, steps: int) -> RoleState:
    return RoleState(role=role, state=WAITING, waiting_for=cause, steps=steps, tiles=0, last=cause)


def runs(role: str, steps: int, last: str = "P rest") -> RoleState:
    return RoleState(role=role, state=RUNNING, waiting_for="", steps=steps, tiles=0, last=last)


DONE = RoleState(role="softmax0", state=FINISHED, waiting_for="", steps=64, tiles=1, last="")


@pytest.mark.parametrize(
    ("states", "says"),
    [
        (
            [waits("mma", "wait P 2nd", 36), waits("softmax0", "wait S", 38), waits("softmax1", "wait S", 37)],
            "mma: waits for P 2nd, step 36, tile 1; softmax1: waits for S, step 37, tile 1: softmax1 waits behind the "
            "place where P 2nd is sent: that signal was lost",
        ),
        (
            # as on an H200, where the builtin kernel's second signal of stage 1 was left out in step 6
            [
                waits("mma", "wait P 2nd", 7),
                waits("softmax0", "wait S", 7),
                waits("softmax1", "wait S", 6),
                waits("load", "wait slot", 0),
            ],
            "softmax1 waits behind the place where P 2nd is sent: that signal was lost",
        ),
        (
            [waits("mma", "wait P 2nd", 7), waits("softmax0", "wait S", 7), waits("softmax1", "wait S", 7)],
            "softmax0 or softmax1 waits behind the place where P 2nd is sent",
        ),
        (
            [waits("mma", "wait P", 36), waits("softmax0", "wait S", 38)],
            "softmax0 is ahead, so it sent P, or passed by it: that signal was lost",
        ),
        (
            [waits("mma", "wait P", 36), waits("softmax0", "wait S", 36)],
            "each waits for the next: mma: waits for P, step 36, tile 1, softmax0: waits for S",
        ),
        ([waits("mma", "wait P", 3), DONE], "nobody will send it, softmax0 has finished"),
        ([waits("mma", "wait KV", 3), waits("softmax0", "wait S", 3)], "comes from load, which is not traced"),
        (
            [waits("mma", "wait P", 3), runs("softmax0", 3, "exp2"), runs("softmax1", 3)],
            "all wait for softmax0, softmax1, which does not wait: last seen at exp2, step 3",
        ),
        ([runs("mma", 5), runs("softmax0", 6)], "no role is seen waiting (mma: last seen at P rest, step 5, tile 1;"),
    ],
)
def test_the_missing_signal_is_named(states: list[RoleState], says: str) -> None:
    family = BUILTIN if any(state.role == "load" for state in states) else SM100
    assert says in explain(states, family)


def trace(role: str, events: list[tuple[str, int]], state: int = STATE_STARTED) -> RoleTrace:
    key = np.array([event_id(name) << 2 | kind for name, kind in events], dtype=np.uint8)
    stream = Stream(key, np.arange(len(key), dtype=np.int64) * 100, 0, len(key), 0, 0)
    return RoleTrace(role, RoleHeader(7, 0, 0, 3, 0, state, (0, 0), (0, 0)), stream, pair(stream))


def test_an_open_begin_at_the_end_is_a_wait() -> None:
    traces = [
        trace("mma", [("PV", BEGIN), ("PV", END), ("wait P", BEGIN), ("wait P", END), ("wait P 2nd", BEGIN)]),
        trace("softmax0", [("step", MARK), ("wait S", BEGIN), ("wait S", END), ("P rest", MARK)]),
        trace("correction", [("tile", MARK)], STATE_FINISHED),
    ]
    states = {state.role: state for state in role_states(traces, ROLES, SM100)}
    assert states["mma"].waiting_for == "wait P 2nd" and states["mma"].steps == 1
    assert states["softmax0"].state == RUNNING and states["softmax0"].last == "P rest"
    assert states["softmax1"].state == "never started" and states["correction"].state == FINISHED
    assert states["softmax0"].sentence() == "softmax0: last seen at P rest, step 1, tile 1"


def test_the_watch_tells_once_and_only_when_it_takes_too_long() -> None:
    told: list[float] = []
    watch = Watch(told.append)
    for _ in range(20):
        with watch.guard(5.0):
            pass
    with watch.guard(0.05):
        end = time.monotonic() + PATIENCE_S
        while not told and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.2)
    assert told == [0.05]
    with watch.guard(0.07):
        end = time.monotonic() + PATIENCE_S
        while len(told) < 2 and time.monotonic() < end:
            time.sleep(0.01)
    assert told == [0.05, 0.07]


@pytest.mark.usefixtures("copies")
def test_a_live_hang_names_each_role_and_the_session_goes_on(sim_order: Make) -> None:
    order = sim_order(sim_fault="hang")
    process = start_engine(order)
    control = connect(order.session_id, process)

    def bodies() -> list[object]:
        return [record.body for record in read_log(Path(order.folder))]

    wait_until(lambda: any(isinstance(body, Fault) for body in bodies()))
    fault_at = next(i for i, body in enumerate(bodies()) if isinstance(body, Fault))
    wait_until(lambda: any(isinstance(body, TraceSample) for body in bodies()[fault_at:]))
    control.ask({"do": "stop"})
    process.wait(PATIENCE_S)
    report = next(body for body in bodies() if isinstance(body, HangReport))
    assert "softmax1 waits behind the place where P 2nd is sent: that signal was lost" in report.text
    assert [role.partition(":")[0] for role in report.roles] == list(ROLES)
    assert report.roles[0] == "mma: waits for P 2nd, step 36, tile 1"
    fault = bodies()[fault_at]
    assert isinstance(fault, Fault) and fault.reason == "hang" and report.text in fault.text


@pytest.mark.usefixtures("copies")
def test_a_hang_in_an_a_b_ends_it_with_the_same_words(sim_order: Make) -> None:
    order = sim_order(job=job_to_data(AbJob(b={"handicap": "3"}, budget_s=60.0, until_decided=False)), sim_fault="hang")
    process = start_engine(order)
    control = connect(order.session_id, process)
    assert process.wait(PATIENCE_S) == 4
    control.close()
    faults = [record.body for record in read_log(Path(order.folder)) if isinstance(record.body, Fault)]
    assert len(faults) == 1 and faults and faults[0].reason == "hang" and "that signal was lost" in faults[0].text


@pytest.mark.usefixtures("copies")
def test_a_setting_that_hangs_again_is_not_launched_a_third_time(sim_order: Make) -> None:
    order = sim_order(sim_fault="hang", stay=True)
    process = start_engine(order)
    control = connect(order.session_id, process)

    def hangs() -> int:
        bodies = [record.body for record in read_log(Path(order.folder))]
        return sum(isinstance(body, Fault) and body.reason == "hang" for body in bodies)

    def failed() -> bool:
        bodies = [record.body for record in read_log(Path(order.folder))]
        return any(isinstance(body, EngineState) and body.state == "failed" for body in bodies)

    wait_until(failed, 60.0)
    assert hangs() == 2
    refused = control.ask({"do": "plan", "knobs": {}})
    assert not refused["ok"] and "hung 2 times in this session" in refused["error"]
    refused = control.ask({"do": "job", "job": {"kind": "ab", "b": {"p_split": "1/2"}}})
    assert not refused["ok"] and "arm A: this setting hung 2 times" in refused["error"]
    assert control.ask({"do": "plan", "knobs": {"p_split": "1/2"}})["ok"], "another setting may be tried"
    wait_until(lambda: hangs() == 3, 60.0)
    control.ask({"do": "stop"})
    process.wait(PATIENCE_S)
