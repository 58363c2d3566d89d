"""Screens by Pilot, on a recording that a simulated session made: logic, keys, sizes, themes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Label, RichLog

from fa4top.engine.client import connect, start_engine
from fa4top.orders.order import Order
from fa4top.records import Fault, Notice, to_line
from fa4top.session.following import Follower
from fa4top.session.paths import LOG_NAME
from fa4top.session.playing import Player
from fa4top.session.reading import read_log
from fa4top.ui.app import Fa4topApp
from fa4top.ui.feed import ReplaySource
from fa4top.ui.screens.edit import EditScreen
from fa4top.ui.screens.help import HelpScreen
from fa4top.ui.screens.leave import LeaveScreen
from fa4top.ui.screens.live import LiveScreen
from fa4top.ui.screens.log import LogScreen
from fa4top.ui.widgets.lines import Lines
from tests.conftest import wait_until
from tests.forked import forking
from tests.limits import PATIENCE_S

pytestmark = pytest.mark.usefixtures("copies")
SIZES = [(80, 24), (120, 40), (200, 50)]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short simulated session with a fault and a warning in it."""
    import sys

    from fa4top.targets.sim.description import DESCRIPTION as SIM

    folder = tmp_path_factory.mktemp("recording")
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("run"))
    order = Order(
        session_id="test",
        folder=str(folder),
        record=True,
        target="sim",
        why_target="test",
        shape=SIM.default_shape,
        knobs=SIM.setting({})[0],
        seed=0,
        python=sys.executable,
        gpu_uuid="SIM-gb300",
        gpu_name="simulated GB300",
        arch="sm_103a",
        simulated=True,
        argv=[],
        rounds_per_s=30.0,
    )
    with forking():
        process = start_engine(order)
    control = connect("test", process)
    follower = Follower(folder / LOG_NAME)
    seen: list[str] = []

    def enough() -> bool:
        seen.extend(r.kind for r in follower.poll())
        return seen.count("trace") >= 20

    wait_until(enough)
    control.ask({"do": "stop"})
    process.wait(PATIENCE_S)
    records = list(read_log(folder))
    last = records[-1]
    with (folder / LOG_NAME).open("ab") as file:
        for number, body in enumerate(
            (
                Fault(
                    worker="w",
                    plan_id=1,
                    reason="hang",
                    text="no answer for 2.0 s",
                    hint="run with --inflight",
                    stderr_tail=["last words"],
                ),
                Notice("warning", "hot"),
            )
        ):
            file.write(to_line(replace(last, kind=body.kind, seq=last.seq + number + 1, source="engine", body=body)))
    yield folder


@asynccontextmanager
async def showing(
    recording: Path, size: tuple[int, int] = (80, 24), at_end: bool = True, **options: object
) -> AsyncIterator[tuple[Fa4topApp, Pilot[str]]]:
    player = Player(recording)
    player.wait_for_index()
    source = ReplaySource(player)
    if at_end:
        source.jump_to(player.duration_s)
    app = Fa4topApp(source=source, recorded=False, hz=10, **options)  # type: ignore[arg-type]
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: bool(app._snapshot.roles) or not at_end)
        await pilot.pause()
        yield app, pilot


