"""Whole outcomes as they were looked at and approved: a change of any field of them shows.

python -m tests.approved    # writes tests/data/approved anew: read the difference before it is committed
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from fa4top.analysis.view.results import results
from fa4top.orders.jobs import AbJob, CheckJob, Job, SweepJob, TriageJob
from fa4top.records import Header, Shape
from tests.conftest import ROOT, make_sim_order
from tests.inline import run_inline

DATA = ROOT / "tests" / "data" / "approved"
# what would fill the files and is held elsewhere: times of every launch
LEFT_OUT = ("slices_us", "clocks_mhz", "shape", "argv")
SHAPE = Shape(batch=1, seqlen_q=2048, seqlen_k=2048, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)
LONG = 600.0  # seconds of blocks that no job here needs


@dataclass(frozen=True)
class Case:
    """A job on the simulated device; ``order``: fields of its order; ``before``: what was done before it; ``cut_at``:
    at the second record of this kind it is cut short. A file named KEPT is the same for both."""

    job: Job
    order: dict[str, Any] = field(default_factory=dict)
    before: Case | None = None
    cut_at: str = ""


def fault(name: str) -> dict[str, Any]:
    """An order whose device has this fault."""
    return {"sim_fault": name}


HANDICAP = {"handicap": "3"}
KEPT = "kept.npy"
SAVED = Case(CheckJob(times=2, save=KEPT))
SPLITS = ["1/2", "3/4"]
CASES: dict[str, Case] = {
    "ab-same": Case(AbJob(budget_s=LONG)),
    "ab-slower": Case(AbJob(b=HANDICAP, budget_s=LONG, seed=3)),
    "ab-slightly": Case(AbJob(b={"handicap": "0.25"}, budget_s=LONG, margin=0.02, until_decided=False, most_blocks=21)),
    "ab-modes": Case(AbJob(a={"p_split": "1/2"}, b={"pv_mode": "bf16"}, budget_s=LONG, l2="warm")),
    "ab-sustained": Case(AbJob(b=HANDICAP, budget_s=LONG, mode="sustained", most_blocks=6)),
    "ab-spent": Case(AbJob(budget_s=1.0, margin=0.001)),
    "ab-pairs": Case(AbJob(b=HANDICAP, tier=2, pairs=12)),
    "ab-pairs-spent": Case(AbJob(b=HANDICAP, tier=2, pairs=3, budget_s=1.0)),
    "ab-pairs-foreign": Case(AbJob(b=HANDICAP, tier=2, pairs=3), fault("foreign")),
    "ab-hungry": Case(AbJob(b=HANDICAP, budget_s=LONG), fault("hungry")),
    "ab-foreign": Case(AbJob(budget_s=LONG), fault("foreign")),
    "ab-throttled": Case(AbJob(budget_s=LONG, most_blocks=12), fault("throttled")),
    "ab-check": Case(AbJob(b=HANDICAP), fault("check")),
    "ab-probes": Case(AbJob(b=HANDICAP), fault("probes")),
    "ab-bits": Case(AbJob(b={"p_split": "1/2"}), fault("not-bitwise")),
    "ab-compile": Case(AbJob(b=HANDICAP), fault("compile")),
    "ab-error": Case(AbJob(b=HANDICAP, budget_s=LONG), fault("error")),
    "sweep": Case(SweepJob(knob="p_split", values=["1/4", *SPLITS, "7/8"], budget_s=LONG, fresh=1, most_blocks=25)),
    "sweep-modes": Case(
        SweepJob(
            knob="p_split",
            values=SPLITS,
            series_knob="pv_mode",
            series=["fp8", "bf16"],
            budget_s=LONG,
            fresh=0,
            rounds=3,
        )
    ),
    "sweep-spent": Case(SweepJob(knob="handicap", values=["0", "0.5", "3"], budget_s=0.5, fresh=2, margin=0.002)),
    "sweep-bits": Case(SweepJob(knob="p_split", values=SPLITS, budget_s=LONG, fresh=0), fault("not-bitwise")),
    "sweep-check": Case(SweepJob(knob="p_split", values=SPLITS, budget_s=LONG), fault("check")),
    "sweep-foreign": Case(SweepJob(knob="p_split", values=SPLITS, budget_s=LONG), fault("foreign")),
    "sweep-compile": Case(SweepJob(knob="p_split", values=SPLITS, budget_s=LONG), fault("compile")),
    "sweep-error": Case(SweepJob(knob="p_split", values=SPLITS, budget_s=LONG), fault("error")),
    "check": Case(CheckJob(times=5)),
    "check-other": Case(CheckJob(b={"p_split": "1/2"}, times=5)),
    "check-flake": Case(CheckJob(b={"p_split": "1/2"}, times=9), fault("flake")),
    "check-bits": Case(CheckJob(b={"p_split": "1/2"}, times=5), fault("not-bitwise")),
    "check-bisect": Case(
        CheckJob(b={"handicap": "1", "pv_mode": "bf16", "p_split": "1/2"}, times=5, bisect=True), fault("not-bitwise")
    ),
    "check-inputs": Case(CheckJob(b={"p_split": "1/2"}, times=5), fault("inputs")),
    "check-wrong": Case(CheckJob(b={"p_split": "1/2"}, times=5), fault("check")),
    "check-compile": Case(CheckJob(times=5), fault("compile")),
    "check-save": Case(CheckJob(times=5, save=KEPT)),
    "check-save-flaky": Case(CheckJob(times=9, save=KEPT), fault("flake")),
    "check-kept": Case(CheckJob(times=5, against=KEPT), before=SAVED),
    "check-kept-other": Case(CheckJob(times=5, against=KEPT, a={"p_split": "1/2"}), fault("not-bitwise"), SAVED),
    "check-kept-mode": Case(
        CheckJob(times=5, against=KEPT, a={"p_split": "1/2", "pv_mode": "bf16"}), fault("not-bitwise"), SAVED
    ),
    "check-kept-inputs": Case(CheckJob(times=5, against=KEPT, a={"p_split": "1/2"}), fault("inputs"), SAVED),
    "check-same": Case(CheckJob(b={"p_split": "3/4"}, times=3, bisect=True)),
    "check-bisect-mode": Case(
        CheckJob(a={"p_split": "1/2"}, b={"p_split": "3/4"}, times=3, bisect=True), fault("not-bitwise")
    ),
    "ab-cut": Case(AbJob(b=HANDICAP, budget_s=LONG), cut_at="ab_block"),
    "ab-pairs-cut": Case(AbJob(b=HANDICAP, tier=2, pairs=3), cut_at="ab_pair"),
    "sweep-cut": Case(SweepJob(knob="p_split", values=SPLITS, budget_s=LONG), cut_at="sweep_block"),
    "check-cut": Case(CheckJob(b={"p_split": "1/2"}, times=3), cut_at="check_run"),
    "triage-cut": Case(TriageJob(seconds=0.25, sweep_s=LONG, times=3), cut_at="sweep_block"),
    "triage": Case(TriageJob(seconds=0.25, sweep_s=LONG, times=5)),
    "triage-early": Case(TriageJob(seconds=0.25, sweep_s=LONG, times=5), {"knobs": {"p_split": "1/2"}}),
    "triage-skip": Case(TriageJob(seconds=0.25, skip=["throughputs", "SASS", "split", "checks"]), fault("foreign")),
    "triage-check": Case(TriageJob(seconds=0.25, sweep_s=LONG, times=5), fault("check")),
    "triage-compile": Case(TriageJob(seconds=0.25, sweep_s=LONG, times=5), fault("compile")),
}


def plain(value: Any) -> Any:
    """As JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.name not in LEFT_OUT}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.10g}")
    return value if value is None or isinstance(value, (bool, int)) else _text(str(value))


