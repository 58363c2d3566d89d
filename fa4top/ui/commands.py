"""What a person asks of a live session from its screens: jobs, other plans, pauses. The app adds the looking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from textual import work
from textual.app import App

from fa4top.analysis.view.experiments import next_experiments
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.words import changed_knobs
from fa4top.orders.jobs import AbJob, BenchJob, CheckJob, Job, SassJob, TriageJob, job_from_data, job_to_data
from fa4top.orders.order import Order
from fa4top.orders.shapes import format_shape
from fa4top.records import Plan
from fa4top.targets.catalog import describe
from fa4top.targets.legal import plan_record
from fa4top.ui.feed import LiveSource, ReplaySource, Source
from fa4top.ui.screens.ab import AbForm, AbScreen, ab_job
from fa4top.ui.screens.edit import EditScreen, change
from fa4top.ui.screens.form import KnobForm
from fa4top.ui.screens.reports import CheckScreen, SassScreen, TriageScreen
from fa4top.ui.screens.sweep import SweepForm, sweep_job
from fa4top.ui.view import View

Typed = dict[str, str]


class CommandingApp(App[str]):
    """An app with a session to command; what it shows is another matter."""

    view: View
    _order: Order | None
    _source: Source | None
    _snapshot: Snapshot

    def action_screen(self, name: str) -> None:
        """Show a screen by name."""
        raise NotImplementedError

    def show_again(self) -> None:
        """The view has changed."""
        raise NotImplementedError

    def _live(self, verb: str) -> LiveSource | None:
        if isinstance(self._source, LiveSource):
            return self._source
        self.notify(f"only a live session can {verb}", severity="warning")
        return None

    def _plan(self) -> Plan | None:
        """The present plan; before the engine has said it, what was ordered."""
        if self._snapshot.plan is not None:
            return self._snapshot.plan
        return plan_record(self._order, 0) if self._order is not None else None

    @work(thread=True, exclusive=True, group="command")
    def _command(self, command: dict[str, object]) -> None:
        if isinstance(self._source, LiveSource):
            answer = self._source.ask(command)
            if not answer.get("ok"):
                self.call_from_thread(self.notify, str(answer.get("error")), severity="error")

    def _start(self, job: Job) -> None:
        if self._live("do this") is not None:
            self._command({"do": "job", "job": job_to_data(job)})

    def action_run(self) -> None:
        """What the screen in front is for. On the live screen: measure the instructions."""
        state = self._snapshot.ab
        screen = self.screen
        if isinstance(screen, AbScreen):
            if state is None or not isinstance(self._source, LiveSource):
                self.notify("there is no A/B to replicate", severity="warning")
                return
            self._start(AbJob(a=state.a, b=state.b, tier=2, margin=state.margin, mode=state.mode, l2=state.l2))
        elif isinstance(screen, TriageScreen):
            self._start(TriageJob())
        elif isinstance(screen, SassScreen):
            a, b = self._arms()
            self._start(SassJob(a=a, b=b))
        elif isinstance(screen, CheckScreen):
            a, b = self._arms()
            self._start(CheckJob(a=a, b=b))
        else:
            self.action_run_bench()

    def _arms(self) -> tuple[dict[str, str], dict[str, str]]:
        """Where an A/B is on screen 2: what its arms set otherwise than each other."""
        state = self._snapshot.ab
        if state is None:
            return {}, {}
        changed = changed_knobs(state.a, state.b)
        return {name: state.a[name] for name in changed if name in state.a}, changed

    def action_next_experiment(self) -> None:
        """Run what the triage suggests first: the very job that its finding carries."""
        found = next(iter(next_experiments(self._snapshot.triage_steps)), None)
        if not isinstance(self.screen, TriageScreen) or found is None:
            return
        if not found.job:
            self.notify(f"run it yourself: {found.command}", severity="warning")
            return
        if self._live("run it") is not None:
            job = job_from_data(found.job)
            self._start(job)
            self.action_screen(job.kind)

    def action_run_bench(self) -> None:
        """Measure the instructions; the live plan goes on afterwards."""
        if self._live("measure") is not None:
            self._start(BenchJob())
            self.action_screen(BenchJob.kind)

    def action_sweep(self) -> None:
        """The form of a sweep."""
        self._open("sweep", lambda plan: SweepForm(describe(plan.target), self._job_sender(sweep_job)))

    def action_compare(self) -> None:
        """The form that says what B is."""
        before = self._snapshot.ab
        self._open("compare", lambda plan: AbForm(plan, describe(plan.target), self._job_sender(ab_job), before))

    def action_edit(self) -> None:
        """Another plan."""
        self._open("be changed", lambda plan: EditScreen(plan, describe(plan.target), self._plan_sender(plan)))

    def _open(self, verb: str, form: Callable[[Plan], KnobForm]) -> None:
        if self._live(verb) is None:
            return
        plan = self._plan()
        if plan is None:
            self.notify("the engine has not said yet what runs; try again", severity="warning")
            return
        self.open_form(form(plan))

    def open_form(self, form: KnobForm) -> None:
        """Show it; what is typed from now on belongs to it."""
        raise NotImplementedError

    def _job_sender(self, job_of: Callable[..., Job]) -> Callable[[Typed], str]:
        """What a form calls: sends the job and shows its screen, or returns why not."""

        def send(typed: Typed) -> str:
            try:
                job = job_of(**typed)
            except ValueError as error:
                return str(error)
            error_text = self._ask({"do": "job", "job": job_to_data(job)})
            if not error_text:
                self.call_later(self.action_screen, job.kind)
            return error_text

        return send

    def _plan_sender(self, plan: Plan) -> Callable[[Typed], str]:
        def send(typed: Typed) -> str:
            try:
                shape, knobs = change(plan, **typed)
            except ValueError as error:
                return str(error)
            problem = {"shape": format_shape(shape), "causal": shape.causal, "dtype": shape.dtype}
            return self._ask({"do": "plan", **problem, "knobs": knobs})

        return send

    def _ask(self, command: dict[str, Any]) -> str:
        """Send it; '' when it was taken, else why not."""
        source = self._source
        assert isinstance(source, LiveSource)
        answer = source.ask(command)
        return "" if answer.get("ok") else str(answer.get("error"))

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

    def action_pause(self) -> None:
        """Live: stop launching. Replay: hold."""
        if isinstance(self._source, ReplaySource):
            self.view = replace(self.view, paused=self._source.pause())
            self.show_again()
        else:
            self._command({"do": "resume" if self.view.paused else "pause"})
