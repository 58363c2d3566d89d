"""A target that somebody else's package brings, in one file: every command has it, and nothing of ours changes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fa4top.targets.catalog import _installed
from tests.conftest import ROOT, run_cli, run_process

TOY = """
import numpy as np

from fa4top.analysis.trace.family import Family, StepRule
from fa4top.analysis.trace.layout import MARK, BufferLayout, next_generation
from fa4top.analysis.trace.capture import Capture
from fa4top.records import Geometry, Shape
from fa4top.targets.base import Described, Description, Knob, attention_flops
from fa4top.targets.launcher import Burst, CheckResult, TargetError
from fa4top.targets.sim.trace import LaunchFacts, RoleLog, write_buffer

STEPS, MHZ = 64, 1500.0
FAMILY = Family(
    name="toy", roles=("maker", "eater"), lead="eater", mma=("maker",),
    steps={"maker": StepRule("step", True), "eater": StepRule("step", True)},
    waits={"*": {"eater": frozenset({"wait S"})}}, senders={"wait S": ("maker",)},
)
LAYOUT = BufferLayout(roles=FAMILY.roles, capacity=4096, stride=8)


class Toy:
    layout, family, arch, probe_sets = LAYOUT, FAMILY, "sm_90a", ["coarse"]

    def __init__(self, request):
        self._request = request
        self.probe_set = "coarse" if request.twin == "traced" else ""
        self.versions = {"toy": "1.0"}
        self._random = np.random.default_rng(request.seed + len(request.twin))
        self._cycles = 1000.0 * (1.0 + 0.1 * (request.knobs["speed"] == "slow"))
        self._generation = 0

    def compile(self, progress):
        return Geometry(grid_ctas=8, sm_count=8, ctas_per_sm=1, tiles=8, steps_per_tile=STEPS, steps_longest=STEPS,
                        persistent=True, flops=attention_flops(self._request.shape))

    def check(self):
        return CheckResult(4, 1e-3, 1e-3, 1e-2, "toy")

    def inputs_digest(self):
        return "toy inputs"

    def output(self):
        return np.ones((1, 128, 1, 128), dtype=np.float32)

    def clean_burst(self, launches, l2="warm", primers=1):
        times = self._cycles * STEPS / MHZ * (1.0 + 1e-3 * self._random.standard_normal(launches))
        return Burst([float(t) for t in times], MHZ, l2, 5.0)

    def traced_launch(self, cta):
        self._generation = next_generation(self._generation)
        logs = {role: RoleLog() for role in FAMILY.roles}
        for step in range(STEPS):
            at = step * self._cycles
            logs["maker"].event(1, MARK, at)
            logs["eater"].span(9, at + 10.0, at + 260.0)
            logs["eater"].event(1, MARK, at + 5.0)
        for log in logs.values():
            log.rows.sort(key=lambda row: row[1])
            log.end_cycles = STEPS * self._cycles
        buffer = np.zeros(LAYOUT.total_bytes, dtype=np.uint8)
        write_buffer(buffer, LAYOUT, logs, LaunchFacts(self._generation, cta, cta, 1000, 3200, MHZ), LAYOUT.capacity)
        return Capture(recorded=LAYOUT.views(buffer), generation=self._generation, cta=cta,
                       time_us=self._cycles * STEPS / MHZ)

    def hung_capture(self):
        return None

    def telemetry(self):
        return None

    def close(self):
        pass


def compile_toy(shape, arch, knobs, probe_set):
    raise TargetError("compile error", "the toy was asked for its code", "it has none")


DESCRIPTION = Description(
    name="toy", summary="a toy of somebody else", launcher="toy_target:Toy",
    knobs=(Knob("speed", "fast", "how fast it is", ("fast", "slow"), tries=("fast", "slow")),),
    default_shape=Shape(batch=1, seqlen_q=1024, seqlen_k=1024, heads=8, kv_heads=8, head_dim=128, head_dim_v=128),
    requires=("numpy",), simulated=True, shape_problem=lambda shape, arch, knobs: None,
    tries={"handoff": "speed"}, device=lambda knobs: Described("sm_90a", "toy chip", "SIM-toy"),
    compile_only="toy_target:compile_toy", default_arch="sm_90a",
)
"""


@pytest.fixture
def toy(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, as pip would have installed it."""
    site = home / "site"
    about = site / "toy-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "toy_target.py").write_text(TOY)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fa4top.targets]\ntoy = toy_target:DESCRIPTION\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(ROOT)]))
    monkeypatch.syspath_prepend(site)
    _installed.cache_clear()
    yield
    sys.modules.pop("toy_target", None)
    _installed.cache_clear()


COMMANDS = {
    "knobs": (("knobs", "--target", "toy"), 0, "how fast it is"),
    "doctor": (("doctor",), None, "toy"),
    "live": (("live", "--target", "toy", "--seconds", "0.3"), 0, "wait S 250 (25%)"),
    "ab": (("ab", "--target", "toy", "--b", "speed=slow", "--budget", "10m"), 0, "B is SLOWER by 10."),
    "sweep": (("sweep", "speed=fast,slow", "--target", "toy", "--budget", "10m"), 0, "slow is 10.0% slower"),
    "check": (("check", "--target", "toy", "--b", "speed=slow", "--times", "3"), 0, "bitwise equal to the baseline"),
    "triage": (("triage", "--target", "toy", "--seconds", "0.5", "--times", "3"), 0, "eater: step 1000 cycles"),
    "sass": (("sass", "--target", "toy"), 2, "the toy was asked for its code"),
}


@pytest.mark.usefixtures("copies")
@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_in_every_command(toy: None, name: str) -> None:
    words, code, says = COMMANDS[name]
    done = run_cli(*words)
    said = done.stdout + done.stderr
    assert says in said and (code is None or done.returncode == code), (done.returncode, said[-2500:])


def test_its_session_is_recorded_and_replays(toy: None, home: Path) -> None:
    done = run_process("live", "--target", "toy", "--seconds", "0.3", "--json")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert {record["body"]["target"] for record in records if record["kind"] == "plan"} == {"toy"}
    log = home / "toy.jsonl"
    log.write_text(done.stdout)
    text = run_process("replay", "--text", str(log)).stdout
    assert "wait S 250 (25%)" in text and "SIMULATED" in text


def test_a_broken_one_takes_nothing_with_it(toy: None, home: Path) -> None:
    (home / "site" / "toy_target.py").write_text("raise RuntimeError('no')\n")
    done = run_process("knobs", "--target", "sim")
    assert done.returncode == 0 and "p_split" in done.stdout
