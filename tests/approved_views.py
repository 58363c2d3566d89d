"""What triage, the live sentence and the results say, on evidence around every threshold and on recorded sessions."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fa4top.analysis.compare.outputs import compare_outputs
from fa4top.analysis.sass.kernel import KernelSass, read_kernel
from fa4top.analysis.triage.gathered import Gathered
from fa4top.analysis.triage.steps import answer, triage
from fa4top.analysis.view.account import Account
from fa4top.analysis.view.fold import Fold, fold_records
from fa4top.analysis.view.limits import live_sentence
from fa4top.analysis.view.results import results
from fa4top.analysis.view.snapshot import LiveFacts
from fa4top.engine.jobs.registry import spec_of
from fa4top.orders.jobs import AbJob, BenchJob, CheckJob, Job, SassJob, SweepJob, TriageJob
from fa4top.records import (
    BenchResult,
    Body,
    EngineState,
    Fault,
    HangReport,
    Notice,
    Output,
    Repeats,
    StepWork,
    SweepPoint,
    SweepState,
    WorkerState,
    stamp,
)
from fa4top.session.reading import read_log
from tests.approved import plain
from tests.conftest import ROOT, make_sim_order
from tests.unit.test_triage import GEOMETRY, HEALTHY, SETTING, SHAPE, TRIES, role

EXAMPLES = sorted((ROOT / "examples").glob("*.jsonl.gz"))
STEP = 2100.0  # cycles of a role's step in HEALTHY
NO_GPU, NO_PLAN = {"gpu": None}, {"plan": None}


@cache
def sass(dtype: str) -> KernelSass:
    """A listing of the builtin kernel, read."""
    packed = (ROOT / "tests" / "data" / f"builtin_sm90a_{dtype}.sass.gz").read_bytes()
    return read_kernel(gzip.decompress(packed).decode(), 128, 0)


def gpu(**changes: Any) -> dict[str, Any]:
    """What NVML says."""
    assert HEALTHY.gpu is not None
    return {"gpu": replace(HEALTHY.gpu, **changes)}


def bench(name: str, value: float | None, share: float | None = None, **more: Any) -> BenchResult:
    """One microbenchmark of this chip."""
    fixed = {"worker": "w", "plan_id": 1, "arch": "sm_103a", "device": "GB300", "group": "g", "unit": "/clk/SM"}
    return BenchResult(
        **{**fixed, "status": "measured", "index": 1, "total": 9, **more}, name=name, value=value, limit_share=share
    )


def sweep(state: str = "done", **changes: Any) -> SweepState:
    """A sweep of the split."""
    fixed: dict[str, Any] = {
        "sweep_id": 2,
        "target": "fa4",
        "device": "GB300",
        "arch": "sm_103a",
        "shape": SHAPE,
        "knobs": {},
        "knob": "split_P_arrive",
        "values": ["32", "64", "96"],
        "series_knob": "",
        "series": [""],
        "text": "64 is best",
        "margin": 0.01,
        "baselines": {"": "96"},
    }
    return SweepState(**{**fixed, **changes}, state=state)


def point(value: str, word: str = "", change: float | None = None, **changes: Any) -> SweepPoint:
    """One setting of it."""
    fixed = {"sweep_id": 2, "plan_id": 3, "series": "", "status": "measured"}
    return SweepPoint(**{**fixed, **changes}, value=value, word=word, change_percent=change)


def repeats(setting: str, flaky: int, verdict: str = "") -> Repeats:
    """A setting's launches."""
    return Repeats(
        worker="w",
        plan_id=1,
        setting=setting,
        times=20,
        flaky_launches=flaky,
        flaky_elements=7,
        elements=512,
        where="rows 3 to 4",
        verdict=verdict,
    )


def worker(twin: str, state: str, text: str = "") -> WorkerState:
    """A worker on its way."""
    return WorkerState(worker=f"{twin} 1", plan_id=1, twin=twin, pid=1, state=state, text=text)


