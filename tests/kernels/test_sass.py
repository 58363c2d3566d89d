"""The builtin kernel's own code, compiled here and read as `fa4top sass` does. No GPU."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fa4top.analysis.sass.compare import compare
from fa4top.engine.sass_reading import Read, SassError, Wanted, read_file, read_setting
from fa4top.targets.builtin.description import DESCRIPTION
from fa4top.targets.cuda.tools import find_tool
from tests.conftest import ROOT

pytestmark = pytest.mark.kernels
pytest.importorskip("cupy", reason="needs CuPy (make test-kernels)")


def read(probe_set: str = "", **chosen: str) -> Read:
    knobs, problems = DESCRIPTION.setting(chosen)
    assert not problems
    return read_setting(Wanted("builtin", DESCRIPTION.default_shape, "sm_90a", knobs, sys.executable, probe_set))


def test_neither_the_clean_nor_the_traced_kernel_spills() -> None:
    for mode in ("bf16", "fp8"):
        clean, traced = read(pv_mode=mode).kernel, read("coarse", pv_mode=mode).kernel
        assert clean.spills == traced.spills == 0 and clean.stack_bytes == traced.stack_bytes == 0
        assert clean.clock_reads == 0 and traced.clock_reads > 0
        assert [role.name for role in clean.roles] == ["mma", "load", "softmax"]
        # probes of every role, and none of them changes what the roles compute
        assert all(role.clock_reads for role in traced.roles)
        assert [role.step_mix.ex2 for role in clean.roles] == [role.step_mix.ex2 for role in traced.roles]


def test_emulated_exponentials_leave_the_mufu() -> None:
    plain, emulated = read().kernel, read(exp2_emulation="1/2").kernel
    softmax = [next(role for role in kernel.roles if role.name == "softmax") for kernel in (plain, emulated)]
    assert [role.step_mix.ex2 for role in softmax] == [66, 34]
    found = compare(plain, emulated)
    assert found.units["MUFU"][0] > found.units["MUFU"][1] and found.units["FMA"][0] < found.units["FMA"][1]


def test_the_command_compares_and_gates() -> None:
    words = ["--target", "builtin", "--python", sys.executable, "--a", "p_split=1/2", "--b", "p_split=3/4", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "fa4top", "sass", *words, "--expect", "no-spill,registers<=128"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["difference"]["word"] in ("different", "same instructions")
    assert found["b"]["figures"]["spills"] == 0


def test_a_host_object_is_opened_for_the_code_inside(tmp_path: Path) -> None:
    nvcc = find_tool("nvcc")
    if nvcc is None or shutil.which("g++") is None:
        pytest.skip("needs nvcc and g++")
    source = tmp_path / "k.cu"
    source.write_text('extern "C" __global__ void twice(float* x) { x[threadIdx.x] = exp2f(x[threadIdx.x]); }')
    made = subprocess.run(
        [nvcc, "-arch=sm_90", "-c", "k.cu", "-o", "k.o"], cwd=tmp_path, capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this nvcc can not compile here")
    found = read_file(tmp_path / "k.o", "twice")
    assert "twice" in found.kernel.name and found.kernel.mix.ex2 == 1 and found.kernel.registers
    (tmp_path / "host.o").write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(SassError, match="holds no CUDA code"):
        read_file(tmp_path / "host.o")
