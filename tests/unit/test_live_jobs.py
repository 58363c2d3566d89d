"""Jobs inside a live session: whose workers serve, what goes on meanwhile, and what is there afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fa4top.analysis.view.fold import Fold
from fa4top.engine.client import Control, connect, start_engine
from fa4top.engine.live import same_launch
from fa4top.engine.standby import fits
from fa4top.orders.order import Order
from fa4top.records import AbState, CleanBurst, Envelope, Plan, WorkerState
from fa4top.session.reading import read_log
from fa4top.targets.fa4.description import DESCRIPTION as FA4
from tests.conftest import wait_until
from tests.limits import PATIENCE_S

pytestmark = pytest.mark.usefixtures("copies")
Make = Callable[..., Order]


class Session:
    """A live engine on the simulated device."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.process = start_engine(order)
        self.control: Control = connect(order.session_id, self.process)
        wait_until(lambda: self.bursts() > 5)

    def records(self) -> list[Envelope]:
        return list(read_log(Path(self.order.folder)))

    def bodies(self) -> list[object]:
        return [record.body for record in self.records()]

    def bursts(self) -> int:
        return sum(isinstance(body, CleanBurst) for body in self.bodies())

    def ab(self, state: str) -> bool:
        return any(isinstance(body, AbState) and body.state == state for body in self.bodies())

    def end(self) -> None:
        self.control.ask({"do": "stop"})
        assert self.process.wait(PATIENCE_S) == 0


def clean_workers(bodies: list[object]) -> list[str]:
    return list(dict.fromkeys(body.worker for body in bodies if isinstance(body, CleanBurst)))


def test_the_live_plan_serves_as_arm_a_and_goes_on_afterwards(sim_order: Make) -> None:
    session = Session(sim_order(stay=True))
    job = {"kind": "ab", "b": {"handicap": "3"}, "budget_s": 1.0}
    assert session.control.ask({"do": "job", "job": job})["ok"]
    wait_until(lambda: session.ab("done"))
    so_far = session.bursts()
    wait_until(lambda: session.bursts() > so_far + 5)
    session.end()
    bodies = session.bodies()
    assert sum(isinstance(body, Plan) for body in bodies) == 1, "the plan was never interrupted"
    live, other = clean_workers(bodies)
    states = [i for i, body in enumerate(bodies) if isinstance(body, AbState)]
    first_of_b = next(i for i, body in enumerate(bodies) if isinstance(body, CleanBurst) and body.worker == other)
    between = [body.worker for body in bodies[states[0] : first_of_b] if isinstance(body, CleanBurst)]
    assert set(between) == {live} and between, "A goes on while B gets ready"
    after = [body.worker for body in bodies[states[-1] :] if isinstance(body, CleanBurst)]
    assert set(after) == {live}


def test_b_is_a_worker_that_stood_by(sim_order: Make) -> None:
    session = Session(sim_order(stay=True))
    before = {path.name for path in Path(session.order.folder).glob("*.stderr")}
    job = {"kind": "ab", "b": {"handicap": "3"}, "budget_s": 0.5}
    assert session.control.ask({"do": "job", "job": job})["ok"]
    wait_until(lambda: session.ab("done"))
    session.end()
    b = clean_workers(session.bodies())[1]
    assert f"{b}.stderr" in before, "its process was there before the job"
    ended = [body.worker for body in session.bodies() if isinstance(body, WorkerState) and body.state == "stopped"]
    assert b in ended


def test_an_a_b_that_is_cleared_ends_and_is_forgotten(sim_order: Make) -> None:
    session = Session(sim_order(stay=True))
    job = {"kind": "ab", "b": {"handicap": "3"}, "budget_s": 600.0, "until_decided": False}
    assert session.control.ask({"do": "job", "job": job})["ok"]
    wait_until(lambda: session.ab("running"))
    assert session.control.ask({"do": "clear"})["ok"]
    wait_until(lambda: session.ab("cleared"))
    so_far = session.bursts()
    wait_until(lambda: session.bursts() > so_far + 5)
    session.end()
    fold = Fold()
    for record in session.records():
        fold.feed(record)
    snapshot = fold.snapshot()
    assert snapshot.ab is None and not snapshot.ab_blocks and not snapshot.ab_arms
    assert [body.state for body in session.bodies() if isinstance(body, AbState)][-2:] == ["stopped", "cleared"]


def test_workers_serve_only_what_they_were_made_for(sim_order: Make) -> None:
    order = sim_order()
    assert same_launch(order, sim_order(folder="elsewhere", rounds_per_s=1.0))
    assert not same_launch(order, sim_order(seed=1)) and not same_launch(order, sim_order(detail=True))
    knobs = FA4.setting({})[0]
    prepared = replace(order, target="fa4", knobs=knobs)
    assert fits(prepared, replace(prepared, knobs={**knobs, "tile_mn": "128x96"}))
    assert not fits(prepared, replace(prepared, knobs={**knobs, "FA_CLC": "1"})), "read at import"
    assert not fits(prepared, replace(prepared, target="builtin"))