def evidence() -> dict[str, dict[str, Any]]:
    """By name: changes of a healthy snapshot; ``sass``, ``why_not`` and ``tries`` are not of the snapshot."""
    cases: dict[str, dict[str, Any]] = {"healthy": {}}
    for share in (0.04, 0.119, 0.12, 0.121, 0.17, 0.239, 0.24, 0.241, 0.4):
        cycles = round(share * STEP, 3)
        for cause in ("wait_KV", "wait_P", "wait_P_2nd", "wait_Q"):
            cases[f"mma {cause} {share}"] = {"roles": (role("mma", **{cause: cycles}), role("softmax0"))}
        for cause in ("wait_S", "wait_K", "wait_V", "wait_order"):
            cases[f"softmax {cause} {share}"] = {"roles": (role("mma"), role("softmax0", **{cause: cycles}))}
        half = cycles / 2
        cases[f"both P {share}"] = {"roles": (role("mma", wait_P=half, wait_P_2nd=half), role("softmax0"))}
        cases[f"K and V {share}"] = {"roles": (role("softmax0", wait_K=half, wait_V=half),)}
        swept = {"roles": (role("mma", wait_P_2nd=cycles), role("softmax0")), "sweep": sweep(text="all alike")}
        cases[f"P 2nd after a sweep {share}"] = swept
    for ends in (0.14, 0.15, 0.16, 0.3):
        cases[f"tile ends {ends}"] = {"account": Account(1.0 - ends - 0.02, ends, 0.02)}
    for tail in (0.09, 0.1, 0.11, 0.3, 0.31, 0.6):
        cases[f"tail {tail}"] = {"account": Account(0.97 - tail, 0.03, tail)}
    cases["no account"] = {"account": None}
    for us in (6.0, 99.0, 100.0, 101.0):
        cases[f"clean {us} us"] = {"clean_us": us, "traced_us": us, "slowest_us": us, "clean_period_cycles": 3000.0}
    for host in (399.0, 400.0, 401.0, 0.0):
        cases[f"host {host}"] = {"host_us": host}
    for slowest in (7999.0, 8000.0, 8001.0, None):
        cases[f"slowest {slowest}"] = {"slowest_us": slowest}
    for traced in (389.0, 391.0, 409.9, 410.0, 410.1, 460.0, None):
        cases[f"traced {traced}"] = {"traced_us": traced}
    cases["detail"] = {"traced_us": 460.0, "detail": True}
    for mhz in (1823.0, 1824.0, 1825.0, 1700.0, None):
        cases[f"clock {mhz}"] = {"sm_clock_mhz": mhz}
    cases["clock, throttled"] = {"sm_clock_mhz": 1700.0, **gpu(throttle=["SW power cap", "HW thermal"])}
    cases["foreign"] = gpu(foreign_pids=[7, 8])
    cases["no GPU"] = {"sm_clock_mhz": 1700.0, **NO_GPU}
    cases["no NVML clock"] = {"sm_clock_mhz": 1700.0, **gpu(sm_clock_mhz=None)}
    for factor in (0.86, 0.874, 0.876, 1.12, 1.124, 1.126, 1.2, 1.249, 1.25, 1.251, 1.6, 2.5):
        cases[f"period x{factor}"] = {"clean_period_cycles": 2048.0 * factor}
        cases[f"traced step x{factor}"] = {"clean_period_cycles": round(2100.0 / factor, 3)}
    cases["no period"] = {"clean_period_cycles": None, "tflops": None}
    for work in (
        StepWork(qk_format="fp8", pv_format="fp8", exp2_per_element=1.0),
        StepWork(qk_format="bf16", pv_format="fp8", exp2_per_element=0.5),
        StepWork(qk_format="nvfp4", pv_format="nvfp4", exp2_per_element=1.0),
    ):
        name = f"{work.qk_format} {work.pv_format} {work.exp2_per_element}"
        for period in (1100.0, 1300.0, 2600.0):
            cases[f"{name}, {period} cycles"] = {
                "geometry": replace(GEOMETRY, work=work),
                "clean_period_cycles": period,
                "roles": (role("mma", wait_P=700.0), role("softmax0", wait_order=50.0)),
            }
    for worst in (107.9, 108.0, 108.1):
        for count in (23, 24, 60):
            periods = tuple((number, 100.0) for number in range(count - 1))
            cases[f"SM at {worst} of {count}"] = {"sm_periods": (*periods, (99, worst))}
    cases["two slow SMs"] = {"sm_periods": (*((n, 100.0) for n in range(40)), (41, 110.0), (42, 112.0))}
    wrong = replace(HEALTHY.checks[0], passed=False, twin="traced", text="24 rows: wrong")
    cases["wrong"] = {"checks": (HEALTHY.checks[0], wrong)}
    cases["wrong and not traced"] = {"checks": (wrong,), "roles": ()}
    cases["unchecked"] = {"checks": ()}
    cases["flaky"] = {"repeats": (repeats("baseline", 0, "steady"), repeats("x=1", 3, "FLAKY: 3 of 20"))}
    cases["steady"] = {"repeats": (repeats("baseline", 0, "steady: 20 launches bitwise equal"),)}
    cases["a worker's own repeats"] = {"repeats": (repeats("baseline", 0),)}
    cases["nothing traced"] = {"roles": ()}
    cases["no plan"] = NO_PLAN
    cases["compiling"] = {"roles": (), "workers": (worker("clean", "compiling", "45%"), worker("traced", "ready"))}
    cases["importing"] = {"roles": (), "workers": (worker("clean", "importing"), worker("traced", "stopped"))}
    fault = Fault(worker="clean 1", plan_id=1, reason="crashed", text="signal 9", hint="again", stderr_tail=[])
    cases["crashed"] = {"roles": (), "faults": (fault,)}
    cases["plan failed"] = {"engine": EngineState(state="failed", text="no GPU", pid=1, viewers=0)}
    cases["unknown chip"] = {"plan": replace(HEALTHY.plan, arch="sm_120a")} if HEALTHY.plan else {}
    cases["Hopper"] = {"plan": replace(HEALTHY.plan, arch="sm_90a")} if HEALTHY.plan else {}
    for number, points in enumerate(
        [
            (point("96"), point("64", "faster", -0.99), point("32", "slower", 9.0)),
            (point("96"), point("64", "faster", -1.0), point("32", "slower", 9.0)),
            (point("96"), point("64", "faster", -4.0), point("32", "faster", -5.0)),
            (
                point("96"),
                point("64", "faster", -4.0, fresh_percent=-3.5, fresh_word="faster"),
                point("32", "faster", -9.0),
            ),
            (point("96"), point("64", "faster", -4.0, fresh_percent=-0.1, fresh_word="equivalent")),
            (point("96"), point("64", "faster", -4.0, status="failed"), point("32", "equivalent", -0.2)),
            (point("96", series="a"), point("64", "faster", -4.0, series="b")),
            (point("96"), point("64", "faster", None), point("32", "faster", -2.0)),
            (
                point("96"),
                point("64", "faster", -9.0, fresh_percent=-2.0, fresh_word="faster"),
                point("32", "faster", -5.0, fresh_percent=-4.0, fresh_word="faster"),
            ),
            (point("96"), point("64", "slower", 1.0, fresh_percent=-3.0, fresh_word="faster")),
            (point("96", series="a"), point("64", "faster", -2.0, series="a"), point("64", "faster", -7.0, series="b")),
        ]
    ):
        cases[f"swept {number}"] = {"sweep": sweep(), "sweep_points": points}
    cases["swept, wide margin"] = {"sweep": sweep(margin=0.06), "sweep_points": (point("64", "faster", -5.0),)}
    cases["swept, old schema"] = {"sweep": sweep(margin=None), "sweep_points": (point("64", "faster", -5.0),)}
    cases["sweeping"] = {"sweep": sweep("running"), "sweep_points": (point("64", "faster", -5.0),)}
    dirty = sweep(contaminated="the null arm came out slower")
    cases["contaminated"] = {"sweep": dirty, "sweep_points": (point("64", "faster", -5.0),)}
    cases["another knob swept"] = {
        "sweep": sweep(knob="kv_stages"),
        "roles": (role("mma", wait_P_2nd=600.0), role("softmax0")),
    }
    rates = (
        bench("ex2.approx.ftz.f32", 16.0, 0.99),
        bench("cvt.rn.bf16x2.f32", 31.0, 0.5),
        bench("fma.rn.f32", 128.0, 0.9),
        bench("max.f32", 60.0, 0.89),
        bench("max3.f32", 60.0, None),
        bench("mix of two", 60.0, 0.3, perfect=80.0),
        bench("other", 60.0, 0.2),
        bench("cvt.rn.satfinite.e4m3x2.f32", None, None, status="lacking"),
        bench("ex2.approx.ftz.bf16x2", 60.0, 0.1),
    )
    cases["measured"] = {"bench": rates}
    cases["measured, none shown"] = {"bench": (bench("other", 1.0, 0.95),)}
    cases["compiled only"] = {"bench": (bench("ex2.approx.ftz.f32", None, status="compiled"),)}
    for dtype in ("bf16", "fp8"):
        code = sass(dtype)
        cases[f"SASS {dtype}"] = {"sass_of": code}
        slow = {"sass_of": code, "roles": (role("mma", wait_P=700.0), role("softmax0"))}
        cases[f"SASS {dtype}, softmax-bound"] = slow
        for element in ("bf16", "fp8", "nvfp4"):
            geometry = replace(GEOMETRY, work=StepWork(qk_format=element, pv_format=element, exp2_per_element=1.0))
            cases[f"SASS {dtype}, {element}"] = {**slow, "geometry": geometry, "clean_period_cycles": 1500.0}
        cases[f"SASS {dtype}, measured"] = {**slow, "bench": rates}
        spilling = [replace(each, spills=3, step_spills=index % 2) for index, each in enumerate(code.roles)]
        cases[f"SASS {dtype}, spilling"] = {"sass_of": replace(code, roles=type(code.roles)(spilling))}
        for transitions, longest in ((0, 10), (15, 10), (15, 47), (15, 48), (60, 48), (60, 47)):
            woven = [
                replace(each, step_mix=replace(each.step_mix, transitions=transitions, runs=(longest,), packs=32))
                for each in code.roles
            ]
            name = f"SASS {dtype}, {transitions} transitions, runs of {longest}"
            cases[name] = {"sass_of": replace(code, roles=type(code.roles)(woven))}
        bare = [replace(each, spills=3, register_limit=None) for each in code.roles]
        cases[f"SASS {dtype}, spilling, no budget"] = {"sass_of": replace(code, roles=type(code.roles)(bare))}
        for factor in (4, 40, 80, 160):
            heavy = [
                replace(
                    each,
                    step_units={
                        unit: count * (factor if unit == "convert" else 1) for unit, count in each.step_units.items()
                    },
                )
                for each in code.roles
            ]
            cases[f"SASS {dtype}, conversions x{factor}"] = {"sass_of": replace(code, roles=type(code.roles)(heavy))}
    for step in (1900.0, 5200.0):
        nothing_waits = (role("mma"), role("softmax0"))
        cases[f"no waits, {step} cycles"] = {"roles": nothing_waits, "clean_period_cycles": step}
        cases[f"waits of nothing, {step} cycles"] = {
            "roles": (role("mma"), role("softmax0", wait_S=0.0)),
            "clean_period_cycles": step,
        }
        cases[f"no roles, {step} cycles"] = {"roles": (), "clean_period_cycles": step}
        cases[f"no lead, {step} cycles"] = {"roles": (role("mma"),), "clean_period_cycles": step}
    cases["no SASS"] = {"why_not": "nvdisasm is missing"}
    cases["no split"] = {"tries": {}}
    cases["KV stages to try"] = {
        "tries": {**TRIES, "load": ("kv_stages", ["2", "3"])},
        "roles": (role("mma", wait_KV=400.0), role("softmax0")),
    }
    return cases


