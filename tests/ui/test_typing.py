"""What a fast pair of hands does: closing a dialog in the same tick as a snapshot, typing ahead of a form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from fa4top.orders.jobs import AbJob
from fa4top.orders.order import Order
from fa4top.session.playing import Player
from fa4top.ui.app import Fa4topApp
from fa4top.ui.feed import LiveSource, ReplaySource
from fa4top.ui.screens.ab import AbForm
from fa4top.ui.screens.edit import EditScreen
from fa4top.ui.screens.sweep import SweepForm
from tests.conftest import ROOT
from tests.ui.test_jobs import until

pytestmark = pytest.mark.usefixtures("copies")
Make = Callable[..., Order]
Live = tuple[Fa4topApp, Pilot[str], list[dict[str, Any]]]
LIVE = ROOT / "examples" / "h200-live.jsonl.gz"


class Small(ModalScreen[None]):
    """A dialog that costs little to open."""

    BINDINGS = [("escape", "dismiss", "close")]


async def test_no_closing_of_a_dialog_stops_the_screens() -> None:
    """A snapshot and the key that closes a dialog in one tick, 200 times: the screens go on."""
    player = Player(LIVE)
    player.wait_for_index()
    source = ReplaySource(player)
    app = Fa4topApp(source=source, recorded=False, hz=200.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app._snapshot.records > 0)
        feed = app._feed
        assert feed is not None
        seen = 0
        for number in range(200):
            app.push_screen(Small())
            while not isinstance(app.screen, Small):
                await asyncio.sleep(0)
            source.jump_to(0.02 * number)  # a new picture is on its way
            feed.nudge()
            app.post_message(Key("escape", None))
            while isinstance(app.screen, Small):
                await asyncio.sleep(0)
            seen = feed._sent
        source.jump_to(player.duration_s)
        feed.nudge()
        await until(pilot, lambda: feed._sent > seen and bool(app._snapshot.roles))


@asynccontextmanager
async def live(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Fa4topApp, Pilot[str], list[dict]]]:  # type: ignore[type-arg]
    """A live session whose commands are kept instead of sent."""
    asked: list[dict] = []  # type: ignore[type-arg]

    def ask(self: LiveSource, command: dict) -> dict:  # type: ignore[type-arg]
        asked.append(command)
        return {"ok": True}

    app = Fa4topApp(order=order, hz=10.0)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: bool(app._snapshot.roles))
        monkeypatch.setattr(LiveSource, "ask", ask)
        yield app, pilot, asked
        monkeypatch.undo()
        app._process.kill()  # type: ignore[union-attr]


def type_at_once(app: Fa4topApp, *keys: str) -> None:
    """All keys before the first one is looked at."""
    names = {"=": "equals_sign", "/": "slash", "_": "underscore", " ": "space", ",": "comma"}
    for key in keys:
        if len(key) > 1 and key.isalpha():
            app.post_message(Key(key, None))
        else:
            app.post_message(Key(names.get(key, key), key))


async def test_a_form_takes_what_is_typed_ahead_of_it(sim_order: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async with live(sim_order(stay=True), monkeypatch) as (app, pilot, asked):
        type_at_once(app, "b", *"p_split=1/2", "enter")
        await until(pilot, lambda: any(command.get("do") == "job" for command in asked))
        job = next(command["job"] for command in asked if command["do"] == "job")
        assert job["b"] == {"p_split": "1/2"} and job["a"] == {} and job["kind"] == AbJob.kind
        await until(pilot, lambda: not isinstance(app.screen, AbForm))


async def test_letters_of_a_text_are_no_commands(sim_order: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async with live(sim_order(stay=True), monkeypatch) as (app, pilot, asked):
        type_at_once(app, "b", *"spq")
        await until(pilot, lambda: isinstance(app.screen, AbForm) and app.screen.query_one("#b", Input).value == "spq")
        type_at_once(app, "enter")
        await until(pilot, lambda: "write KNOB=VALUE" in str(app.screen.query_one("#error", Label).render()))
        assert asked == [], "a refused line asks nothing"
        type_at_once(app, "escape")
        await until(pilot, lambda: not isinstance(app.screen, AbForm))
        assert not isinstance(app.screen, SweepForm) and asked == []


async def test_an_edit_that_can_not_be_is_refused_where_it_was_typed(
    sim_order: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live(sim_order(stay=True), monkeypatch) as (app, pilot, asked):
        type_at_once(app, "e")
        await until(pilot, lambda: isinstance(app.screen, EditScreen))
        line = next(iter(app.screen.query(Input)))
        for typed, says in (("b1 s4096 h24 d128 fp64", "fp64"), ("b1 s4096 h24 d128 nonsense", "nonsense")):
            line.value = typed
            await pilot.press("enter")
            await until(pilot, lambda says=says: says in str(app.screen.query_one("#error", Label).render()))  # type: ignore[misc]
            assert isinstance(app.screen, EditScreen) and asked == []
        line.value = "b1 s4096 h24 d128 causal"
        await pilot.press("enter")
        await until(pilot, lambda: bool(asked))
        assert "4096" in str(asked[0])
