"""All jobs: for each kind what runs it, and why it can not be run here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fa4top.engine.host import Host
from fa4top.engine.jobs.ab import ab_problems, arm_orders, run_ab
from fa4top.engine.jobs.bench import compile_where_nothing_runs, run_bench
from fa4top.engine.jobs.check import check_problems, run_check
from fa4top.engine.jobs.sass import run_sass
from fa4top.engine.jobs.sweep import run_sweep, sweep_problems
from fa4top.engine.jobs.triage import run_triage
from fa4top.orders.jobs import AbJob, BenchJob, CheckJob, Job, SassJob, SweepJob, TriageJob
from fa4top.orders.order import Order
from fa4top.targets.legal import changed_order


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """One job. ``problems``: why it can not be run from this order; ``fit`` adapts it to where it runs;
    ``beside_plan``: may the live plan's workers stay while it runs? ``launches``: settings that it is known to launch,
    by name: one that hung too often is refused."""

    type: type[Job]
    run: Callable[[Host, Any], Awaitable[None]]
    problems: Callable[[Order, Any], list[str]] = lambda order, job: []
    fit: Callable[[Order, Any], Job] = lambda order, job: job
    beside_plan: Callable[[Host, Any], bool] = lambda host, job: False
    launches: Callable[[Order, Any], dict[str, Order]] = lambda order, job: {}


def _a_is_the_plan(host: Host, job: AbJob) -> bool:
    return host.resident(changed_order(host.order, job.a)[0]) is not None


def _arms(order: Order, job: AbJob) -> dict[str, Order]:
    return {f"arm {name}": arm for name, arm in arm_orders(order, job)[0].items()}


JOBS: tuple[JobSpec, ...] = (
    JobSpec(type=BenchJob, run=run_bench, fit=compile_where_nothing_runs),
    JobSpec(type=SweepJob, run=run_sweep, problems=sweep_problems),
    JobSpec(type=AbJob, run=run_ab, problems=ab_problems, beside_plan=_a_is_the_plan, launches=_arms),
    JobSpec(type=CheckJob, run=run_check, problems=check_problems),
    JobSpec(type=TriageJob, run=run_triage),
    JobSpec(type=SassJob, run=run_sass),
)


def spec_of(job: Job) -> JobSpec:
    """What is known of a job's kind."""
    return next(spec for spec in JOBS if spec.type is type(job))