def said(changes: dict[str, Any]) -> dict[str, Any]:
    """The live sentence, the steps and the answer."""
    changes = dict(changes)
    code, why_not, tries = changes.pop("sass_of", None), changes.pop("why_not", ""), changes.pop("tries", TRIES)
    snapshot = replace(HEALTHY, **changes)
    found = Gathered(snapshot=snapshot, setting=SETTING, sass=code, sass_why_not=why_not, tries=tries)
    steps = triage(found, 7)
    return {
        "live": plain(live_sentence(snapshot)),
        "answer": plain(answer(steps)),
        "steps": {f"{step.number} {step.title}": plain(step) for step in steps},
    }


def triage_says() -> dict[str, Any]:
    """By name of the evidence: what is said; of all but the healthy one only what is not as there."""
    healthy = said({})
    found: dict[str, Any] = {"healthy": healthy}
    for name, changes in list(evidence().items())[1:]:
        now = said(changes)
        steps = {key: step for key, step in now.pop("steps").items() if step != healthy["steps"][key]}
        found[name] = {**{key: value for key, value in now.items() if value != healthy[key]}, "steps": steps}
    return found


def sessions_say() -> dict[str, Any]:
    """By example: its results, and the live facts at its end."""
    found = {}
    for path in EXAMPLES:
        snapshot = fold_records(read_log(path))
        facts = {each.name: getattr(snapshot, each.name) for each in fields(LiveFacts)}
        for name in ("lines", "timeline", "clean_series", "histogram", "header", "plan", "role_map"):
            facts[name] = len(facts[name]) if isinstance(facts[name], tuple) else facts[name] is not None
        facts["roles"] = [replace(each, series=each.series[-1:]) for each in snapshot.roles]
        lines = [f"{line.level}: {line.text}" for line in snapshot.lines if line.level != "output"]
        found[path.name] = plain({"results": results(snapshot), "live": facts, "lines": lines[-40:]})
    return found


