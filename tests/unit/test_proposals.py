"""What a finding proposes: its printed command line, read back, is its job, and the job is legal."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4top.analysis.triage.gathered import Gathered
from fa4top.analysis.triage.steps import triage
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.cli.choose import shape_of
from fa4top.cli.options import RunOptions
from fa4top.orders.command_line import Setting, command_line, short_command
from fa4top.orders.jobs import JOB_TYPES, AbJob, BenchJob, CheckJob, Job, SassJob, SweepJob, TriageJob, job_from_data
from fa4top.orders.typed import settings
from fa4top.records import Plan, TriageFinding, TriageStep
from fa4top.session.reading import read_log
from fa4top.targets.catalog import TARGETS, describe
from fa4top.targets.legal import problems_of
from tests.conftest import ROOT
from tests.unit.test_triage import GPU_NOW, HEALTHY, evidence, kernel, role, swept


def read_back(line: str) -> tuple[Job, Setting]:
    """A command line as its command reads it."""
    program, name, *words = shlex.split(line)
    assert program == "fa4top"
    module = importlib.import_module(f"fa4top.cli.{name.replace('-', '_')}")
    params: dict[str, Any] = module.command.make_context(name, words).params
    known = {key: value for key, value in params.items() if key in RunOptions.__dataclass_fields__}
    options = RunOptions(**known)
    description = describe(options.target)
    arch = params.get("arch", "")
    chosen = settings(options.settings, "--set")
    return module.job_of(params), Setting(options.target, shape_of(description, options), arch, chosen)


def settings_of(job: Job) -> Iterator[dict[str, str]]:
    """The changes of knobs that a job launches."""
    if isinstance(job, (AbJob, CheckJob, SassJob)):
        yield job.a
        yield {**job.a, **job.b}
    elif isinstance(job, SweepJob):
        yield from ({job.knob: value} for value in job.values)
    else:
        yield {}


def holds(job: Job, setting: Setting, arch: str, line: str) -> None:
    """Read back it is the same, and everything that it launches may be launched."""
    again, where = read_back(line)
    assert again == job and where == setting, line
    legal = []
    for changes in settings_of(job):
        knobs, problems = problems_of(setting.target, setting.shape, arch, {**setting.chosen, **changes}, False)
        assert knobs or problems
        legal.append(not problems)
    assert all(legal) if not isinstance(job, SweepJob) else sum(legal) >= 2, line


def recorded() -> Iterator[Any]:
    """(file, finding, the triage's own facts) for all that propose something."""
    for path in sorted((ROOT / "examples").glob("*.jsonl.gz")):
        records = [record.body for record in read_log(path)]
        steps = [body for body in records if isinstance(body, TriageStep)]
        plan = next((body for body in records if isinstance(body, Plan)), None)
        lines: dict[str, TriageFinding] = {f.command: f for step in steps for f in step.findings if f.command}
        for finding in lines.values():
            yield pytest.param(finding, plan, id=f"{path.name}: {finding.key}")


@pytest.mark.parametrize(("finding", "plan"), list(recorded()))
def test_recorded_findings_propose_what_their_line_says(finding: TriageFinding, plan: Plan) -> None:
    job, setting = read_back(finding.command)
    if finding.job:  # recordings of schema 1.3 and before have the line alone
        assert job_from_data(finding.job) == job
    chosen = describe(plan.target).chosen(plan.knobs)
    holds(job, replace(setting, chosen=chosen), plan.arch, finding.command)


CAUSES: dict[str, dict[str, Any]] = {
    "handoff": {"roles": (role("mma", wait_P_2nd=700.0), role("softmax0"))},
    "late P": {"roles": (role("mma", wait_P=900.0), role("softmax0")), "clean_period_cycles": 9000.0},
    "load": {"roles": (role("mma", wait_KV=500.0), role("softmax0"))},
    "clock": {"gpu": replace(GPU_NOW, throttle=["SW power cap"])},
    "clock drop": {"sm_clock_mhz": 1500.0},
    "foreign": {"gpu": replace(GPU_NOW, foreign_pids=[7])},
    "probes": {"traced_us": 440.0},
    "launch": {"host_us": 900.0},
    "recompiling": {"slowest_us": 40_000.0},
    "flaky": {"repeats": HEALTHY.repeats},
    "wrong": {"checks": (replace(HEALTHY.checks[0], passed=False),)},
    "no floor": {"clean_period_cycles": 9000.0},
}
PLACES = [(name, arch) for name, arch in [("fa4", "sm_103a"), ("fa4", "sm_90a"), ("builtin", "sm_90a"), ("sim", "")]]
PLACES.append(("fa4-fork", "sm_103a"))


def gathered_at(target: str, arch: str, snapshot: Snapshot, **more: Any) -> Gathered:
    description = describe(target)
    plan = replace(HEALTHY.plan, target=target, arch=arch, shape=description.default_shape)  # type: ignore[type-var]
    setting = Setting(target, description.default_shape, "", {})
    tries = {cause: description.to_try(cause, arch) for cause in description.tries}
    return Gathered(snapshot=replace(snapshot, plan=plan), setting=setting, tries=tries, **more)


@pytest.mark.parametrize(("target", "arch"), PLACES)
@pytest.mark.parametrize("cause", CAUSES)
def test_every_rule_on_every_target_proposes_what_can_be_run(cause: str, target: str, arch: str) -> None:
    assert set(TARGETS) == {name for name, _ in PLACES}
    e = gathered_at(target, arch or "sm_103a", replace(HEALTHY, **CAUSES[cause]))
    for step in triage(e, 1):
        for finding in step.findings:
            assert bool(finding.command) == bool(finding.job)
            if finding.job:
                job = job_from_data(finding.job)
                assert e.setting is not None
                holds(job, e.setting, arch or "sm_103a", finding.command)


def test_a_cause_that_can_be_tried_is() -> None:
    e = gathered_at("builtin", "sm_90a", replace(HEALTHY, **CAUSES["load"]))
    found = {f.key: f for step in triage(e, 1) for f in step.findings}
    assert found["load"].job["knob"] == "kv_stages", "and its values are those that this chip can hold"
    values = found["load"].job["values"]
    assert "4" not in values and len(values) >= 2


def test_rules_of_sass_propose_its_reading_on_the_chip_that_was_judged() -> None:
    found = kernel()
    spilling = replace(
        found, spills=63, roles=tuple(replace(r, spills=61) if r.name == "softmax" else r for r in found.roles)
    )
    e = evidence(spilling)
    assert HEALTHY.plan is not None and e.setting is not None
    finding = next(f for step in triage(e, 1) for f in step.findings if f.key == "spills")
    job, setting = read_back(finding.command)
    assert job == SassJob() and setting.arch == HEALTHY.plan.arch
    quick = next(f for step in triage(evidence(**swept("faster", -5.0, -4.2)), 1) for f in step.findings if f.job)
    assert read_back(quick.command)[0] == job_from_data(quick.job)


WORDS = st.text("abcXYZ019_.-/ '\"", min_size=1, max_size=8).filter(lambda text: text.strip() == text)
KNOBS = st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), WORDS, max_size=3)
SECONDS = st.floats(0.5, 5000).map(lambda value: round(value, 3))
MARGINS = st.floats(0.001, 0.4).map(lambda value: round(value, 5))
VALUES = st.lists(st.from_regex(r"[a-z0-9/]{1,5}", fullmatch=True), min_size=1, max_size=4, unique=True)
L2 = st.sampled_from(["cold", "warm"])
JOBS = st.one_of(
    st.builds(
        AbJob,
        a=KNOBS,
        b=KNOBS.filter(bool),
        margin=MARGINS,
        budget_s=st.none() | SECONDS,
        until_decided=st.booleans(),
        seed=st.integers(0, 99),
        tier=st.sampled_from([1, 2]),
        pairs=st.integers(2, 1000),
        mode=st.sampled_from(["burst", "sustained"]),
        l2=L2,
        most_blocks=st.integers(0, 50),
    ),
    st.builds(
        SweepJob,
        knob=st.just("knob"),
        values=VALUES,
        series_knob=st.just("other"),
        series=VALUES,
        rounds=st.integers(3, 50),
        margin=MARGINS,
        budget_s=SECONDS,
        fresh=st.integers(0, 9),
        l2=L2,
        seed=st.integers(0, 9),
        most_blocks=st.integers(0, 50),
    ),
    st.builds(CheckJob, a=KNOBS, b=KNOBS, times=st.integers(2, 10_000), bisect=st.booleans()),
    st.builds(
        TriageJob,
        seconds=SECONDS,
        sweep_s=SECONDS,
        times=st.integers(2, 10_000),
        skip=st.lists(st.sampled_from(["trace", "SASS", "split"]), unique=True),
    ),
    st.builds(SassJob, a=KNOBS, b=KNOBS),
    st.builds(BenchJob, names=st.lists(st.sampled_from(["ex2", "cvt"]), max_size=2)),
)


@given(job=JOBS)
def test_every_job_survives_its_command_line(job: Job) -> None:
    setting = Setting("sim", describe("sim").default_shape, "", {"p_split": "1/2"})
    if isinstance(job, BenchJob):  # it has no problem and no setting
        line = short_command(job)
        name, *words = shlex.split(line)[1:]
        module = importlib.import_module(f"fa4top.cli.{name}")
        assert module.job_of(module.command.make_context(name, words).params) == job
        return
    assert read_back(command_line(job, setting)) == (job, setting)


def test_every_job_has_a_command_and_no_default_is_spelled_out() -> None:
    from fa4top.cli.root import COMMANDS

    assert set(JOB_TYPES) <= set(COMMANDS)
    assert short_command(AbJob(b={"x": "1"})) == "fa4top ab --b x=1"
    assert short_command(AbJob()) == "fa4top ab --self-test"
    assert short_command(SweepJob(knob="k", values=["1", "2"])) == "fa4top sweep k=1,2"
    assert short_command(TriageJob()) == "fa4top triage"
    causal = Setting("sim", replace(describe("sim").default_shape, causal=True, dtype="fp16"), "", {})
    assert read_back(command_line(TriageJob(), causal))[1] == causal
