"""flash-attn-4's SASS without a GPU: published counts, the register budget that spills, the gate. Compiled, not run."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from fa4top.analysis.sass.compare import compare, spill_sentence, step_of
from fa4top.engine.sass_reading import Read, Wanted, read_setting
from fa4top.targets.fa4.description import DESCRIPTION
from tests.conftest import ROOT

pytestmark = pytest.mark.fa4
pytest.importorskip("flash_attn.cute", reason="needs flash-attn-4 (make test-fa4)")

SPILLING = {"num_regs_softmax": "176", "num_regs_correction": "88", "num_regs_other": "64"}


@cache
def read(arch: str, chosen: str = "{}", dtype: str = "bf16", probe_set: str = "") -> Read:
    from dataclasses import replace

    knobs, problems = DESCRIPTION.setting(json.loads(chosen))
    assert not problems
    shape = replace(DESCRIPTION.default_shape, dtype=dtype)
    return read_setting(Wanted("fa4", shape, arch, knobs, sys.executable, probe_set))


# published.json, fa4_sm103a_sass_bf16_d128: instructions, MUFU.EX2, F2FP, transitions, spills, registers
PUBLISHED = {
    ("{}", "bf16"): (3264, 257, 256, 213, 0, 128),
    ('{"split_P_arrive": "0"}', "bf16"): (3200, 257, 256, 199, 0, 128),
    ('{"use_ldred_rowmax": "off"}', "bf16"): (3320, 257, 256, 219, 0, 128),
    ("{}", "fp8"): (3264, 257, 256, 227, 0, 128),
}


@pytest.mark.parametrize(("chosen", "dtype"), PUBLISHED)
def test_counts_for_sm_103a_are_the_published_ones(chosen: str, dtype: str) -> None:
    kernel = read("sm_103a", chosen, dtype).kernel
    mix = kernel.mix
    found = (len(kernel.instructions), mix.ex2, mix.packs, mix.transitions, kernel.spills, kernel.registers)
    assert found == PUBLISHED[chosen, dtype]


def test_the_register_budget_that_spills_is_found_and_named_by_role() -> None:
    good, bad = read("sm_100a").kernel, read("sm_100a", json.dumps(SPILLING)).kernel
    assert (len(good.instructions), good.spills, good.stack_bytes, good.mix.transitions) == (3520, 0, 0, 179)
    assert (len(bad.instructions), bad.spills, bad.stack_bytes, bad.mix.transitions) == (3680, 63, 112, 63)
    text = spill_sentence(bad)
    assert (
        "63 local loads and stores, 112 bytes of stack: softmax (61 sites, 39 of them in every step, with 176" in text
    )
    assert compare(good, bad).units["LSU"] == (133, 196)


def test_roles_and_steps_on_every_architecture() -> None:
    hopper, blackwell = read("sm_90a").kernel, read("sm_103a").kernel
    assert [role.name for role in hopper.roles] == ["load", "mma"]  # Hopper's MMA warpgroups do the softmax
    role = step_of(hopper)
    assert role is not None and role.name == "mma" and role.step_mix.ex2 == 66
    assert {role.name for role in blackwell.roles} == {"load", "mma", "epilogue", "softmax", "correction"}
    step = step_of(blackwell)
    assert step is not None and (step.step_mix.ex2, step.step_mix.packs) == (129, 64)


def test_probes_show_as_clock_reads_in_their_roles() -> None:
    clean, traced = read("sm_103a").kernel, read("sm_103a", probe_set="coarse").kernel
    assert clean.clock_reads == 0 and traced.clock_reads > 0 and traced.spills == 0


def sass(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fa4top", "sass", "--python", sys.executable, *words], capture_output=True, text=True,
        check=False, cwd=ROOT,
    )  # fmt: skip


def test_the_gate_ends_with_1_where_a_condition_does_not_hold() -> None:
    words = ["--arch", "sm_100a", "--set", "num_regs_correction=88", "--set", "num_regs_other=64"]
    done = sass(*words, "--matrix", "num_regs_softmax=168,176", "--expect", "no-spill,registers<=128", "--json")
    assert done.returncode == 1, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert (
        not rows["num_regs_softmax=176"]["expected"][0]["holds"] and "softmax" in rows["num_regs_softmax=176"]["spills"]
    )


def test_ptx_with_trailing_nuls_is_assembled_and_read(tmp_path: Path) -> None:
    file = tmp_path / "kernel.ptx"
    file.write_text(read("sm_90a").ptx + "\0\0\0")
    done = sass(str(file), "--expect", "no-spill", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["figures"]["ex2"] == 130 and found["versions"]["ptxas"]


def test_triage_without_a_gpu_says_so_of_the_budget_that_spills() -> None:
    words = [word for name, value in SPILLING.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(
        [sys.executable, "-m", "fa4top", "triage", "--arch", "sm_100a", "--python", sys.executable, *words],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "compiled, not run" in done.stdout and "softmax (61 sites, 39 of them in every step" in done.stdout
    assert "not before step 3 is mended" in done.stdout and "> spills: 63 local loads and stores" in done.stdout