async def until(pilot: Pilot[str], condition: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        await asyncio.sleep(0.02)
    await pilot.pause()


def screen_text(app: Fa4topApp) -> str:
    """The screen as characters, like tmux capture-pane."""
    _width, height = app.size
    strips = app.screen._compositor.render_strips()
    assert len(strips) == height
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


@pytest.mark.parametrize("size", SIZES)
async def test_all_that_matters_is_on_the_live_screen(recording: Path, size: tuple[int, int]) -> None:
    async with showing(recording, size) as (app, _):
        text = screen_text(app)
    for words in (
        "SIMULATED",
        "REPLAY",
        "softmax0 period, cycles",
        "a step of softmax0",
        "wait S",
        "timeline, CTA",
        "mma",
        "softma1",
        "corr",
        "TFLOP/s",
        "steps",
        "tile ends",
        "tail",
        "by kernel",
        "no throttling",
        "lost",
        "unmatched",
        "stale",
        "checked",
        "twins",
        "probes +",
        "clean",
        "space",
        "quit",
    ):
        assert words in text, words
    assert text.count("SIMULATED") == 2  # on top, and beside the answer
    assert all(len(line) == size[0] for line in text.splitlines())


async def test_wide_screens_use_their_room(recording: Path) -> None:
    async with showing(recording, (120, 40)) as (app, _):
        text = screen_text(app)
        assert "longest wait" in text and "SMs" in text and "periods of softmax0" in text
    async with showing(recording, (200, 50)) as (app, _):
        assert "log" in screen_text(app) and "no answer for 2.0 s" in screen_text(app)


@pytest.mark.parametrize("size", [(40, 10), (60, 18), (20, 5)])
async def test_small_screens_show_what_they_can(recording: Path, size: tuple[int, int]) -> None:
    async with showing(recording, size) as (app, _):
        assert screen_text(app).strip()


@pytest.mark.parametrize("theme", ["fa4top-dark", "fa4top-light", "fa4top-16"])
async def test_themes(recording: Path, theme: str) -> None:
    async with showing(recording, theme_name=theme) as (app, pilot):
        assert app.theme == theme and "softmax0" in screen_text(app)
        await pilot.press("t")
        assert app.theme != theme


async def test_ascii_mode_is_ascii(recording: Path) -> None:
    for size in SIZES:
        async with showing(recording, size, ascii_only=True) as (app, _):
            panes = [pane for pane in app.screen.query(Lines) if pane.display]
            drawn = "".join(text for pane in panes for row in pane._rows for text, _ in row)
            assert drawn and drawn.isascii(), sorted({c for c in drawn if not c.isascii()})


async def test_keys_of_the_live_screen(recording: Path) -> None:
    async with showing(recording) as (app, pilot):
        await pilot.press("f")
        assert "softmax1 period" in screen_text(app) and "a step of softmax1" in screen_text(app)
        await pilot.press("m")
        assert "clean kernel time" in screen_text(app)
        before = app.view.zoom_steps
        await pilot.press("z")
        assert app.view.zoom_steps < before
        await pilot.press("plus")
        assert app._hz == 10.0
        await pilot.press("minus")
        assert app._hz == 5.0


async def test_the_log_screen_and_back(recording: Path) -> None:
    async with showing(recording) as (app, pilot):
        await pilot.press("8")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        await until(pilot, lambda: len(app.screen.query_one(RichLog).lines) > 5)
        text = screen_text(app)
        assert "hang: no answer for 2.0 s" in text and "last words" in text and "hot" in text
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert "softmax0 period" in screen_text(app)


async def test_help_lists_every_key_and_pane(recording: Path) -> None:
    async with showing(recording, (120, 40), keys={"pause": "u"}) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        words = "\n".join(str(label.render()) for label in app.screen.query(Label))
        assert "  u            pause" in words and "probe" in words and "TimelinePane" in words
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


async def test_replay_holds_jumps_and_changes_pace(recording: Path) -> None:
    async with showing(recording, at_end=False) as (app, pilot):
        source = app._source
        assert isinstance(source, ReplaySource)
        await pilot.press("space")
        assert app.view.paused and source._player.paused
        await pilot.press("right")
        await until(pilot, lambda: bool(app._snapshot.roles))
        assert source._player.position_s == pytest.approx(source._player.duration_s, abs=0.5)
        await pilot.press("left")
        await until(pilot, lambda: not app._snapshot.roles)
        await pilot.press("n")
        await until(pilot, lambda: app._snapshot.losses.launches == 1)
        await pilot.press("n")  # the only numbers of this recording: nothing follows
        await pilot.pause()
        assert app._snapshot.losses.launches == 1
        await pilot.press("full_stop")
        assert source._player.speed == 2.0
        await pilot.press("comma", "comma")
        assert source._player.speed == 0.5


async def test_a_screenshot_is_saved_where_it_says(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with showing(recording) as (_, pilot):
        await pilot.press("p")
        await pilot.pause()
    saved = list(tmp_path.glob("fa4top-*.svg"))
    assert len(saved) == 1 and "SIMULATED" in saved[0].read_text()


async def test_a_replay_just_ends_on_q(recording: Path) -> None:
    async with showing(recording) as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert app.return_value == ""


@pytest.mark.parametrize(("key", "goes_on"), [("s", False), ("d", True)])
async def test_leaving_a_live_session_asks(sim_order: Callable[..., Order], key: str, goes_on: bool) -> None:
    order = sim_order()
    app = Fa4topApp(order=order, hz=10)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(app._snapshot.roles), 30)
        assert "SIMULATED" in screen_text(app) and "rec" in screen_text(app)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, LeaveScreen))
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, LeaveScreen))
        await pilot.press(key)
        await pilot.pause()
    assert app._process is not None
    if goes_on:
        assert f"attach {order.session_id}" in str(app.return_value) and app._process.poll() is None
        connect(order.session_id).ask({"do": "stop"})
    else:
        assert "replay" in str(app.return_value)
    assert app._process.wait(PATIENCE_S) == 0


