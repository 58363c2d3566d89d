"""The fa4-fork target without torch: what it sets, refuses, finds and shows."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fa4top.analysis.trace.capture import Capture
from fa4top.analysis.trace.hangs import explain, role_states
from fa4top.analysis.trace.layout import BufferLayout
from fa4top.analysis.trace.sample import decode_capture
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.words import shown_knobs
from fa4top.cli.place import choose_place
from fa4top.cli.text.results import text_of
from fa4top.orders.presets import PRESETS
from fa4top.orders.shapes import parse_shape
from fa4top.records import Plan, Published, Shape, TraceSample
from fa4top.targets.base import QUIET
from fa4top.targets.catalog import describe
from fa4top.targets.fa4.compiler import ptxas_version
from fa4top.targets.fork.checkout import NoCheckout
from fa4top.targets.fork.description import DESCRIPTION, TARGET_KNOBS, notes, setting_hazard, shape_problem
from fa4top.targets.fork.environment import prepare, strangers, variables
from fa4top.targets.fork.family import FORK, RECORDED, recorded
from fa4top.targets.fork.find import STAND_IN, find_fork, refusal
from fa4top.targets.fork.geometry import kernel_geometry
from fa4top.targets.fork.launch import recorded_block
from fa4top.targets.fork.published import MODES, SOURCE, TFLOPS, published
from fa4top.targets.fork.trace_buffer import UnknownTrace, decode_block, decode_packed, pack_block
from fa4top.ui.view import View
from fa4top.ui.widgets.facts import Facts
from fa4top.worker import faults
from tests.fork.buffers import GROUPS, PERIOD, Recorder, buffer, mma, softmax
from tests.fork.checkout import write_stand_in
from tests.traces import sampled

SHAPE = DESCRIPTION.default_shape
LAYOUT = BufferLayout(roles=RECORDED, capacity=1, stride=8)


def setting(**chosen: str) -> dict[str, str]:
    full, problems = DESCRIPTION.setting(chosen)
    assert not problems
    return full


def plan_of(knobs: dict[str, str], shape: Shape = SHAPE, **named: Any) -> Plan:
    return Plan(
        plan_id=1,
        target="fa4-fork",
        device="NVIDIA GB300",
        gpu_uuid="GPU",
        arch="sm_103a",
        shape=shape,
        knobs=knobs,
        seed=0,
        simulated=False,
        **named,
    )


def test_a_worker_sees_the_settings_variables_and_no_others() -> None:
    environment = {"FA4_LDRED_ROWMAX": "1", "FA4_FP8_PV_TMEM_STORE_REP": "4", "PATH": "/bin"}
    assert list(strangers(environment)) == ["FA4_FP8_PV_TMEM_STORE_REP", "FA4_LDRED_ROWMAX"]
    found = prepare(setting(FA4_FP8_PV_P_SPLIT_NUM="5"), "traced", True, "/private", environment)
    # the fork looks at whether a variable is there at all: what is left to it must not be there
    assert found == {"FA4_FP8_PV_P_SPLIT_NUM": "5", "FA4_PROFILE_PIPELINE": "1", "FA4_PROFILE_DETAIL": "1"}
    assert strangers(environment) == found and environment["CUTE_DSL_CACHE_DIR"] == "/private"
    assert environment["PATH"] == "/bin"


@pytest.mark.parametrize(
    ("probes", "found"),
    [
        ("off", {}),
        ("empty", {"FA4_PROFILE_PIPELINE": "1", "FA4_PROF_EMPTY": "1"}),
        ("global", {"FA4_PROFILE_PIPELINE": "1", "FA4_PROF_SMEM": "0"}),
        ("detail", {"FA4_PROFILE_PIPELINE": "1", "FA4_PROFILE_DETAIL": "1", "FA4_PROF_SMEM": "1"}),
    ],
)
def test_the_timed_twin_may_carry_probes_to_tell_their_cost(probes: str, found: dict[str, str]) -> None:
    assert variables(setting(probes=probes), "clean", False) == found
    assert variables(setting(probes=probes), "traced", False) == {"FA4_PROFILE_PIPELINE": "1"}


@pytest.mark.parametrize(
    ("shape", "knobs", "arch", "says"),
    [
        (SHAPE, {}, "sm_90a", "need sm_100a or sm_103a"),
        (replace(SHAPE, seqlen_k=1000), {}, "sm_103a", "sk must be a multiple of 128"),
        (replace(SHAPE, dtype="fp8"), {}, "sm_103a", "--set pv_mode"),
        (replace(SHAPE, head_dim=64), {}, "sm_103a", "head dims 64 and 128 differ"),
        (replace(SHAPE, head_dim=64, head_dim_v=64), {"pv_mode": "fp4"}, "sm_103a", "needs head dim 128"),
        (SHAPE, {"pv_mode": "mxfp8", "qk_mode": "mxfp8"}, "sm_103a", "exists with QK in nvfp4 only"),
        (SHAPE, {"FA4_LDRED_ROWMAX": "1"}, "sm_100a", "an instruction that sm_100a does not have"),
        (SHAPE, {"pv_mode": "mxfp8", "FA4_FP4_PV_LOG2_QUANT": "0"}, "sm_103a", "asserts FA4_FP4_PV_LOG2_QUANT=1"),
        (SHAPE, {"pv_mode": "fp8", "FA4_FP8_PV_TMEM_STORE_REP": "3"}, "sm_103a", "does not divide the 32 columns"),
    ],
)
def test_what_can_not_run_is_refused_with_a_sentence(shape: Shape, knobs: dict[str, str], arch: str, says: str) -> None:
    assert says in str(shape_problem(shape, arch, setting(**knobs)))


def test_every_offered_value_is_legal_and_the_default_runs() -> None:
    assert shape_problem(SHAPE, "sm_103a", setting()) is None and setting_hazard(SHAPE, "sm_103a", setting()) is None
    for knob in TARGET_KNOBS:
        for value in knob.values:
            assert knob.problem(value) is None, (knob.name, value)
    assert set(DESCRIPTION.tries.values()) <= {knob.name for knob in TARGET_KNOBS}
    assert all(knob.problem(value) is None for knob in TARGET_KNOBS for value in knob.worth_trying)
    split = next(knob for knob in TARGET_KNOBS if knob.name == "FA4_FP8_PV_P_SPLIT_NUM")
    assert split.problem("11") is None and "no whole number" in str(split.problem("half"))


def test_hazards_follow_mode_head_dim_and_chip() -> None:
    quarter = {"FA4_FP8_PV_P_SPLIT_NUM": "1"}
    assert "descriptor" in str(setting_hazard(SHAPE, "sm_103a", setting(pv_mode="fp8", **quarter)))
    # head dim 64 has its split hard-wired, bf16 does not read it
    narrow = replace(SHAPE, head_dim=64, head_dim_v=64)
    assert setting_hazard(narrow, "sm_103a", setting(pv_mode="fp8", **quarter)) is None
    assert setting_hazard(SHAPE, "sm_103a", setting(**quarter)) is None
    assert "no effect here" in notes(SHAPE, "sm_103a", setting(**quarter))[0]
    assert "E2M1 only" in str(setting_hazard(SHAPE, "sm_100a", setting(pv_mode="mxfp8")))


def test_the_published_figures_need_chip_mode_and_shape() -> None:
    knobs = setting(pv_mode="fp8")
    shape = parse_shape("b1-s32768-h24", SHAPE)
    assert (shape.seqlen_q, shape.seqlen_k, shape.heads, shape.kv_heads) == (32768, 32768, 24, 24)
    assert published("NVIDIA GB300", shape, knobs) == Published(tflops=2677, source=SOURCE)
    assert published("NVIDIA GB300", shape, setting(pv_mode="fp4")) == Published(tflops=1725, source=SOURCE)
    assert published("NVIDIA B200", shape, knobs) is None
    assert published("NVIDIA GB300", replace(shape, causal=True), knobs) is None
    assert published("NVIDIA GB300", parse_shape("b1,s2048", SHAPE), knobs) is None
    assert set(TFLOPS) == set(PRESETS) and all(len(row) == len(MODES) for row in TFLOPS.values())


def test_knobs_that_are_not_at_their_default_are_shown() -> None:
    knobs = setting(FA4_LDRED_ROWMAX="0", pv_mode="fp8")
    defaults = DESCRIPTION.defaults()
    quiet = [name for name, value in knobs.items() if value in QUIET and value == defaults[name]]
    plan = plan_of(knobs, quiet=quiet)
    assert shown_knobs(plan) == {"pv_mode": "fp8", "qk_mode": "nvfp4", "FA4_LDRED_ROWMAX": "0"}
    assert shown_knobs(plan, but=("pv_mode",)) == {"qk_mode": "nvfp4", "FA4_LDRED_ROWMAX": "0"}


def test_discovery_names_where_the_package_comes_from(tmp_path: Path) -> None:
    top = write_stand_in(tmp_path / "checkout")
    named = find_fork(str(top), tmp_path, "")
    assert named.path == str(top) and named.stand_in and "flash_attn/cute (--fa4-path), profiler v2" in named.sentence()
    assert find_fork("", top, "").why == "the present folder"
    installed = find_fork("", tmp_path, str(top / "flash_attn" / "cute" / "interface.py"))
    assert installed.path == "" and "workers' interpreter" in installed.why and refusal(installed.checkout) is None
    upstream = tmp_path / "site" / "flash_attn" / "cute"
    upstream.mkdir(parents=True)
    for asked, package, says in (
        ("", "", "give --fa4-path DIR"),
        ("", str(upstream / "interface.py"), "is not the fork"),
        (str(tmp_path), "", "holds no flash-attention-fp4"),
        (str(top / "flash_attn"), "", "holds no flash-attention-fp4"),
    ):
        with pytest.raises(NoCheckout, match=says):
            find_fork(asked, tmp_path, package)


def test_an_unknown_layout_is_refused_with_what_was_expected_and_found(tmp_path: Path) -> None:
    old = write_stand_in(tmp_path / "v0", "v0")
    text = str(refusal(find_fork(str(old), tmp_path, "").checkout))
    assert (
        "profiler: expected v1 or v2 (32-bit words), found v0" in text and "event names: expected 14, found 12" in text
    )


@pytest.mark.parametrize(
    ("shape", "ctas", "tiles", "longest", "persistent"),
    [
        ("b1,s4096,h24", 148, 384, 3 * 32, True),
        ("b1,s256,h2", 2, 2, 2, True),
        ("b1,s4096,h24 causal", 384, 384, 45, False),  # 384 tiles of 17 steps on average, over 148 SMs
    ],
)
def test_geometry_is_the_contracts(shape: str, ctas: int, tiles: int, longest: int, persistent: bool) -> None:
    words = shape.split()
    found = kernel_geometry(replace(parse_shape(words[0], SHAPE), causal="causal" in words), 148)
    assert (found.grid_ctas, found.tiles, found.persistent) == (ctas, tiles, persistent)
    assert found.steps_longest == longest


def recording(blocks: int, size: int = 40_000) -> np.ndarray:
    recorders: dict[tuple[int, int], Recorder] = {}
    for block in range(blocks):
        recorders |= {
            (block, 0): mma(900, 40),
            (block, 1): softmax(1000, 40, False),
            (block, 2): softmax(1100, 40, False),
        }
    return buffer(recorders, blocks, size, shared=False)


def test_one_block_packed_decodes_as_from_the_whole_buffer() -> None:
    words = recording(3)
    whole, packed = decode_block(words, 1), decode_packed(pack_block(words, 1), 1)
    assert [role.role for role in packed.roles] == ["mma", "softmax0", "softmax1"]
    for a, b in zip(whole.roles, packed.roles, strict=True):
        assert a.stream.clock.tolist() == b.stream.clock.tolist() and a.stream.key.tolist() == b.stream.key.tolist()
    with pytest.raises(UnknownTrace, match="found 7 words"):
        decode_packed(np.zeros(7, dtype=np.uint32), 0)


def captured(words: np.ndarray, block: int, hung: bool = False) -> Capture:
    """What a launcher hands to its worker."""
    return Capture(recorded=recorded(pack_block(words, block)), generation=1, cta=block, time_us=0.0, hung=hung)


def sample_of(words: np.ndarray, block: int) -> TraceSample:
    return sampled(captured(words, block), LAYOUT, FORK, timeline=True)


def test_a_capture_gives_our_figures_and_the_forks_own() -> None:
    words = recording(2)
    found = sample_of(words, 1)
    assert found.sm == 2 and found.losses.unmatched == found.losses.stale == 0
    assert found.own["softmax_period"] == PERIOD and found.own["mma_wait_p"] == 950
    softmax0 = next(role for role in found.roles if role.role == "softmax0")
    assert softmax0.period_median_cycles == PERIOD and softmax0.waits_cycles["wait S"] == 600
    assert found.timeline is not None and found.timeline.rows


def test_a_hanging_block_tells_which_signal_was_lost() -> None:
    lost = mma(900, 40)
    lost.events = lost.events[: 4 + 18 * 9 + 6]  # ... in the wait for the second part of P
    stuck = [softmax(1000, 12, False), softmax(1100, 11, False)]
    for recorder in stuck:
        recorder.events = recorder.events[:-7]  # in the wait for S
    words = buffer({(0, 0): lost, (0, 1): stuck[0], (0, 2): stuck[1]}, 1, 4000, shared=False)
    found = decode_capture(captured(words, 0, True), LAYOUT, FORK)
    text = explain(role_states(found.traces, RECORDED, FORK), FORK)
    assert "mma: waits for P 2nd" in text and "softmax1 waits behind the place where P 2nd is sent" in text


def test_the_read_block_is_the_asked_one_unless_it_lost_its_first_event() -> None:
    firsts = np.zeros((4, GROUPS, 2), dtype=np.uint32)
    firsts[0, 1] = (6 << 2, 100)  # ran on SM 0
    firsts[1, 1] = (3 << 24 | 6 << 2, 100)
    firsts[3, 1] = (5 << 24 | 6 << 2, 100)  # block 2 recorded nothing
    assert [recorded_block(firsts, cta) for cta in (0, 1, 2, 3, 5)] == [1, 1, 3, 3, 1]
    firsts[1:] = 0
    assert recorded_block(firsts, 2) == 0
    with pytest.raises(UnknownTrace, match="no block recorded anything"):
        recorded_block(np.zeros_like(firsts), 0)


def test_cuda_faults_are_put_in_words() -> None:
    assert "an address that is not its own" in faults.plain("CUDA error: an illegal memory access was encountered")
    assert "does not have" in faults.plain("cudaErrorIllegalInstruction: x")
    assert "assertion" in faults.plain("CUDA error: device-side assert triggered")
    assert faults.plain("CUDA error: something else") == "CUDA error: something else"


def test_the_compiler_inside_a_library_is_read_from_its_bytes() -> None:
    data = b"\x00\x01Cuda compilation tools, release 12.9, V12.9.86\x00more"
    assert ptxas_version(data) == "12.9.86" and ptxas_version(b"nothing") == ""


def test_the_target_is_in_the_catalog() -> None:
    assert describe("fa4-fork") is DESCRIPTION


def test_the_timeline_shows_steps_that_the_full_ring_of_the_mma_role_still_saw() -> None:
    recorders = {(0, 0): mma(900, 40), (0, 1): softmax(1000, 40, False), (0, 2): softmax(1100, 40, False)}
    words = buffer(recorders, 1, 40_000)  # into rings: 7 blocks of the MMA role, 16 steps of softmax
    found = sample_of(words, 0)
    assert found.timeline is not None
    assert {row.role: bool(row.spans) for row in found.timeline.rows} == dict.fromkeys(RECORDED, True)


def test_the_published_figure_stands_beside_the_live_one() -> None:
    shape = parse_shape("b1-s32768-h24", SHAPE)
    knobs = setting(pv_mode="fp8")
    plan = plan_of(knobs, shape=shape, published=published("NVIDIA GB300", shape, knobs))
    snapshot = Snapshot(plan=plan, clean_us=8300.0, tflops=2540.0, own=(("softmax_period", 3962.0),))
    text = text_of(snapshot)
    assert "published          2677 TFLOP/s" in text and "softmax period 3962" in text
    rows = ["".join(part for part, _ in row) for row in Facts().rows(snapshot, View(), 100, 4)]
    assert "2 540 TFLOP/s  (published 2 677)" in rows[0] and "own    period 3 962" in rows[1]
    assert "published" not in text_of(replace(snapshot, plan=replace(plan, published=None)))


def test_a_real_checkout_needs_cupy_in_its_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = write_stand_in(tmp_path / "real")
    (top / "flash_attn" / "cute" / STAND_IN).unlink()
    with pytest.raises(SystemExit) as ended:
        choose_place("fa4-fork", "", sys.executable, str(top))
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert "lacks" in said and "cupy" in said and "install it there" in said
