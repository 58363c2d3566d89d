"""Screens 3 and 4 by Pilot: on the recorded H200 sessions, and started from a live session on the simulated device."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Label

from fa4top.orders.order import Order
from fa4top.records import SweepPoint, SweepState, to_line
from fa4top.session.playing import Player
from fa4top.session.reading import read_log
from fa4top.ui.app import Fa4topApp
from fa4top.ui.feed import ReplaySource
from fa4top.ui.screens.ab import AbForm, AbScreen
from fa4top.ui.screens.bench import BenchScreen
from fa4top.ui.screens.sweep import SweepForm, SweepScreen
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.scrolled import Scrolled
from tests.conftest import ROOT
from tests.limits import PATIENCE_S

pytestmark = pytest.mark.usefixtures("copies")
SIZES = [(80, 24), (120, 40), (200, 50), (60, 18)]
SWEEP, BENCH = ROOT / "examples" / "h200-split-sweep.jsonl.gz", ROOT / "examples" / "h200-bench.jsonl.gz"


@asynccontextmanager
async def at_end(log: Path, size: tuple[int, int], **options: object) -> AsyncIterator[tuple[Fa4topApp, Pilot[str]]]:
    player = Player(log)
    player.wait_for_index()
    source = ReplaySource(player)
    source.jump_to(player.duration_s)
    app = Fa4topApp(source=source, recorded=False, hz=10.0, **options)  # type: ignore[arg-type]
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app._snapshot.records > 10)
        yield app, pilot


async def until(pilot: Pilot[str], condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came"
        await pilot.pause(0.05)


def text(app: Fa4topApp, selector: str = "") -> str:
    panes = app.screen.query(Lines) if not selector else app.screen.query(selector).results(Lines)
    return "\n".join("".join(part for part, _ in row) for pane in panes if pane.display for row in pane._rows)


@pytest.mark.parametrize("size", SIZES)
async def test_a_sweep_shows_curves_table_and_answer(size: tuple[int, int]) -> None:
    async with at_end(SWEEP, size) as (app, pilot):
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, SweepScreen) and "TFLOP/s" in text(app, "#tflops"))
        shown = text(app)
        assert "p_split of builtin" in shown and "H200" in shown and "REPLAY" in shown
        assert "●" in text(app, "#tflops") and "○" in text(app, "#tflops")
        assert "5/8 is best" in shown
        for pane in app.screen.query(Lines):
            assert all(sum(len(part) for part, _ in row) == pane.size.width for row in pane._rows if pane.display)


async def test_the_sweep_table_scrolls_to_its_end() -> None:
    async with at_end(SWEEP, (80, 24)) as (app, pilot):
        await pilot.press("3")
        await until(pilot, lambda: "bf16" in text(app, "#table"))
        assert "fp8  " not in text(app, "#table")
        await pilot.press("end")
        await until(pilot, lambda: "of 16" in text(app, "#table") and "null arm" in text(app, "#table"))
        assert "plateau" in text(app, "#table"), "the mark fits beside a series"
        assert "EQUIVALENT" in text(app, "#table")
        await pilot.press("home")
        await until(pilot, lambda: "rows 1 to" in text(app, "#table"))


@pytest.mark.parametrize("size", SIZES)
async def test_a_recorded_a_b_tells_the_kernel_s_share_from_the_clock_s(size: tuple[int, int]) -> None:
    async with at_end(ROOT / "examples" / "h200-ab-fa4.jsonl.gz", size) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, AbScreen) and "SLOWER by 2.17%" in text(app, "#verdict"))
        assert "128x112" in text(app, "#table") and "L2 cold" in text(app, "#head")
        if size[0] >= 120:
            assert "in cycles +2.83%; the clock, +0.66% in B" in text(app, "#head")
            assert "four runs in five would see 0.04%" in text(app, "#intervals")
        assert "c clears" not in text(app, "#verdict"), "a recording can not be cleared"
        for pane in app.screen.query(Lines):
            assert all(sum(len(part) for part, _ in row) == pane.size.width for row in pane._rows if pane.display)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_two_knobs_with_many_values_are_a_heat_map(size: tuple[int, int], tmp_path: Path) -> None:
    """The recorded sweep, with a third series made up from its second."""
    records = []
    for record in read_log(SWEEP):
        body = record.body
        if isinstance(body, SweepState):
            records.append(replace(record, body=replace(body, series=[*body.series, "fp4"])))
        else:
            records.append(record)
        if isinstance(body, SweepPoint) and body.series == "fp8":
            records.append(replace(record, body=replace(body, series="fp4", tflops=(body.tflops or 0.0) + 100.0)))
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(to_line(record) for record in records))
    async with at_end(log, size) as (app, pilot):
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, SweepScreen) and "p_split across" in text(app, "#heat"))
        shown = text(app, "#heat")
        assert "fp4" in shown and "683" in shown and "bf16" in shown
        assert not app.screen.query_one("#wait_rest").display
        for pane in app.screen.query(Lines):
            assert all(sum(len(part) for part, _ in row) == pane.size.width for row in pane._rows if pane.display)


@pytest.mark.parametrize("size", SIZES)
async def test_the_bench_shows_figures_limits_and_what_the_chip_lacks(size: tuple[int, int]) -> None:
    async with at_end(BENCH, size) as (app, pilot):
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.screen, BenchScreen) and "16.0" in text(app, "#table"))
        assert "NVIDIA H200" in text(app, "#head") and "39 measured" in text(app, "#head")
        answer = " ".join(text(app, "#verdict").split())
        assert ("512 cycles" if size[0] > 60 else "ex2 runs at 16.0") in answer
        seen = text(app, "#table")
        for _ in range(8):
            await pilot.press("pagedown")
            await pilot.pause(0.05)
            seen += text(app, "#table")
        assert "not on this chip" in seen and "wgmma e4m3" in seen and "handoff" in seen


async def test_plain_characters_where_asked() -> None:
    async with at_end(SWEEP, (100, 30), ascii_only=True) as (app, pilot):
        await pilot.press("3")
        await until(pilot, lambda: "A" in text(app, "#tflops"))
        body = text(app, "#curves SweepGraph") + text(app, "#table") + text(app, "#head")
        assert body.isascii(), {c for c in body if not c.isascii()}


async def test_a_recording_starts_nothing() -> None:
    async with at_end(SWEEP, (80, 24)) as (app, pilot):
        await pilot.press("s")
        await pilot.press("r")
        await pilot.pause(0.2)
        assert not isinstance(app.screen, SweepForm)


async def test_a_sweep_from_the_live_screen(sim_order: Callable[..., Order]) -> None:
    app = Fa4topApp(order=sim_order(stay=True, record=True), hz=10.0)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: bool(app._snapshot.roles))
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, SweepForm))
        field = app.screen.query_one("#values", Input)
        assert field.value.startswith("p_split=")
        field.value = "p_split=1/4"
        await pilot.press("enter")
        await until(pilot, lambda: "K-tiles" in str(app.screen.query_one("#error", Label).render()))
        field.value = "p_split=1/2,3/4"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SweepScreen))
        await until(pilot, lambda: app._snapshot.sweep is not None and app._snapshot.sweep.state == "done")
        await until(pilot, lambda: "keep p_split 3/4" in text(app, "#verdict"))
        assert "SIMULATED" in text(app)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.screen, BenchScreen) and "not run" in text(app, "#table"))
        assert "32" in text(app, "#table"), "the published figure of the simulated chip"
        assert isinstance(app.screen.query_one("#table"), Scrolled)
        await pilot.press("q")
        await pilot.press("s")
        await pilot.pause(0.5)


async def test_an_a_b_from_the_live_screen_and_its_b_promoted(sim_order: Callable[..., Order]) -> None:
    app = Fa4topApp(order=sim_order(stay=True, record=True), hz=10.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(app._snapshot.roles))
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, AbScreen) and "no A/B yet" in text(app, "#table"))
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, AbForm))
        for typed, says in (("p_split", "write KNOB=VALUE"), ("p_split=1/4", "K-tiles")):
            app.screen.query_one("#b", Input).value = typed
            await pilot.press("enter")
            await until(pilot, lambda says=says: says in str(app.screen.query_one("#error", Label).render()))  # type: ignore[misc]
        app.screen.query_one("#b", Input).value = "p_split=1/2"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AbScreen))
        await until(pilot, lambda: "SLOWER by 24" in " ".join(text(app, "#verdict").split()))
        assert "SIMULATED" in text(app) and "0 lies outside" in text(app, "#intervals")
        arms = text(app, "#table")
        assert "knob p_split" in arms and "1/2" in arms and "bitwise equal" in arms
        for pane in app.screen.query(Lines):
            assert all(sum(len(part) for part, _ in row) == pane.size.width for row in pane._rows if pane.display)
        await pilot.press("x")
        await until(pilot, lambda: app._snapshot.plan is not None and app._snapshot.plan.knobs["p_split"] == "1/2")
        await pilot.press("c")
        await until(pilot, lambda: app._snapshot.ab is None and "no A/B yet" in text(app, "#table"))
        await pilot.press("q")
        await pilot.press("s")
        await pilot.pause(0.5)


async def test_a_bench_that_can_not_run_says_why_and_the_plan_goes_on(sim_order: Callable[..., Order]) -> None:
    """The interpreter is there, CuPy is not."""
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is here")
    app = Fa4topApp(order=sim_order(stay=True, record=True), hz=10.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(app._snapshot.roles))
        await pilot.press("4")
        await pilot.press("r")
        await until(pilot, lambda: "missing package" in " ".join(text(app, "#verdict").split()))
        assert "cuda13" in " ".join(text(app, "#verdict").split())

        def goes_on() -> bool:
            plan = app._snapshot.plan
            return plan is not None and plan.plan_id > 2 and bool(app._snapshot.roles)

        await until(pilot, goes_on)
        await pilot.press("q")
        await pilot.press("s")
        await pilot.pause(0.5)
