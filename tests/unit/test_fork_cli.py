"""What a person with a checkout of the fork types: knobs explained, a setting judged, a trace read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from fa4top.cli.root import root
from tests.fork.buffers import PERIOD, buffer, mma, softmax


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments))


def test_knobs_are_explained_by_mode() -> None:
    fp8, bf16 = (run("knobs", "--target", "fa4-fork", "--mode", mode).stdout for mode in ("fp8", "bf16"))
    assert "  FA4_FP8_PV_P_SPLIT_NUM" in fp8 and "  FA4_FP8_PV_P_SPLIT_NUM" not in bf16
    assert "read when the kernel is traced; numerics: bitwise" in fp8 and "! 1/2 instead of 3/4 cost 24%" in fp8
    data = json.loads(run("knobs", "--target", "fa4-fork", "--json").stdout)["fa4-fork"]
    assert len(data) == 30 and run("knobs", "--target", "fa4-fork", "--mode", "int4").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("fp8 --check FA4_FP8_PV_P_SPLIT_NUM=7 --check FA4_FP8_PV_P_SPLIT_DEN=8", 0, "3 of 4 chunks"),
        ("fp8 --check FA4_FP8_PV_TMEM_STORE_REP=16", 1, "danger: P is signalled after 1 of 2 chunks"),
        ("fp8 --arch sm_100a --check FA4_LDRED_ROWMAX=1", 1, "refused: FA4_LDRED_ROWMAX=1"),
        ("fp4 --qk mxfp8 --check FA4_E2E_FREQ=8", 1, "refused: PV in fp4 exists with QK in nvfp4"),
        ("fp8 --check FA4_FP8_PV_P_LOG2_OFFSET=4", 0, "note: FA4_FP8_PV_P_LOG2_OFFSET: outputs change"),
    ],
)  # fmt: skip
def test_a_setting_is_judged_with_an_exit_code(arguments: str, code: int, says: str) -> None:
    words = ("knobs", "--target", "fa4-fork", "--mode", *arguments.split())
    result = run(*words)
    assert result.exit_code == code and says in result.stdout, result.stdout
    assert json.loads(run(*words, "--json").stdout)["findings"] or code == 0


def test_modes_and_checks_belong_to_the_fork() -> None:
    result = run("knobs", "--target", "sim", "--mode", "fp8")
    assert result.exit_code == 2 and "fa4-fork" in result.stderr


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    recorders = {(block, g): softmax(99 + 40 * g, 64, False) for block in (0, 1) for g in (1, 2)}
    recorders |= {(block, 0): mma(99, 64) for block in (0, 1)}
    path = tmp_path / "trace.npy"
    np.save(path, buffer(recorders, 2, 1 << 16, sms={0: 0, 1: 33}).view(np.int32))
    return path


def test_a_trace_is_read(trace: Path) -> None:
    shown = run("fork-trace", str(trace)).stdout
    assert "block 1 of 2 (2 recorded) on SM 33, coarse trace" in shown and f"{PERIOD:8}  softmax period" in shown
    assert "! mma, softmax0, softmax1: recording stopped after 128 events" in shown and "wait P 2nd" in shown
    data = json.loads(run("fork-trace", str(trace), "--block", "0", "--json").stdout)
    assert data["metrics"]["softmax_period"] == PERIOD and data["sm"] == 0 and "SM 0" in " ".join(data["notes"])


def test_files_that_are_no_trace_are_refused_with_what_was_found(tmp_path: Path, trace: Path) -> None:
    raw = tmp_path / "trace.bin"
    raw.write_bytes(np.load(trace).tobytes())
    assert run("fork-trace", str(raw)).stdout == run("fork-trace", str(trace)).stdout
    np.save(tmp_path / "old.npy", np.zeros(10, dtype=np.uint64))
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "zero.npy", np.zeros(100, dtype=np.int32))
    for name, says in (("old", "first version"), ("empty", "can not be read"), ("zero", "nothing was recorded")):
        result = run("fork-trace", str(tmp_path / f"{name}.npy"))
        assert result.exit_code == 2 and says in result.stderr, result.stderr
    assert "blocks 0 to 1, not 9" in run("fork-trace", str(trace), "--block", "9").stderr