JOBS: dict[str, Job] = {
    "sweep": SweepJob(knob="p_split", values=["1/2", "3/4"]),
    "sweep of nothing": SweepJob(knob="p_split", values=[]),
    "sweep, all refused": SweepJob(knob="p_split", values=["1/4", "1/4", "2"]),
    "sweep, one refused": SweepJob(knob="p_split", values=["1/4", "1/2"]),
    "sweep of no knob": SweepJob(knob="nope", values=["1", "2"]),
    "sweep, series refused": SweepJob(knob="handicap", values=["0", "1"], series_knob="p_split", series=["1/4"]),
    "ab": AbJob(b={"p_split": "1/2"}),
    "ab, both wrong": AbJob(a={"p_split": "1/4"}, b={"nope": "1"}),
    "ab, b wrong": AbJob(b={"p_split": "7"}),
    "check": CheckJob(b={"p_split": "1/2"}),
    "check, both wrong": CheckJob(a={"nope": "1"}, b={"p_split": "1/4"}),
    "check, against nothing": CheckJob(against="/nowhere/kept.npy"),
    "triage": TriageJob(),
    "bench": BenchJob(names=["ex2"]),
    "bench of nothing": BenchJob(names=["nope"]),
    "sass": SassJob(b={"p_split": "1/2"}),
    "sass, wrong": SassJob(b={"nope": "1"}),
}


