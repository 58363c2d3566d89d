"""Every command with its default arguments on a machine with GPUs made of paper, up to where a kernel would start."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fa4top.cli.root import COMMANDS
from fa4top.orders import exits
from fa4top.targets.catalog import TARGETS
from fa4top.targets.fork.find import STAND_IN
from tests.conftest import ROOT, run_cli
from tests.fork.buffers import buffer, mma, softmax
from tests.fork.checkout import write_stand_in
from tests.forked import forking
from tests.paper.interpreter import STOPPED, stop_at_kernels

LIVE = str(ROOT / "examples" / "h200-live.jsonl.gz")
PAPER = ROOT / "tests" / "paper"


@dataclass(frozen=True)
class Way:
    """How a command is called on the paper machine: more words, and the options of the common ones that it has."""

    words: tuple[str, ...] = ()
    target: bool = False
    gpu: bool = False
    json: bool = True
    kernel: bool = False  # it comes to where a kernel would start


# how those end that come to no kernel, where that is not in peace
ENDS = {
    "top": {exits.OK, exits.USAGE},
    "replay": {exits.OK, exits.USAGE},  # no terminal here
    "sass": {exits.USAGE},  # nothing to compile without a GPU
    "attach": {exits.NOTHING_TO_RUN_ON},
    "doctor": {exits.OK, exits.NOTHING_TO_RUN_ON},
}
WAYS: dict[str, Way] = {
    "top": Way(target=True, gpu=True, json=False, kernel=True),
    "live": Way(("--seconds", "0.1"), target=True, gpu=True, kernel=True),
    "ab": Way(("--self-test", "--budget", "2s"), target=True, gpu=True, kernel=True),
    "sweep": Way(("handicap=0,0.25",), target=True, gpu=True, kernel=True),
    "check": Way(("--times", "2"), target=True, gpu=True, kernel=True),
    "triage": Way(("--seconds", "0.5"), target=True, gpu=True, kernel=True),
    "bench": Way(("ex2",), gpu=True, kernel=True),
    "sass": Way(target=True, kernel=True),
    "doctor": Way(),
    "knobs": Way(target=True),
    "replay": Way((LIVE,)),
    "export": Way((LIVE, "--format", "csv"), json=False),
    "sessions": Way(),
    "attach": Way(json=False),
    "config": Way(),
    "fork-trace": Way(("TRACE",)),
}


def test_no_command_is_missing_here() -> None:
    assert set(WAYS) == set(COMMANDS)


@pytest.fixture
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Its environment; its interpreter."""
    python = home / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {PAPER / "interpreter.py"} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PAPER_TAG", home.name)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PAPER / "site"), str(ROOT)]))
    monkeypatch.syspath_prepend(PAPER / "site")
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    (home / "config.toml").write_text(f'python = "{python}"\n')
    yield python
    sys.modules.pop("pynvml", None)


def fork(home: Path) -> str:
    """A checkout that is no stand-in, so that it needs a GPU."""
    top = write_stand_in(home / "checkout")
    (top / "flash_attn" / "cute" / STAND_IN).unlink()
    return str(top)


def words_of(command: str, target: str, more: bool, home: Path) -> list[str]:
    way = WAYS[command]
    trace = home / "trace.npy"
    np.save(trace, buffer({(0, 0): mma(900, 40), (0, 1): softmax(1000, 40, False)}, 1, 40_000))
    words = [command, *(str(trace) if word == "TRACE" else word for word in way.words)]
    words += ["--target", target] if target else []
    words += ["--fa4-path", fork(home)] if target == "fa4-fork" and command not in ("knobs",) else []
    words += ["--gpu", "0" if target == "fa4-fork" else "1"] if way.gpu and (more or target == "builtin") else []
    return words + (["--json"] if way.json and more else [])


@pytest.mark.parametrize("more", [False, True], ids=["plain", "with --gpu and --json"])
@pytest.mark.parametrize(
    ("command", "target"),
    [(name, target) for name, way in WAYS.items() for target in (("", *TARGETS) if way.target else ("",))],
)
def test_every_command_on_every_target(command: str, target: str, more: bool, machine: Path, home: Path) -> None:
    way = WAYS[command]
    # how a worker starts under that interpreter is seen with the simplest of the commands that have any
    with forking(workers=command not in ("live", "bench"), prepare=stop_at_kernels):
        done = run_cli(*words_of(command, target, more, home))
    said = done.stdout + done.stderr
    assert "Traceback" not in (done.stderr if way.json and more else said), said[-3000:]
    if not way.kernel or (command == "sass" and target in ("sim", "fa4-fork")):
        assert done.returncode in ENDS.get(command, {exits.OK}), said[-2000:]
        return
    assert STOPPED in said and done.returncode != exits.OK, (done.returncode, said[-2000:])
    if more and way.json and command != "sass":
        records = [json.loads(line) for line in done.stdout.splitlines()]
        assert records[0]["kind"] == "header" and {r.get("simulated", False) for r in records} == {target == "sim"}
        assert any(record["kind"] == "fault" for record in records)


@pytest.mark.parametrize("gpu", ["0", "MIG-bbbb"])
def test_a_whole_session_with_readings_that_are_not_all_there(
    machine: Path, gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPER_RUNS", "1")
    done = run_cli("live", "--target", "fa4", "--gpu", gpu, "--seconds", "0.5", "--json")
    assert done.returncode == exits.OK, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    readings = [record["body"] for record in records if record["kind"] == "gpu"]
    readings = [body for body in readings if body["name"].startswith("NVIDIA")]
    assert readings and readings[0]["sm_clock_mhz"] == 1920 and readings[0]["temperature_c"] == 41
    assert readings[0]["power_w"] is None and readings[0]["memory_used_mib"] is None
    assert any(record["kind"] == "trace" for record in records)