async def test_pause_and_edit_a_live_session(sim_order: Callable[..., Order]) -> None:
    app = Fa4topApp(order=sim_order(), hz=10)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: bool(app._snapshot.roles), 30)
        await pilot.press("space")
        await until(pilot, lambda: getattr(app._snapshot.engine, "state", "") == "paused")
        await until(pilot, lambda: "PAUSED" in screen_text(app))
        await pilot.press("space")
        await until(pilot, lambda: getattr(app._snapshot.engine, "state", "") == "running")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditScreen))
        app.screen.query_one("#knobs", Input).value = "p_split=1/4"
        await pilot.press("enter")
        await until(pilot, lambda: "--unsafe" in str(app.screen.query_one("#error", Label).render()))
        app.screen.query_one("#shape", Input).value = "s4096 causal"
        app.screen.query_one("#knobs", Input).value = "p_split=1/2"
        await pilot.press("enter")
        await until(pilot, lambda: app._snapshot.plan is not None and app._snapshot.plan.plan_id == 2, 20)
        plan = app._snapshot.plan
        assert plan is not None and plan.shape.causal and plan.shape.seqlen_k == 4096 and plan.knobs["p_split"] == "1/2"
        await until(pilot, lambda: bool(app._snapshot.roles), 20)
        assert isinstance(app._source, object)
        app._source.ask({"do": "stop"})  # type: ignore[union-attr]


async def test_an_engine_that_dies_is_said_and_the_screen_stays(sim_order: Callable[..., Order]) -> None:
    app = Fa4topApp(order=sim_order(), hz=10)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(app._snapshot.roles), 30)
        assert app._process is not None
        app._process.kill()
        app._process.wait()
        await pilot.press("space")
        await until(pilot, lambda: "gone" in app.view.ended, 20)
        assert "Last known" in screen_text(app)


async def test_a_plan_that_can_not_run_keeps_the_screen(sim_order: Callable[..., Order]) -> None:
    app = Fa4topApp(order=sim_order(sim_fault="compile", stay=True), hz=10)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "can not go on" in screen_text(app), 30)
        assert "registers" in screen_text(app) and "faults" in screen_text(app)
        assert app._source is not None and app._source.ask({"do": "stop"})["ok"]  # type: ignore[attr-defined]


async def test_the_palette_offers_our_actions(recording: Path) -> None:
    async with showing(recording) as (app, pilot):
        await pilot.press("ctrl+p")
        await pilot.press(*"metric")
        await until(pilot, lambda: "clean kernel time" in screen_text(app))


async def test_only_what_changed_is_redrawn(recording: Path) -> None:
    async with showing(recording) as (app, pilot):
        regions: list[int] = []
        for pane in app.screen.query(Lines):
            original = pane.refresh

            def refresh(*args: object, _original: Callable[..., object] = original, **kwargs: object) -> object:
                regions.append(len(args))
                return _original(*args, **kwargs)

            pane.refresh = refresh  # type: ignore[method-assign, assignment]
        app.show_again()
        await pilot.pause()
        assert regions == []
