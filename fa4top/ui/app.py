"""The Textual application: takes snapshots from the feed, keeps the view, turns keys into commands."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual.app import App, SystemCommand
from textual.screen import Screen

from fa4top.analysis.fold import Snapshot
from fa4top.analysis.triage import next_experiments
from fa4top.analysis.verdict import lead_role
from fa4top.engine.jobs import job_of_command, job_to_data, knob_values, margin_share
from fa4top.engine.order import Order
from fa4top.engine.start import EngineError, start_engine
from fa4top.records import Plan
from fa4top.session.paths import LOG_NAME
from fa4top.targets.catalog import describe
from fa4top.ui.actions import bindings, key_map
from fa4top.ui.feed import Feed, LiveSource, ReplaySource, Source
from fa4top.ui.messages import FeedFailed, SnapshotReady
from fa4top.ui.screens.ab import AbForm, AbScreen
from fa4top.ui.screens.bench import BenchScreen, TableScreen
from fa4top.ui.screens.edit import Change, EditScreen
from fa4top.ui.screens.help import HelpScreen
from fa4top.ui.screens.leave import Answer, LeaveScreen
from fa4top.ui.screens.live import LiveScreen
from fa4top.ui.screens.log import LogScreen
from fa4top.ui.screens.reports import CheckScreen, SassScreen, TriageScreen
from fa4top.ui.screens.sweep import SweepForm, SweepScreen
from fa4top.ui.themes import DEFAULT_THEME, load_themes
from fa4top.ui.view import METRICS, ZOOMS, View
from fa4top.ui.widgets.lines import Lines

LOCAL_HZ, SSH_HZ, MIN_HZ, MAX_HZ = 4.0, 2.0, 0.5, 10.0
HANGUP_GRACE_S = 3.0
AB_REPLICATE_S = 900.0  # how long a replication may take
AB_WATCH_S = 120.0  # how long an A/B started from the screens goes on after its verdict


def default_hz(chosen: float, environment: dict[str, str] | None = None) -> float:
    """Redraws a second: as chosen, else 4, or 2 over SSH."""
    environment = environment if environment is not None else dict(os.environ)
    if chosen > 0:
        return max(MIN_HZ, min(MAX_HZ, chosen))
    return SSH_HZ if environment.get("SSH_CONNECTION") else LOCAL_HZ


class Fa4topApp(App[str]):
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
        super().__init__()
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
        self._live_screen = LiveScreen()
        self._log_screen = LogScreen()
        self._bench_screen = BenchScreen()
        self._sweep_screen = SweepScreen()
        self._ab_screen = AbScreen()
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
        self.install_screen(self._live_screen, "live")
        self.install_screen(self._log_screen, "log")
        self.install_screen(self._bench_screen, "bench")
        self.install_screen(self._sweep_screen, "sweep")
        self.install_screen(self._ab_screen, "ab")
        self.install_screen(SassScreen(), "sass")
        self.install_screen(TriageScreen(), "triage")
        self.install_screen(CheckScreen(), "check")
        self.push_screen("live")
        self._catch_signals()
        self.app_resume_signal.subscribe(self, lambda _: self._hold(False))
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        if self._source is None and self._order is not None:
            try:
                self._process = start_engine(self._order)
            except EngineError as error:
                self.exit(f"fa4top: {error}", return_code=4)
                return
            self._source = LiveSource(self._session_id, Path(self._order.folder) / LOG_NAME, self._process)
        if self._source is not None:
            self._feed = Feed(self._source, self.post_message, self._hz)
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
        self._show()
        if self._feed is not None:
            # free the feed only when this frame was painted: that is what makes a slow terminal drop frames
            self.call_after_refresh(self._feed.taken.set)

    def on_feed_failed(self, message: FeedFailed) -> None:
        """Nothing more to show."""
        self.exit(f"fa4top: {message.text}", return_code=4)

    def _show(self) -> None:
        screen = self.screen
        if isinstance(screen, (LiveScreen, LogScreen, TableScreen)):
            screen.show(self._snapshot, self.view)

    def on_screen_resume(self) -> None:
        """A screen that comes to the front has an old picture."""
        self._show()

    def action_screen(self, name: str) -> None:
        """Show a screen by name."""
        self.switch_screen(name)
        self.call_after_refresh(self._show)

    def action_focus_role(self) -> None:
        """Next role."""
        names = [role.role for role in self._snapshot.roles]
        if names:
            lead = lead_role(self._snapshot.roles)
            now = self.view.role or (lead.role if lead else names[0])
            following = names[(names.index(now) + 1) % len(names)] if now in names else names[0]
            self.view = replace(self.view, role=following)
            self._show()

    def action_metric(self) -> None:
        """Other metric in the graph."""
        self.view = replace(self.view, metric=METRICS[(METRICS.index(self.view.metric) + 1) % len(METRICS)])
        self._show()

    def action_zoom(self) -> None:
        """Fewer steps in the timeline, then all again."""
        index = ZOOMS.index(self.view.zoom_steps)
        self.view = replace(self.view, zoom_steps=ZOOMS[(index + 1) % len(ZOOMS)])
        self._show()

    def action_refresh_rate(self, factor: float) -> None:
        """Redraw more or less often."""
        self._hz = max(MIN_HZ, min(MAX_HZ, self._hz * factor))
        if self._feed is not None:
            self._feed.hz = self._hz
        self.notify(f"{self._hz:g} redraws a second", timeout=2)

    @work(thread=True, exclusive=True, group="command")
    def _command(self, command: dict[str, object]) -> None:
        if isinstance(self._source, LiveSource):
            answer = self._source.ask(command)
            if not answer.get("ok"):
                self.call_from_thread(self.notify, str(answer.get("error")), severity="error")

    def action_pause(self) -> None:
        """Live: stop launching. Replay: hold."""
        if isinstance(self._source, ReplaySource):
            self.view = replace(self.view, paused=self._source.pause())
            self._show()
        else:
            self._command({"do": "resume" if self.view.paused else "pause"})

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
            if not self._source.jump_to_numbers():
                self.notify("no other numbers follow", timeout=2)
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

    def action_run(self) -> None:
        """What the screen in front is for. On the live screen: measure the instructions."""
        state = self._snapshot.ab
        for screen, kind in ((SassScreen, "sass"), (TriageScreen, "triage"), (CheckScreen, "check")):
            if isinstance(self.screen, screen):
                self._run_report(kind)
                return
        if not isinstance(self.screen, AbScreen):
            self.action_run_bench()
        elif state is None or not isinstance(self._source, LiveSource):
            self.notify("there is no A/B to replicate", severity="warning")
        else:
            job = {
                "kind": "ab",
                "a": state.a,
                "b": state.b,
                "margin": state.margin,
                "mode": state.mode,
                "l2": state.l2,
                "tier": 2,
                "budget_s": AB_REPLICATE_S,
            }
            self._command({"do": "job", "job": job})

    def _run_report(self, kind: str) -> None:
        """SASS, triage or check of the present setting; where an A/B is on screen 2, of both arms."""
        plan = self._plan_to_change("run this")
        if plan is None:
            return
        job: dict[str, Any] = {"kind": kind}
        state = self._snapshot.ab
        if state is not None and state.state != "cleared" and kind in ("sass", "check"):
            changed = {name: value for name, value in state.b.items() if state.a.get(name) != value}
            job |= {"a": {name: state.a[name] for name in changed}, "b": changed}
        self._command({"do": "job", "job": job})

    def action_next_experiment(self) -> None:
        """Run what the triage suggests first."""
        command = next(iter(next_experiments(self._snapshot)), "")
        job = job_of_command(command)
        if not isinstance(self.screen, TriageScreen) or not command:
            return
        if job is None or self._plan_to_change("run it") is None:
            self.notify(f"run it yourself: {command}", severity="warning")
            return
        self._command({"do": "job", "job": job_to_data(job)})
        self.action_screen(job.kind)

    def action_run_bench(self) -> None:
        """Measure the instructions; the live plan goes on afterwards."""
        if not isinstance(self._source, LiveSource):
            self.notify("only a live session can measure", severity="warning")
            return
        self._command({"do": "job", "job": {"kind": "bench"}})
        self.action_screen("bench")

    def action_sweep(self) -> None:
        """The form of a sweep."""
        plan = self._plan_to_change("sweep")
        if plan is not None:
            self.push_screen(SweepForm(describe(plan.target), self._job_sender("sweep", sweep_fields)))

    def action_compare(self) -> None:
        """The form that says what B is."""
        plan = self._plan_to_change("compare")
        if plan is not None:
            self.push_screen(AbForm(plan, describe(plan.target), self._job_sender("ab", ab_fields), self._snapshot.ab))

    def _plan_to_change(self, verb: str) -> Plan | None:
        """The present plan of a live session; says so where there is none."""
        plan = self._snapshot.plan
        if plan is None or not isinstance(self._source, LiveSource):
            self.notify(f"only a live session can {verb}", severity="warning")
            return None
        return plan

    def _job_sender(self, kind: str, fields_of: Callable[..., dict[str, Any]]) -> Callable[[dict[str, str]], str]:
        """What a form calls: sends the job and shows its screen, or returns why not."""
        source = self._source
        assert isinstance(source, LiveSource)

        def send(typed: dict[str, str]) -> str:
            try:
                job = {"kind": kind, **fields_of(**typed)}
            except ValueError as error:
                return str(error)
            answer = source.ask({"do": "job", "job": job})
            if not answer.get("ok"):
                return str(answer.get("error"))
            self.call_after_refresh(self.action_screen, kind)
            return ""

        return send

    def action_promote(self) -> None:
        """B's setting becomes the live plan."""
        state = self._snapshot.ab
        if state is None or not isinstance(self._source, LiveSource):
            self.notify("there is no B to promote", severity="warning")
            return
        self._command({"do": "plan", "shape": "", "knobs": state.b})

    def action_clear(self) -> None:
        """End the A/B and forget it."""
        if self._snapshot.ab is None or not isinstance(self._source, LiveSource):
            self.notify("there is no A/B to clear", severity="warning")
            return
        self._command({"do": "clear"})

    def action_edit(self) -> None:
        """Another plan."""
        plan = self._snapshot.plan
        if plan is None or not isinstance(self._source, LiveSource):
            self.notify("only a live session can be changed", severity="warning")
            return
        source = self._source

        def send(change: Change) -> str:
            answer = source.ask(
                {
                    "do": "plan",
                    "shape": change.shape,
                    "causal": change.causal,
                    "dtype": change.dtype,
                    "knobs": change.knobs,
                }
            )
            return "" if answer.get("ok") else str(answer.get("error"))

        self.push_screen(EditScreen(plan, describe(plan.target), send))

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
        from fa4top.ui.actions import ACTIONS

        yield from super().get_system_commands(screen)
        for action in ACTIONS:
            if action.id not in ("palette", "suspend", "screenshot", "quit", "help"):
                yield SystemCommand(action.label, action.description, self._runner(action.action))

    def _runner(self, action: str) -> Any:
        async def run() -> None:
            await self.run_action(action)

        return run


def ab_fields(b: str, margin: str, mode: str = "burst") -> dict[str, Any]:
    """What was typed into the form of an A/B, as fields of its job.

    Raises:
        ValueError: with the sentence for the person.
    """
    knobs = {}
    for word in b.split():
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise ValueError(f"'{word}': write KNOB=VALUE, for example p_split=1/2")
        knobs[name] = value
    if mode not in ("burst", "sustained"):
        raise ValueError(f"mode '{mode}': write burst or sustained")
    return {"b": knobs, "margin": margin_share(margin), "until_decided": False, "budget_s": AB_WATCH_S, "mode": mode}


def sweep_fields(values: str, series: str) -> dict[str, Any]:
    """``KNOB=VALUE,VALUE`` twice, as fields of a sweep; the second may be empty.

    Raises:
        ValueError: with the sentence for the person.
    """
    knob, chosen = knob_values(values)
    fields: dict[str, Any] = {"knob": knob, "values": chosen}
    if series:
        fields["series_knob"], fields["series"] = knob_values(series)
    return fields


def _leave_soon() -> None:
    time.sleep(HANGUP_GRACE_S)
    os._exit(0)
