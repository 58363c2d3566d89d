"""The Textual application: takes snapshots from the feed, keeps the view, turns keys into actions."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.app import SystemCommand
from textual.screen import Screen

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.engine.client import EngineError, start_engine
from fa4top.orders.order import Order
from fa4top.session.paths import LOG_NAME
from fa4top.ui.actions import ACTIONS, bindings, key_map
from fa4top.ui.commands import CommandingApp
from fa4top.ui.driver import ForgivingDriver
from fa4top.ui.feed import Feed, LiveSource, ReplaySource, Source
from fa4top.ui.messages import FeedFailed, SnapshotReady
from fa4top.ui.screens.ab import AbScreen
from fa4top.ui.screens.bench import BenchScreen
from fa4top.ui.screens.form import KnobForm
from fa4top.ui.screens.help import HelpScreen
from fa4top.ui.screens.leave import Answer, LeaveScreen
from fa4top.ui.screens.live import LiveScreen
from fa4top.ui.screens.log import LogScreen
from fa4top.ui.screens.reports import CheckScreen, SassScreen, TriageScreen
from fa4top.ui.screens.sweep import SweepScreen
from fa4top.ui.screens.table import TableScreen
from fa4top.ui.themes import DEFAULT_THEME, load_themes
from fa4top.ui.view import METRICS, ZOOMS, View
from fa4top.ui.widgets.lines import Lines

SCREENS: dict[str, type[Screen[Any]]] = {
    "live": LiveScreen,
    "log": LogScreen,
    "bench": BenchScreen,
    "sweep": SweepScreen,
    "ab": AbScreen,
    "sass": SassScreen,
    "triage": TriageScreen,
    "check": CheckScreen,
}
LOCAL_HZ, SSH_HZ, MIN_HZ, MAX_HZ = 4.0, 2.0, 0.5, 10.0
HANGUP_GRACE_S = 3.0


def default_hz(chosen: float, environment: dict[str, str] | None = None) -> float:
    """Redraws a second: as chosen, else 4, or 2 over SSH."""
    environment = environment if environment is not None else dict(os.environ)
    if chosen > 0:
        return max(MIN_HZ, min(MAX_HZ, chosen))
    return SSH_HZ if environment.get("SSH_CONNECTION") else LOCAL_HZ


class Fa4topApp(CommandingApp):
    """Runs on a live session that it starts or attaches to, or on a recording. Returns a sentence for the shell."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[Any]] = list(bindings())
    TITLE = "fa4top"

    def __init__(
        self,
        *,
        order: Order | None = None,
        source: Source | None = None,
        session_id: str = "",
        recorded: bool = True,
        theme_name: str = DEFAULT_THEME,
        ascii_only: bool = False,
        hz: float = 0.0,
        keys: dict[str, str] | None = None,
        idle_limit_min: float = 15.0,
    ) -> None:
        self._themes = load_themes()
        self._fallback = next(theme.variables for theme in self._themes if theme.name == DEFAULT_THEME)
        super().__init__(driver_class=None if os.environ.get("TEXTUAL_DRIVER") else ForgivingDriver)
        self._order = order
        self._source = source
        self._session_id = order.session_id if order else session_id
        self._recorded = order.record if order else recorded
        self._idle_limit_min = idle_limit_min
        self._keys = keys or {}
        self._theme_name = theme_name
        self._hz = default_hz(hz)
        self._feed: Feed | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._snapshot = Snapshot()
        live = not isinstance(source, ReplaySource)
        self.view = View(ascii_only=ascii_only, recording=live and self._recorded)
        self._shown = 0
        self._actions = {
            key.strip(): action.action for action in ACTIONS for key in key_map(self._keys)[action.id].split(",")
        }
        self._opening: KnobForm | None = None
        self._ahead: list[events.Key | events.Paste] = []
        self._was_paused = False

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own variables have values before a theme of ours is chosen."""
        return self._fallback

    def on_mount(self) -> None:
        """Paint first; the engine starts behind the first frame."""
        for theme in self._themes:
            self.register_theme(theme.to_textual())
        self.theme = self._theme_name
        self.set_keymap(key_map(self._keys))
        for name, screen in SCREENS.items():
            self.install_screen(screen(), name)
        self.push_screen("live")
        self._catch_signals()
        self.app_resume_signal.subscribe(self, lambda _: self._hold(False))
        self.call_after_refresh(self._start_session)

    def _start_session(self) -> None:
        if self._source is None and self._order is not None:
            try:
                self._process = start_engine(self._order)
            except EngineError as error:
                self.exit(f"fa4top: {error}", return_code=4)
                return
            self._source = LiveSource(self._session_id, Path(self._order.folder) / LOG_NAME, self._process)
        if self._source is not None:
            self._feed = Feed(self._source, self.post_message, self._hz, lambda: self._shown)
            self._feed.start()

    def _catch_signals(self) -> None:
        """A dropped line or a TERM detaches: the engine lives in a session of its own and goes on."""
        import asyncio

        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self._hang_up, number)
            except (NotImplementedError, RuntimeError, ValueError):
                return  # not in the main thread (tests)

    def _hang_up(self, number: int) -> None:
        # when the terminal is gone, writing to it may block for ever
        threading.Thread(target=_leave_soon, daemon=True).start()
        self.exit(self._goes_on() if number == signal.SIGTERM else None, return_code=0)

    def _goes_on(self) -> str:
        return (
            ""
            if isinstance(self._source, ReplaySource)
            else (f"detached; the session goes on: fa4top attach {self._session_id}")
        )

    def on_unmount(self) -> None:
        """The thread ends with the app."""
        if self._feed is not None:
            self._feed.stop()

    def on_snapshot_ready(self, message: SnapshotReady) -> None:
        """Show it on the screen in front; the others are not touched."""
        self._snapshot = message.snapshot
        if not message.replay and message.snapshot.engine is not None:
            # another viewer may have paused it
            self.view = replace(self.view, paused=message.snapshot.engine.state == "paused")
        self.view = replace(self.view, replay=message.replay, blocked=message.blocked, ended=message.ended)
        self.show_again()
        self._shown = message.number

    def on_feed_failed(self, message: FeedFailed) -> None:
        """Nothing more to show."""
        self.exit(f"fa4top: {message.text}", return_code=4)

    def show_again(self) -> None:
        """The last snapshot on the screen in front; there is none when the app ends."""
        screen = self.screen_stack[-1] if self.screen_stack else None
        if isinstance(screen, (LiveScreen, LogScreen, TableScreen)):
            screen.show(self._snapshot, self.view)

    async def on_event(self, event: events.Event) -> None:
        """Keys become actions here, one by one, not in the screens' own queues: what a person types behind a key that
        opens a form must find the form, not the screen that was there when it came."""
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded and await self._takes(event):
            return
        await super().on_event(event)

    async def _takes(self, event: events.Key | events.Paste) -> bool:
        screen = self.screen
        if self._opening is not None and self._opening is screen:
            self._ahead.append(event)
            return True
        if isinstance(event, events.Paste):
            return False
        if isinstance(screen, KnobForm) and event.key in ("tab", "shift+tab"):
            # at once: the keys behind it are the next line's
            screen.focus_next() if event.key == "tab" else screen.focus_previous()
            return True
        if screen.is_modal or event.key not in self._actions:
            return False
        await self.run_action(self._actions[event.key])
        return True

    def open_form(self, form: KnobForm) -> None:
        """Show it, and keep what is typed until it can take it."""
        self._opening, self._ahead = form, []
        self.push_screen(form)

    async def on_knob_form_opened(self, message: KnobForm.Opened) -> None:
        """Its first line has the focus: give it what was typed ahead."""
        ahead, self._ahead, self._opening = self._ahead, [], None
        for event in ahead:
            await self.on_event(event)

    def on_screen_resume(self) -> None:
        """A screen that comes to the front has an old picture."""
        self.show_again()

    def action_screen(self, name: str) -> None:
        """Show a screen by name."""
        self.switch_screen(name)
        self.call_later(self.show_again)

    def action_focus_role(self) -> None:
        """Next role."""
        names = [role.role for role in self._snapshot.roles]
        if names:
            lead = self._snapshot.lead
            now = self.view.role or (lead.role if lead else names[0])
            following = names[(names.index(now) + 1) % len(names)] if now in names else names[0]
            self.view = replace(self.view, role=following)
            self.show_again()

    def action_metric(self) -> None:
        """Other metric in the graph."""
        self.view = replace(self.view, metric=METRICS[(METRICS.index(self.view.metric) + 1) % len(METRICS)])
        self.show_again()

    def action_zoom(self) -> None:
        """Fewer steps in the timeline, then all again."""
        index = ZOOMS.index(self.view.zoom_steps)
        self.view = replace(self.view, zoom_steps=ZOOMS[(index + 1) % len(ZOOMS)])
        self.show_again()

    def action_refresh_rate(self, factor: float) -> None:
        """Redraw more or less often."""
        self._hz = max(MIN_HZ, min(MAX_HZ, self._hz * factor))
        if self._feed is not None:
            self._feed.hz = self._hz
        self.notify(f"{self._hz:g} redraws a second", timeout=2)

    def _hold(self, on: bool) -> None:
        """Suspended to the shell: no launches meanwhile, unless the person had paused anyway."""
        if isinstance(self._source, LiveSource):
            if on:
                self._was_paused = self.view.paused
                self._source.ask({"do": "pause"})
            elif not self._was_paused:
                self._source.ask({"do": "resume"})

    def action_suspend(self) -> None:
        """To the shell and back by fg."""
        # not by the suspend signal: its subscribers run after the process has stopped
        self._hold(True)
        self.action_suspend_process()

    def action_seek(self, seconds: float) -> None:
        """Jump in a replay."""
        if isinstance(self._source, ReplaySource):
            self._source.jump(seconds)
            if self._feed is not None:
                self._feed.nudge()

    def action_next_numbers(self) -> None:
        """Past what has no numbers, in a replay."""
        if isinstance(self._source, ReplaySource):
            if why_not := self._source.jump_to_numbers():
                self.notify(why_not, timeout=2)
            elif self._feed is not None:
                self._feed.nudge()

    def action_speed(self, factor: float) -> None:
        """Pace of a replay."""
        if isinstance(self._source, ReplaySource):
            self._source.change_speed(factor)

    def action_next_theme(self) -> None:
        """Cycle through our themes."""
        names = [theme.name for theme in self._themes]
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self.notify(f"theme {self.theme}", timeout=2)

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        """Save an SVG and say where."""
        try:
            saved = self.save_screenshot(filename or time.strftime("fa4top-%Y%m%d-%H%M%S.svg"), path or os.getcwd())
        except OSError as error:
            self.notify(f"the picture can not be saved: {error.strerror}", severity="error")
            return
        self.notify(f"saved {saved}")

    def action_help(self) -> None:
        """Keys and panes."""
        self.push_screen(HelpScreen(list(self.screen.query(Lines)), self._keys))

    def action_leave(self) -> None:
        """A replay just ends; a live session asks."""
        if isinstance(self.screen, LeaveScreen):
            self.exit("")
            return
        if not isinstance(self._source, LiveSource):
            self.exit("")
            return
        if self.view.ended:
            self.exit(f"recorded: fa4top replay {self._order.folder}" if self._order and self._recorded else "")
            return
        self.push_screen(LeaveScreen(self._session_id, self._recorded, self._idle_limit_min), self._left)

    def _left(self, answer: Answer | None) -> None:
        if answer == "stop" and isinstance(self._source, LiveSource):
            self._source.ask({"do": "stop"})
            folder = self._order.folder if self._order else self._session_id
            self.exit(f"stopped; recorded: fa4top replay {folder}" if self._recorded else "stopped; nothing was kept")
        elif answer == "detach":
            self.exit(self._goes_on())

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette offers what the registry has."""
        yield from super().get_system_commands(screen)
        for action in ACTIONS:
            if action.id not in ("palette", "suspend", "screenshot", "quit", "help"):
                yield SystemCommand(action.label, action.description, self._runner(action.action))

    def _runner(self, action: str) -> Any:
        async def run() -> None:
            await self.run_action(action)

        return run


def _leave_soon() -> None:
    time.sleep(HANGUP_GRACE_S)
    os._exit(0)
