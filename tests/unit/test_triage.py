"""Triage: every rule on evidence that has its cause and on evidence that has not; planted causes on the sim device."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fa4top.analysis.sass.kernel import KernelSass, read_kernel
from fa4top.analysis.triage.gathered import Gathered
from fa4top.analysis.triage.steps import answer, triage
from fa4top.analysis.view.account import Account
from fa4top.analysis.view.experiments import next_experiments
from fa4top.analysis.view.results import results
from fa4top.analysis.view.snapshot import RoleView, Snapshot
from fa4top.cli.formats.html import page
from fa4top.cli.formats.markdown import document
from fa4top.cli.formats.report import write_report
from fa4top.cli.triage import command
from fa4top.orders.command_line import Setting
from fa4top.orders.jobs import AbJob, SassJob, TriageJob, job_from_data, job_to_data
from fa4top.orders.order import Order
from fa4top.records import (
    Check,
    Geometry,
    GpuSample,
    Plan,
    Repeats,
    Shape,
    StepWork,
    SweepPoint,
    SweepState,
    TriageRun,
    TriageStep,
)
from fa4top.targets.base import attention_flops
from fa4top.targets.catalog import describe
from tests.conftest import ROOT
from tests.inline import run_order

Make = Callable[..., Order]
SHAPE = Shape(batch=1, seqlen_q=8192, seqlen_k=8192, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)
GEOMETRY = Geometry(
    grid_ctas=148,
    sm_count=148,
    ctas_per_sm=1,
    tiles=768,
    steps_per_tile=64,
    steps_longest=384,
    persistent=True,
    flops=attention_flops(SHAPE),
    work=StepWork(qk_format="bf16", pv_format="bf16", exp2_per_element=1.0),
)


def role(name: str, **waits: float) -> RoleView:
    causes = tuple((cause.replace("_", " "), cycles) for cause, cycles in waits.items())
    busy = 2100.0 - sum(waits.values())
    return RoleView(
        role=name,
        series=(),
        now_cycles=2100.0,
        median_cycles=2100.0,
        p5_cycles=2000.0,
        p95_cycles=2200.0,
        busy_cycles=busy,
        waits_cycles=causes,
        steps=64,
        tile_overhead_cycles=None,
    )


HEALTHY = Snapshot(
    plan=Plan(
        plan_id=1,
        target="fa4",
        device="NVIDIA GB300",
        gpu_uuid="GPU-1",
        arch="sm_103a",
        shape=SHAPE,
        knobs={},
        seed=0,
        simulated=False,
    ),
    geometry=GEOMETRY,
    checks=(
        Check(
            worker="w",
            plan_id=1,
            twin="clean",
            passed=True,
            rows=24,
            max_error=0.01,
            rms_error=0.002,
            limit=0.01,
            output_hash="a",
            text="24 rows against FP32: fine",
        ),
    ),
    clean_us=400.0,
    traced_us=402.0,
    slowest_us=430.0,
    host_us=6.0,
    sm_clock_mhz=1900.0,
    clean_period_cycles=2150.0,
    tflops=2000.0,
    roles=(role("mma", wait_P=100.0, wait_P_2nd=20.0, wait_KV=10.0), role("softmax0", wait_S=90.0), role("softmax1")),
    account=Account(0.97, 0.02, 0.01),
    gpu=GpuSample(
        gpu_uuid="GPU-1",
        name="GB300",
        sm_clock_mhz=1920.0,
        mem_clock_mhz=None,
        power_w=900.0,
        power_limit_w=1300.0,
        temperature_c=50.0,
        memory_used_mib=None,
        memory_total_mib=None,
        throttle=[],
        foreign_pids=[],
    ),
)


SETTING = Setting(target="fa4", shape=SHAPE, arch="sm_103a")
TRIES = {"handoff": ("split_P_arrive", ["32", "64", "96"])}


def evidence(sass: KernelSass | None = None, **changes: object) -> Gathered:
    snapshot = replace(HEALTHY, **changes)  # type: ignore[arg-type]
    return Gathered(snapshot=snapshot, setting=SETTING, sass=sass, tries=TRIES)


def keys(e: Gathered) -> set[str]:
    return {finding.key for step in triage(e, 1) for finding in step.findings}


def kernel() -> KernelSass:
    text = gzip.decompress((ROOT / "tests" / "data" / "builtin_sm90a_bf16.sass.gz").read_bytes()).decode()
    return read_kernel(text, 128, 0)


def test_a_healthy_kernel_is_told_its_limit_and_accused_of_nothing() -> None:
    steps = triage(evidence(), 1)
    assert keys(evidence()) == {"bound"}
    assert answer(steps).text.startswith("MMA-bound: the clean period is 1.05 times the tensor floor of 2048 cycles")
    by_title = {step.title: step for step in steps}
    assert by_title["trace"].state == "clear"
    assert by_title["trace"].rules_out == "loads, tile overhead, the last wave, the clock, launching"
    assert by_title["algebra"].conclusion.startswith("softmax is not the limit")
    assert by_title["checks"].rules_out and by_title["split"].state == by_title["SASS"].state == "unknown"


GPU_NOW = GpuSample(
    gpu_uuid="GPU-1",
    name="GB300",
    sm_clock_mhz=1920.0,
    mem_clock_mhz=None,
    power_w=900.0,
    power_limit_w=1300.0,
    temperature_c=50.0,
    memory_used_mib=None,
    memory_total_mib=None,
    throttle=[],
    foreign_pids=[],
)


FLAKY = Repeats(
    worker="w",
    plan_id=1,
    setting="x",
    times=20,
    flaky_launches=1,
    flaky_elements=5,
    elements=99,
    where="head 3",
    verdict="FLAKY",
)


@pytest.mark.parametrize(
    ("changes", "key", "says"),
    [
        ({"gpu": replace(GPU_NOW, foreign_pids=[7])}, "foreign process", "1 other processes"),
        ({"gpu": replace(GPU_NOW, throttle=["SW power cap"])}, "clock", "held back by SW power cap"),
        ({"sm_clock_mhz": 1500.0}, "clock drop", "SM clock 1500 MHz inside the kernel, 1920 at rest"),
        ({"slowest_us": 40_000.0}, "recompiling", "100 times the usual"),
        ({"host_us": 900.0}, "launch", "launch-bound: the host needs 900 us for a launch that runs 400 us"),
        ({"traced_us": 440.0}, "probe effect", "probes cost +10.0%"),
        ({"clean_period_cycles": 1700.0}, "disagreement", "a traced step has 2100 cycles"),
        ({"roles": (role("mma", wait_KV=500.0), role("softmax0"))}, "load", "load-bound: 24% of a step"),
        ({"account": Account(0.7, 0.28, 0.02), "clean_period_cycles": 3000.0}, "tile ends", "28% of the time is"),
        ({"account": Account(0.8, 0.02, 0.18)}, "last wave", "18% of the chip idles"),
        ({"roles": (role("mma", wait_P_2nd=700.0), role("softmax0"))}, "early P", "perhaps handed over too early"),
        ({"checks": (replace(HEALTHY.checks[0], passed=False, text="RMS 9"),)}, "output", "WRONG: RMS 9"),
        ({"repeats": (FLAKY,)}, "flaky", "1 of 20 launches of x differ: head 3"),
    ],
)
def test_every_cause_is_named_with_a_way_to_falsify_it(changes: dict[str, Any], key: str, says: str) -> None:
    e = evidence(**changes)
    assert keys(e) - {"bound"} == {key}
    finding = next(f for step in triage(e, 1) for f in step.findings if f.key == key)
    assert says in finding.text and finding.falsify and finding.confidence in ("high", "medium", "low")
    assert answer(triage(e, 1)).text.startswith(finding.text) or key in (
        "clock drop",
        "disagreement",
        "probe effect",
        "tile ends",
        "last wave",
        "early P",
    )


def test_what_spoils_the_numbers_rules_nothing_out() -> None:
    steps = triage(evidence(gpu=replace(GPU_NOW, foreign_pids=[7])), 1)
    assert next(step for step in steps if step.title == "trace").rules_out == ""


def test_softmax_bound_leads_to_algebra_on_its_heaviest_unit() -> None:
    e = evidence(kernel(), roles=(role("mma", wait_P=900.0), role("softmax0")), clean_period_cycles=9000.0)
    assert HEALTHY.plan is not None
    e = replace(e, snapshot=replace(e.snapshot, plan=replace(HEALTHY.plan, arch="sm_90a"), account=None))
    steps = {step.title: step for step in triage(e, 1)}
    assert "softmax-bound: MMA waits 43% of a step for P" in steps["trace"].conclusion
    assert "its heaviest unit is exp2: emulate part of exp2" in steps["algebra"].conclusion
    assert (
        steps["SASS"].conclusion == "no spills, nothing to reorder" and "reordering source" in steps["SASS"].rules_out
    )


def test_spills_come_first_and_algebra_waits_for_them() -> None:
    found = kernel()
    softmax = next(role for role in found.roles if role.name == "softmax")
    roles = tuple(replace(r, spills=61, step_spills=39) if r is softmax else r for r in found.roles)
    e = evidence(replace(found, spills=63, stack_bytes=112, roles=roles))
    steps = {step.title: step for step in triage(e, 1)}
    assert "112 registers are too few for this compiler" in steps["SASS"].findings[0].text
    assert job_from_data(steps["SASS"].findings[0].job) == SassJob()
    assert steps["algebra"].conclusion == "not before step 3 is mended" and steps["SASS"].rules_out == ""
    assert answer(list(steps.values())).text.startswith("spills: 63 local loads and stores, 112 bytes of stack")


def swept(word: str, change: float, fresh: float | None, contaminated: str = "") -> dict[str, Any]:
    knob, values = "split_P_arrive", ["32", "96"]
    state = SweepState(
        sweep_id=1,
        target="fa4",
        device="GB300",
        arch="sm_103a",
        shape=SHAPE,
        knobs={},
        knob=knob,
        values=values,
        series_knob="",
        series=[""],
        state="done",
        refused={},
        text="said",
        margin=0.01,
        alpha=0.05,
        comparisons=1,
        baselines={"": "32"},
        contaminated=contaminated,
    )
    base = SweepPoint(sweep_id=2, plan_id=2, series="", value="32", status="measured", tflops=100.0)
    other = SweepPoint(
        sweep_id=2,
        plan_id=3,
        series="",
        value="96",
        status="measured",
        tflops=105.0,
        word=word,
        change_percent=change,
        fresh_percent=fresh,
        fresh_word=word if fresh is not None else "",
    )
    return {"sweep": state, "sweep_points": (base, other)}


def test_a_better_split_is_quoted_from_fresh_processes() -> None:
    e = evidence(**swept("faster", -5.0, -4.2))
    finding = next(f for step in triage(e, 1) for f in step.findings if f.key == "split")
    assert finding.text == "split_P_arrive 96 is 4.2% faster than 32"
    job = AbJob(a={"split_P_arrive": "32"}, b={"split_P_arrive": "96"}, tier=2)
    assert job_from_data(finding.job) == job and finding.command.startswith("fa4top ab --a split_P_arrive=32 --b ")
    for quiet in (
        swept("equivalent", -0.2, None),
        swept("faster", -0.4, -0.4),
        swept("faster", -5.0, None, "the null arm"),
    ):
        assert "split" not in keys(evidence(**quiet))
    clear = next(step for step in triage(evidence(**swept("equivalent", -0.2, None)), 1) if step.title == "split")
    assert clear.state == "clear" and clear.rules_out == "the handoff's split"


def test_a_small_problem_is_said_to_be_one() -> None:
    e = evidence(
        account=Account(0.3, 0.1, 0.6), clean_us=20.0, traced_us=20.0, slowest_us=25.0, clean_period_cycles=4300.0
    )
    assert keys(e) == {"last wave"} and answer(triage(e, 1)).text.startswith("60% of the chip idles")


def run(order: Order) -> Snapshot:
    return run_order(order).snapshot


@pytest.mark.parametrize(
    ("fault", "knobs", "says"),
    [
        ("", {}, "softmax-bound: MMA waits"),
        ("throttled", {}, "clock-bound: held back by SW power cap"),
        ("slow-host", {}, "launch-bound"),
        ("slow-load", {}, "load-bound"),
        ("check", {}, "the output is WRONG"),
        ("", {"p_split": "1/2"}, "faster than 1/2"),
    ],
)
def test_planted_causes_are_named_on_the_simulated_device(
    sim_order: Make, fault: str, knobs: dict[str, str], says: str
) -> None:
    job = TriageJob(seconds=0.4, sweep_s=600.0, times=2, skip=[] if knobs else ["split", "checks"])
    found = run(sim_order(knobs, job=job_to_data(job), sim_fault=fault))
    assert found.triage is not None and found.triage.state == "done" and says in found.triage.text
    assert [step.number for step in found.triage_steps] == [1, 2, 3, 4, 5, 6] and found.simulated


def test_the_healthy_simulated_device_is_not_accused(sim_order: Make) -> None:
    found = run(sim_order(job=job_to_data(TriageJob(seconds=0.4, sweep_s=600.0, times=5))))
    keys = {finding.key for step in found.triage_steps for finding in step.findings}
    # 768 tiles on 148 SMs leave 14% of the last wave idle: that is the shape's, and true
    assert keys == {"bound", "last wave"} and found.triage is not None
    assert found.triage.text.startswith("softmax-bound: MMA waits")


def test_a_setting_that_can_not_be_launched_ends_with_its_reason(sim_order: Make) -> None:
    found = run(sim_order(job=job_to_data(TriageJob(seconds=1.0)), sim_fault="oom"))
    assert found.triage is not None and found.triage.state == "failed" and "out of memory" in found.triage.text


def test_the_split_is_that_of_target_and_chip() -> None:
    assert describe("sim").to_try("handoff", "sm_103a")[0] == "p_split"
    assert describe("fa4").to_try("handoff", "sm_103a")[0] == "split_P_arrive"
    assert describe("fa4").to_try("handoff", "sm_90a") == ("", [])


def reported() -> Snapshot:
    steps = tuple(triage(evidence(**swept("faster", -5.0, -4.2)), 7))
    found = answer(steps)
    run = TriageRun(
        run_id=7,
        target="fa4",
        device="NVIDIA GB300",
        arch="sm_103a",
        shape=SHAPE,
        knobs={"split_P_arrive": "32"},
        state="done",
        text=found.text,
        best=found.best,
        rest=found.rest,
        unsafe=True,
    )
    return replace(HEALTHY, triage=run, triage_steps=steps)


def test_the_report_has_answer_evidence_and_commands_and_escapes_what_it_shows(tmp_path: Path) -> None:
    snapshot = reported()
    found = results(snapshot)
    text, html = document(found, "t", replay=True), page(found, "t")
    for words in (
        "split_P_arrive 96 is 4.2% faster",
        "UNSAFE",
        "24 rows against FP32",
        "fa4top ab --a split_P_arrive=32",
    ):
        assert words in text.replace("\\", "") and words in html
    assert "fa4top replay session.jsonl.gz" in text
    assert "<script" not in html and "http" not in html.replace("http-equiv", "")
    odd = replace(snapshot, triage=replace(snapshot.triage, text="a < b & c"))  # type: ignore[type-var]
    assert "a &lt; b &amp; c" in page(results(odd), "t")
    made = write_report(snapshot, tmp_path / "deep" / "folder", "")
    assert {path.name for path in made} >= {"report.md", "report.html"} and all(path.exists() for path in made)
    assert [finding.key for finding in next_experiments(snapshot.triage_steps)] == ["split"]


def test_a_session_without_a_triage_is_refused() -> None:
    done = CliRunner().invoke(command, ["--from", str(ROOT / "examples" / "h200-live.jsonl.gz")])
    assert done.exit_code == 2 and "holds no triage" in done.output
    assert isinstance(reported().triage_steps[0], TriageStep)