def _text(text: str) -> str:
    """Without what a machine or a moment puts into it."""
    return re.sub(r"/\S*/", "", text)


def differing(found: Any, approved: Any, where: str = "") -> Iterator[str]:
    """Places where two outcomes are not the same; numbers to nine digits."""
    if isinstance(found, dict) and isinstance(approved, dict):
        for name in dict.fromkeys([*approved, *found]):
            yield from differing(found.get(name, "nothing"), approved.get(name, "nothing"), f"{where}.{name}")
    elif isinstance(found, list) and isinstance(approved, list) and len(found) == len(approved):
        for place, (now, before) in enumerate(zip(found, approved, strict=True)):
            yield from differing(now, before, f"{where}[{place}]")
    elif type(found) in (int, float) and type(approved) in (int, float):
        if found != approved and not abs(found - approved) <= 1e-9 * max(abs(found), abs(approved)):
            yield f"{where}: {found} instead of {approved}"
    elif found != approved:
        yield f"{where}: {found!r} instead of {approved!r}"


def approved(name: str) -> Any:
    """What was approved under this name."""
    return json.loads((DATA / f"{name}.json").read_text())


def outcome(case: Case, folder: Path) -> list[Any]:
    """All that the engine itself recorded of a job, what the session came to, and why it failed, if so."""
    if case.before is not None:
        outcome(case.before, folder)
    job = case.job
    if isinstance(job, CheckJob):
        kept = str(folder / KEPT)
        job = replace(job, save=kept if job.save else "", against=kept if job.against else "")
    done = run_inline(make_sim_order(folder, **{"shape": SHAPE, **case.order}), job, case.cut_at)
    said = [
        {"kind": record.kind, **plain(record.body)}
        for record in done.records
        if record.source == "engine" and not isinstance(record.body, Header)
    ]
    # what workers say of themselves comes when it comes
    told = {f"{line.level}: {_text(line.text)}" for line in done.snapshot.lines if line.level != "output"}
    lines = sorted(line for line in told if " twin " not in line)
    return [
        *said,
        *({"kind": "result", **plain(result)} for result in results(done.snapshot) if result.kind != "live"),
        {"kind": "lines", "lines": lines},
        *([{"kind": "failed", "text": _text(done.failed)}] if done.failed else []),
    ]


def write(name: str, found: Any) -> None:
    """Approve it: a line for each record or case."""
    if isinstance(found, dict):
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
        text = f"{{\n{lines}\n}}\n"
    else:
        text = "[\n" + ",\n".join(json.dumps(each) for each in found) + "\n]\n"
    (DATA / f"{name}.json").write_text(text)
    print(f"{name}: {len(found)}")


def main() -> int:
    """Write all of them, or those that are named."""
    # it takes evidence from the tests, which need this module
    from tests.approved_views import VIEWS

    DATA.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[1:] or [*CASES, *VIEWS]
    for name in wanted:
        if name in VIEWS:
            write(name, VIEWS[name]())
            continue
        with tempfile.TemporaryDirectory() as folder:
            write(name, outcome(CASES[name], Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
