"""Workers drive the stand-in of flash-attention-fp4 in real processes: torch on the CPU, arithmetic in place of a GPU.

Needs torch (make test-fa4). Nothing of the fork itself runs here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fa4top.orders.shapes import parse_shape
from fa4top.targets.fork.description import DESCRIPTION
from tests.conftest import ROOT
from tests.fork.buffers import PERIOD
from tests.fork.checkout import write_stand_in

pytestmark = pytest.mark.fa4
pytest.importorskip("torch", reason="needs torch (make test-fa4)")

BOOTSTRAP = ROOT / "fa4top" / "worker" / "bootstrap.py"
SHAPE = "b1,s512,h2,d128"
FP8 = {"pv_mode": "fp8"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "fa4top" / "inputs"


def worker(
    top: Path,
    twin: str,
    knobs: dict[str, str] | None = None,
    shape: str = SHAPE,
    commands: Sequence[dict[str, Any]] = ({"do": "check"},),
    **environment: str,
) -> list[dict[str, Any]]:
    """All records of one worker that is asked to check, then what ``commands`` say."""
    setting, problems = DESCRIPTION.setting(knobs or {})
    assert not problems
    words = shape.split()
    parsed = asdict(parse_shape(words[0], DESCRIPTION.default_shape)) | {"causal": "causal" in words}
    request = {"target": "fa4-fork", "shape": parsed, "knobs": setting, "twin": twin, "seed": 0, "gpu_uuid": ""}
    lines = [{"do": "serve", "worker": twin, "plan_id": 1, "request": request}, *commands, {"do": "stop"}]
    done = subprocess.run(
        [sys.executable, str(BOOTSTRAP)],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "FA4TOP_FA4_PATH": str(top), **environment},
    )  # fmt: skip
    assert done.stdout, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def only(records: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found = [record["body"] for record in records if record["kind"] == kind]
    assert len(found) == 1, [record["body"] for record in records if record["kind"] in ("fault", kind)]
    body: dict[str, Any] = found[0]
    return body


def versions(records: list[dict[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = [r["body"]["versions"] for r in records if r["kind"] == "worker"][-1]
    return found


TRACE: list[dict[str, Any]] = [
    {"do": "check"},
    {"do": "clean", "launches": 3},
    {"do": "trace", "cta": 2, "timeline": True},
]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_both_profilers_are_traced_and_nothing_printed_breaks_the_protocol(
    tmp_path: Path, cache: Path, version: str
) -> None:
    top = write_stand_in(tmp_path / "fork", version)
    shape = "b1,s4096,h1,d128"  # 32 steps: more than the ring holds
    records = worker(top, "traced", FP8, shape, TRACE)  # the stand-in prints while it is "traced", as the fork does
    assert only(records, "check")["passed"] and only(records, "clean")["times_us"]
    sample = only(records, "trace")
    assert sample["own"]["softmax_period"] == PERIOD and sample["cta"] == 2 and sample["timeline"]["rows"]
    roles = {role["role"]: role for role in sample["roles"]}
    assert set(roles) == {"mma", "softmax0", "softmax1"}
    assert roles["softmax0"]["steps"] == (16 if version == "v2" else 32)
    assert ("recording stopped after 128 events" in versions(records).get("trace", "")) == (version == "v2")


def test_the_first_profiler_is_refused_with_what_was_expected_and_found(tmp_path: Path, cache: Path) -> None:
    fault = only(worker(write_stand_in(tmp_path / "fork", "v0"), "clean"), "fault")
    assert fault["reason"] == "unknown package layout"
    assert "expected v1 or v2 (32-bit words), found v0: 64-bit entries" in fault["text"]


@pytest.mark.parametrize(
    ("qk", "pv"),
    [("nvfp4", "bf16"), ("nvfp4", "fp8"), ("nvfp4", "fp4"), ("nvfp4", "mxfp8"), ("mxfp8", "bf16"), ("mxfp8", "fp8")],
)
def test_every_mode_runs_on_the_checkouts_own_tensors(tmp_path: Path, cache: Path, qk: str, pv: str) -> None:
    top = write_stand_in(tmp_path / "fork")
    records = worker(top, "clean", {"qk_mode": qk, "pv_mode": pv})
    check = only(records, "check")
    # published cosines of 0.98 to 0.99 between quantised and bf16: an error, and not too large
    assert check["passed"] and 0.01 < check["rms_error"] < 0.25, check["text"]
    assert versions(records)["environment"] == "no FA4_* set"


def test_inputs_are_made_once_and_every_process_gets_the_same_bytes(tmp_path: Path, cache: Path) -> None:
    top = write_stand_in(tmp_path / "fork")
    first, second = worker(top, "clean", FP8), worker(top, "traced", FP8)
    assert versions(first)["inputs"] == versions(second)["inputs"]
    assert only(first, "check")["output_hash"] == only(second, "check")["output_hash"]
    (kept,) = cache.glob("*.inputs.npz")
    kept.write_bytes(kept.read_bytes()[:5000])  # cut short by a full disk
    third = worker(top, "clean", FP8)
    assert only(third, "check")["passed"] and "making the inputs" in str(
        [r["body"] for r in third if r["kind"] == "worker"]
    )
    other = versions(worker(top, "clean", FP8, "b1,s512,h4,hk2,d128"))["inputs"]
    assert other != versions(third)["inputs"] and len(list(cache.glob("*.inputs.npz"))) == 2


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path, cache: Path) -> None:
    cache.parent.parent.mkdir(parents=True)
    cache.parent.write_text("a file where a folder should be")
    fault = only(worker(write_stand_in(tmp_path / "fork"), "clean"), "fault")
    assert fault["reason"] == "inputs not kept" and "XDG_CACHE_HOME" in fault["hint"]


def test_variables_of_the_shell_do_not_reach_the_kernel(tmp_path: Path, cache: Path) -> None:
    top = write_stand_in(tmp_path / "fork")
    # with this variable the stand-in's fp8 kernel fails like a contract violation
    records = worker(top, "clean", FP8, FA4_FP8_PV_TMEM_STORE_REP="16")
    assert only(records, "check")["passed"]
    assert not only(worker(top, "clean", {**FP8, "FA4_FP8_PV_TMEM_STORE_REP": "16"}), "check")["passed"]


def test_gqa_and_causal_pass_what_this_kernel_needs(tmp_path: Path, cache: Path) -> None:
    # the stand-in refuses pack_gqa's default, with which the fork is wrong
    records = worker(write_stand_in(tmp_path / "fork"), "clean", FP8, "b1,s512,h4,hk2,d128 causal")
    assert only(records, "check")["passed"]


def test_a_broken_contract_fails_its_check_with_the_hazard_named(tmp_path: Path, cache: Path) -> None:
    records = worker(write_stand_in(tmp_path / "fork"), "clean", {**FP8, "FA4_FP8_PV_TMEM_STORE_REP": "16"})
    text = only(records, "check")["text"]
    assert "ABOVE" in text and "P is signalled after 1 of 2 chunks, but 3 of 4 K-tiles are read" in text


def test_an_illegal_instruction_is_explained_by_the_setting(tmp_path: Path, cache: Path) -> None:
    fault = only(worker(write_stand_in(tmp_path / "fork"), "clean", {**FP8, "FA4_FP8_PV_P_SPLIT_NUM": "1"}), "fault")
    assert fault["reason"] == "CUDA error"
    assert (
        "corrupt descriptor" in fault["text"]
        and "a register of V's descriptor is then used before it is set" in fault["text"]
    )


def test_a_package_without_a_plain_cache_is_called_through_its_interface(tmp_path: Path, cache: Path) -> None:
    top = write_stand_in(tmp_path / "fork")
    interface = top / "flash_attn" / "cute" / "interface.py"
    text = interface.read_text()
    assert "compile_cache = {}" in text
    for old, new in (
        ("compile_cache = {}", "compile_cache = __import__('types').MappingProxyType({})"),
        ("_flash_attn_fwd.compile_cache[key]", "_kernels[key]"),
        ("key not in _flash_attn_fwd.compile_cache", "key not in _kernels"),
    ):
        text = text.replace(old, new)
    interface.write_text(text + "\n_kernels = {}\n")
    records = worker(top, "clean", FP8, commands=[{"do": "check"}, {"do": "clean", "launches": 2}])
    assert only(records, "check")["passed"] and only(records, "clean")["times_us"]
    assert "times contain the package's own Python" in versions(records)["warning"]


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fa4top", *words], capture_output=True, text=True, check=False, timeout=200, cwd=ROOT,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_session_on_the_stand_in_is_labelled_and_replays(tmp_path: Path, cache: Path) -> None:
    top = write_stand_in(tmp_path / "fork")
    done = run("live", "--fa4-path", str(top), "--shape", SHAPE, "--set", "pv_mode=fp8", "--seconds", "2", "--json")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert records and all(record["simulated"] for record in records if record["kind"] in ("clean", "trace", "check"))
    plan = only(records, "plan")
    assert plan["target"] == "fa4-fork" and plan["device"] == "stand-in" and plan["knobs"]["pv_mode"] == "fp8"


def test_probes_costs_are_a_sweep(tmp_path: Path, cache: Path) -> None:
    top = write_stand_in(tmp_path / "fork")
    done = run("sweep", "probes=off,empty,global", "--fa4-path", str(top), "--shape", SHAPE, "--set", "pv_mode=fp8")
    assert done.returncode == 0, done.stderr
    assert "keep probes off" in done.stdout and "SIMULATED" in done.stdout
    found = re.search(r"global is ([\d.]+)% slower than off", done.stdout)
    assert found is not None and 69.0 < float(found[1]) < 71.0, done.stdout


def test_a_hang_is_read_from_global_memory_and_from_a_ring_it_is_not(tmp_path: Path, cache: Path) -> None:
    top = write_stand_in(tmp_path / "fork")
    for ring, says in (("0", "softmax1 waits behind the place where P 2nd is sent"), ("1", "FA4_PROF_SMEM=0 records")):
        records = hung(top, {**FP8, "FA4_PROF_SMEM": ring})
        assert says in only(records, "hang")["text"]


def hung(top: Path, knobs: dict[str, str]) -> list[dict[str, Any]]:
    """Records of a worker whose traced launch does not end, until it has told so."""
    setting = DESCRIPTION.setting(knobs)[0]
    shape = asdict(parse_shape("b1,s2048,h1,d128", DESCRIPTION.default_shape))
    request = {"target": "fa4-fork", "shape": shape, "knobs": setting, "twin": "traced", "seed": 0, "gpu_uuid": ""}
    process = subprocess.Popen(
        [sys.executable, str(BOOTSTRAP)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "FA4TOP_FA4_PATH": str(top), "FA4TOP_STAND_IN_HANG": "1"},
    )  # fmt: skip
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps({"do": "serve", "worker": "traced", "plan_id": 1, "request": request}) + "\n")
    process.stdin.write(json.dumps({"do": "trace", "cta": 1, "deadline_s": 3.0}) + "\n")
    process.stdin.flush()
    records = []
    for line in process.stdout:
        records.append(json.loads(line))
        if records[-1]["kind"] in ("hang", "fault"):
            break
    process.kill()
    process.wait()
    return records


@pytest.mark.parametrize(("version", "code"), [("v0", 3), ("v1", 0), ("v2", 0)])
def test_doctor_holds_a_checkout_against_the_contract(tmp_path: Path, cache: Path, version: str, code: int) -> None:
    top = write_stand_in(tmp_path / "fork", version)
    done = run("doctor", "--target", "fa4-fork", "--fa4-path", str(top), "--json")
    assert done.returncode == code, done.stdout + done.stderr
    if code == 0:
        rows = {row["what"]: row for row in json.loads(done.stdout)["flash-attention-fp4, launched"]}
        assert all(row["state"] == "ok" for row in rows.values()), rows
        assert {"clean compiles", "inputs kept", "the trace changes nothing", "trace decodes", "waits"} <= set(rows)
