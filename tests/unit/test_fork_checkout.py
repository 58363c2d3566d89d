"""A checkout of the fork is told by what its sources hold, on stand-ins of all its profiler versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fa4top.cli.root import root
from fa4top.targets.fork.checkout import NoCheckout, git_commit, inspect_checkout
from tests.fork.sources import write_checkout


@pytest.mark.parametrize(("version", "usable"), [("v0", False), ("v1", True), ("v2", True)])
def test_versions_are_told_by_their_sources(tmp_path: Path, version: str, usable: bool) -> None:
    found = inspect_checkout(write_checkout(tmp_path, version))
    assert found.profiler == version and found.usable == usable and found.split_default == "3"
    rows = {row.what.split(" ")[0]: row for row in found.rows}
    assert rows["create_nvfp4_attention_tensors"].holds and "benchmarks/bench_fp4.py" in found.rows[-1].what
    if not usable:
        assert not rows["profiler"].holds and "64-bit" in rows["profiler"].found
        assert rows["gemm_ptx_partial"].found == "lacks prof_ts_addrs" and rows["event"].found == "12"


def test_the_package_folder_itself_will_do(tmp_path: Path) -> None:
    top = write_checkout(tmp_path, "v2")
    assert inspect_checkout(top / "flash_attn" / "cute").package == inspect_checkout(top).package


def test_knobs_that_only_one_side_has_are_told(tmp_path: Path) -> None:
    found = inspect_checkout(write_checkout(tmp_path, "v2", knobs=("FA4_BRAND_NEW", "FA4_FORCE_E2E")))
    assert found.unknown_knobs == ("FA4_BRAND_NEW",)
    assert "FA4_FORCE_E2E" not in found.absent_knobs and "FA4_E2E_FREQ" in found.absent_knobs


def test_what_is_missing_or_broken_is_a_row_not_an_exception(tmp_path: Path) -> None:
    top = write_checkout(tmp_path, "v2")
    (top / "flash_attn" / "cute" / "blackwell_helpers.py").write_text("def broken(:\n")
    (top / "flash_attn" / "cute" / "profiler.py").unlink()
    (top / "benchmarks" / "bench_fp4.py").unlink()
    found = inspect_checkout(top)
    assert not found.usable and found.profiler == "none"
    texts = {row.what.split(" ")[0]: row.found for row in found.rows}
    assert texts["gemm_ptx_partial"] == texts["create_nvfp4_attention_tensors"] == "no such function"
    assert "not found" in found.rows[-1].what


def test_another_package_is_refused_with_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NoCheckout, match=r"flash_fwd_sm100_fp4\.py"):
        inspect_checkout(tmp_path)


def test_the_commit_is_read_from_git(tmp_path: Path) -> None:
    top = write_checkout(tmp_path, "v2")
    assert git_commit(top / "flash_attn" / "cute") == ""
    git = top / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/fp4\n")
    (git / "packed-refs").write_text("# pack-refs\nabcdef0123456789 refs/heads/fp4\n")
    assert git_commit(top) == "abcdef012345"
    (git / "refs" / "heads" / "fp4").write_text("0123456789abcdef\n")
    assert git_commit(top / "flash_attn") == "0123456789ab"
    (git / "HEAD").write_text("fedcba9876543210\n")
    assert inspect_checkout(top).commit == "fedcba987654"


def test_doctor_prints_the_table(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = write_checkout(tmp_path / "old", "v0", split="1")
    shown = CliRunner().invoke(root, ["doctor", "--fa4-path", str(old)]).stdout
    assert "flash-attention-fp4" in shown and "MISSING profiler" in shown and "64-bit entries" in shown
    assert "fp8 split 1/2 by default" in shown and "1/2 cost 24%" in shown
    monkeypatch.chdir(write_checkout(tmp_path / "new", "v2"))
    data = json.loads(CliRunner().invoke(root, ["doctor", "--json"]).stdout)
    states = {row["what"]: row["state"] for row in data["flash-attention-fp4"]}
    assert states["checkout"] == states["profiler"] == states["flash_attn_func"] == "ok"
    nothing = CliRunner().invoke(root, ["doctor", "--fa4-path", str(tmp_path)]).stdout
    assert "holds no flash-attention-fp4" in nothing