def problems_say() -> dict[str, Any]:
    """By job: why it can not be done, and as what it is done."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        order = make_sim_order(Path(folder))
        for name, job in JOBS.items():
            spec = spec_of(job)
            found[name] = plain({"problems": spec.problems(order, job), "as": spec.fit(order, job)})
    return found


def bench_worker(state: str, text: str = "") -> WorkerState:
    """The worker that measures instructions."""
    return WorkerState(worker="bench7", plan_id=7, twin="bench", pid=7, state=state, text=text, progress=0.5)


def fault(worker: str) -> Fault:
    """An end."""
    return Fault(worker=worker, plan_id=1, reason="killed", text="signal 9", hint="look", stderr_tail=["last", "words"])


def hang(*roles: str) -> HangReport:
    """A launch that does not end."""
    return HangReport(worker="w", plan_id=1, deadline_s=2.0, state="ready", text="P 2nd is missing", roles=list(roles))


assert HEALTHY.plan is not None and HEALTHY.gpu is not None
PLAN, OTHER_PLAN = HEALTHY.plan, replace(HEALTHY.plan, plan_id=2, knobs={"a": "1", "b": "2"})
CHECK = HEALTHY.checks[0]
STORIES: dict[str, list[Body]] = {
    "bench, its course": [
        bench_worker("importing"),
        bench_worker("compiling", "3 of 9"),
        bench("a", 1.0),
        bench("b", None, status="refused", text="no such SASS"),
        bench("c", None, status="failed", text="ptxas"),
        bench("d", None, status="lacking", text="not on this chip"),
        bench("a", 2.0),
    ],
    "bench, again": [bench("a", 1.0), bench_worker("importing"), bench("b", 2.0), bench_worker("ready")],
    "bench, its end": [bench_worker("compiling"), fault("bench7")],
    "bench, another's end": [bench_worker("compiling"), fault("clean1"), fault("traced2")],
    "workers": [
        EngineState(state="running", pid=1, viewers=1, text="why"),
        PLAN,
        worker("clean", "importing"),
        worker("clean", "importing", "said once"),
        worker("clean", "ready"),
        CHECK,
        replace(CHECK, twin="traced", passed=False, text="wrong"),
        fault("clean 1"),
        EngineState(state="stopped", pid=1, viewers=0, text=""),
    ],
    "a plan after another": [PLAN, worker("clean", "ready"), CHECK, OTHER_PLAN, CHECK, worker("clean", "stopped")],
    "words": [Notice("warning", "hot"), Notice("info", "calm"), Output("clean1", "a line"), hang("mma waits", "load")],
    "repeats": [repeats("a", 0, "steady"), repeats("b", 2, "FLAKY"), repeats("a", 1, "FLAKY")],
}


def stories_say() -> dict[str, Any]:
    """By story: what is folded from it, and its lines."""
    found = {}
    for name, bodies in STORIES.items():
        fold = Fold()
        for number, body in enumerate(bodies):
            fold.feed(replace(stamp(body, "engine", number + 1), mono_ns=number * 10**9, wall_ns=number))
        snapshot = fold.snapshot()
        kept = ("engine", "plan", "workers", "checks", "faults", "lines", "records", "bench", "bench_state", "repeats")
        facts = {each: getattr(snapshot, each) for each in (*kept, "verdict")}
        found[name] = plain({**facts, "results": results(snapshot), "totals": fold.totals()})
    return found


def outputs_say() -> dict[str, Any]:
    """By which elements differ: how much, and where in words."""
    random = np.random.default_rng(1)
    first = random.standard_normal((3, 640, 6, 4)).astype(np.float32)
    places: dict[str, list[tuple[int, int, int, int]]] = {
        "one": [(0, 5, 1, 2)],
        "one row": [(0, 5, 1, dim) for dim in range(4)],
        "four heads": [(0, 5, head, 0) for head in range(4)],
        "five heads": [(0, 5, head, 0) for head in range(5)],
        "three batches": [(batch, 300, 0, 0) for batch in range(3)],
        "four tiles": [(0, 128 * tile, 0, 0) for tile in range(4)],
        "five tiles": [(2, 128 * tile + 127, 0, 0) for tile in range(5)],
    }
    found = {}
    for name, chosen in places.items():
        second = first.copy()
        for number, place in enumerate(chosen):
            second[place] += np.float32(0.5 + number)
        found[name] = plain(compare_outputs(first, second))
    many = np.zeros((6, 8, 1, 1), dtype=np.float32)
    found["six batches of zeros"] = plain(compare_outputs(many, many + np.float32(2.0)))
    found["not a number"] = plain(compare_outputs(many, np.full_like(many, np.nan)))
    found["equal"] = plain(compare_outputs(first, first))
    return found


VIEWS: dict[str, Callable[[], dict[str, Any]]] = {
    "triage-says": triage_says,
    "sessions-say": sessions_say,
    "problems-say": problems_say,
    "stories-say": stories_say,
    "outputs-say": outputs_say,
}
