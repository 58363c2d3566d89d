"""Screens 5 to 7 by Pilot: recorded triages of an H200, and one on the simulated device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4top.orders.order import Order
from fa4top.ui.app import Fa4topApp
from fa4top.ui.screens.ab import AbScreen
from fa4top.ui.screens.reports import CheckScreen, SassScreen, TriageScreen
from fa4top.ui.widgets.lines import Lines
from tests.conftest import ROOT
from tests.ui.test_jobs import SIZES, at_end, text, until

BUILTIN, FA4 = (ROOT / "examples" / f"h200-triage-{name}.jsonl.gz" for name in ("builtin", "fa4"))


pytestmark = pytest.mark.usefixtures("copies")


@pytest.mark.parametrize("size", SIZES)
async def test_a_triage_shows_its_steps_and_its_answer(size: tuple[int, int]) -> None:
    async with at_end(BUILTIN, size) as (app, pilot):
        await pilot.press("6")
        await until(pilot, lambda: isinstance(app.screen, TriageScreen) and "throughputs" in text(app))
        shown = text(app)
        assert "p_split 3/4 is 5.1% faster than 1/2" in shown and "REPLAY" in shown
        await pilot.press("end")
        await until(pilot, lambda: "6 checks" in text(app) and "rules out: wrong results" in text(app))
        for pane in app.screen.query(Lines):
            assert all(sum(len(part) for part, _ in row) == pane.size.width for row in pane._rows if pane.display)


async def test_sass_and_check_of_a_triage_have_their_screens() -> None:
    async with at_end(FA4, (100, 30)) as (app, pilot):
        await pilot.press("5")
        await until(pilot, lambda: isinstance(app.screen, SassScreen) and "a step of mma" in text(app))
        shown = text(app)
        assert "no spills; a step of mma has 467 instructions" in shown and "fa4 sm_90a" in shown
        await pilot.press("7")
        await until(pilot, lambda: isinstance(app.screen, CheckScreen) and "baseline" in text(app))
        assert "steady: 20 launches bitwise equal" in text(app)


async def test_without_one_the_screens_say_how_to_get_one() -> None:
    async with at_end(ROOT / "examples" / "h200-live.jsonl.gz", (80, 24)) as (app, pilot):
        for key, words in (
            ("5", "r compiles the present setting"),
            ("6", "r walks the six"),
            ("7", "r launches the pre"),
        ):
            await pilot.press(key)
            await until(pilot, lambda words=words: words in text(app))  # type: ignore[misc]
        await pilot.press("r")
        await until(pilot, lambda: bool(app._notifications))
        assert "only a live session" in next(iter(app._notifications)).message


async def test_r_walks_the_steps_live_and_enter_runs_the_next_experiment(sim_order: Callable[..., Order]) -> None:
    app = Fa4topApp(order=sim_order({"p_split": "1/2"}, stay=True), hz=10.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app._snapshot.clean_us is not None)
        await pilot.press("6")
        await pilot.press("r")
        await until(pilot, lambda: app._snapshot.triage is not None and app._snapshot.triage.state == "done")
        await until(pilot, lambda: "enter runs: fa4top ab --a p_split=1/2" in text(app, "#verdict"))
        await pilot.press("enter")
        await until(pilot, lambda: app._snapshot.ab is not None and isinstance(app.screen, AbScreen))
        assert app._snapshot.ab is not None and app._snapshot.ab.tier == 2
        assert app._snapshot.ab.a["p_split"] == "1/2" and app._snapshot.ab.b["p_split"] in (
            "3/4",
            "7/8",
        )  # equally good
        await pilot.press("c")
        await pilot.press("7")
        await pilot.press("r")
        await until(pilot, lambda: app._snapshot.check_run is not None and bool(app._snapshot.check_run.passed))
        await pilot.press("q")
