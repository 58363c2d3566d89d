"""The fork's trace buffer: decoded in both ways of recording, its traps, its metrics by its definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fa4top.analysis.trace.decode import RoleTrace
from fa4top.analysis.trace.events import event_id
from fa4top.analysis.trace.steps import role_sample, steps_of
from fa4top.records import RoleSample
from fa4top.targets.fork.family import FORK
from fa4top.targets.fork.trace_buffer import UnknownTrace, choose_block, decode_block, read_header, recorded_blocks
from fa4top.targets.fork.trace_metrics import fork_metrics, summarise
from tests.fork.buffers import MMA, PERIOD, STEP, Recorder, buffer, mma, softmax

SIZE = 1 << 17


def block_of(
    detail: bool = False, steps: int = 10, start: int = 1000, block: int = 0
) -> dict[tuple[int, int], Recorder]:
    return {
        (block, 0): mma(start, steps),
        (block, 1): softmax(start + 50, steps, detail),
        (block, 2): softmax(start + 1900, steps, detail),
    }


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("detail", [True, False])
def test_every_event_comes_back(shared: bool, detail: bool) -> None:
    recorders = {**block_of(detail), **block_of(detail, start=77, block=1)}
    words = buffer(recorders, 2, SIZE, shared=shared)
    assert read_header(words)[:2] == (2, 4) and recorded_blocks(words) == [(0, 1), (1, 2)]
    for block in (0, 1):
        trace = decode_block(words, block)
        assert [g.trace.role for g in trace.groups] == ["mma", "softmax0", "softmax1"] and trace.detail == detail
        assert trace.sm == block + 1 and not any(g.missing or g.foreign or g.unknown for g in trace.groups)
        for group, role in enumerate(trace.roles):
            events = recorders[block, group].events
            kept = events[:128] if shared else events
            assert role.stream.recorded == len(kept) and role.stream.backward == 0
            assert (role.stream.clock == [clock - kept[0][2] for _, _, clock in kept]).all()


@pytest.mark.parametrize("start", [1000, 2**32 - 5000])
def test_the_forks_own_metrics_by_its_definitions(start: int) -> None:
    """Clocks that wrap change nothing."""
    for detail in (False, True):
        found = fork_metrics(decode_block(buffer(block_of(detail, start=start), 1, SIZE, shared=False), 0))
        assert found.softmax_period == PERIOD
        work = STEP["row_max"] + STEP["exp"] + STEP["quant"]
        assert found.softmax_busy == work + STEP["store"] and found.softmax_stage == work
        assert found.mma_qk_pv == MMA["qk"] + MMA["before_p2"] + MMA["p2"] + MMA["after_p2"]
        assert found.mma_wait_p == MMA["wait_p"] and found.p2_wait == MMA["p2"]


def sample_of(trace: RoleTrace) -> RoleSample:
    return role_sample(trace, steps_of(trace, FORK, 2), FORK.measured("coarse", trace.role))


def test_our_metrics_of_the_same_trace() -> None:
    trace = decode_block(buffer(block_of(), 1, SIZE, shared=False), 0)
    softmax0, mma_role = trace.role("softmax0"), trace.role("mma")
    assert softmax0 is not None and mma_role is not None
    sample = sample_of(softmax0)
    assert sample.period_median_cycles == PERIOD and sample.steps == 10
    assert sample.waits_cycles == {"wait S": STEP["wait_s"], "wait corr": STEP["wait_corr"]}
    assert sample.busy_cycles == PERIOD - STEP["wait_s"] - STEP["wait_corr"]
    sample = sample_of(mma_role)
    assert sample.steps == 10, "one step for both stages"
    assert sample.waits_cycles["wait P"] == pytest.approx(2 * MMA["wait_p"])
    assert sample.waits_cycles["wait P 2nd"] == pytest.approx(2 * MMA["p2"])


def test_the_table_of_events_has_counts_means_and_shares() -> None:
    rows = {(row.role, row.name): row for row in summarise(decode_block(buffer(block_of(), 1, SIZE, shared=False), 0))}
    wait = rows["mma", "wait P"]
    assert (wait.count, wait.mean_cycles, wait.total_cycles) == (20, MMA["wait_p"], 20 * MMA["wait_p"])
    assert 0.4 < wait.window_share < 0.9 and ("softmax1", "store P") in rows


def test_a_full_ring_is_said() -> None:
    words = buffer(block_of(steps=64), 1, SIZE, shared=True)
    trace = decode_block(words, 0)
    assert all(group.full for group in trace.groups)
    assert "mma, softmax0, softmax1: recording stopped after 128 events" in trace.notes[0]
    assert len(trace.roles[1].spans(event_id("wait S"))[0]) == 16, "coarse: 16 softmax steps"
    whole = decode_block(buffer(block_of(steps=64), 1, SIZE, shared=False), 0)
    assert not any(group.full for group in whole.groups) and not whole.notes
    detailed = decode_block(buffer(block_of(True, steps=64), 1, SIZE, shared=True), 0)
    assert len(detailed.roles[1].spans(event_id("wait corr"))[0]) == 10, "detail: 10 full steps"


@pytest.mark.parametrize("shared", [True, False])
def test_the_zero_tag_of_block_0_on_sm_0(shared: bool) -> None:
    words = buffer({**block_of(), **block_of(block=1)}, 2, SIZE, sms={0: 0, 1: 9}, shared=shared)
    trace = decode_block(words, 0)
    qk = trace.roles[0].spans(event_id("QK"))[0]
    begins = sum(event == 0 and kind == 0 for event, kind, _ in block_of()[0, 0].events[: 128 if shared else None])
    if shared:
        assert len(qk) < begins and trace.groups[0].missing and any("SM 0" in note for note in trace.notes)
        assert choose_block(words) == 1
    else:
        assert len(qk) == begins and not trace.groups[0].missing, "with a clock beside it, it is no empty slot"


def test_the_number_of_groups_is_read_not_known() -> None:
    words = buffer(block_of(), 1, SIZE, groups=3)
    assert [group.trace.role for group in decode_block(words, 0).groups] == ["mma", "softmax0", "softmax1"]


def test_what_found_no_place_is_no_event() -> None:
    """The last slot takes pairs that came too late; it lies inside some group's slots."""
    recorders = {**block_of(steps=40), **block_of(steps=40, block=1)}
    words = buffer(recorders, 2, 2 + 2 * 8 * 50, shared=False)
    assert words[-2] != 0
    found = [decode_block(words, block) for block in (0, 1)]
    for trace in found:
        assert all(group.foreign == 0 and group.trace.stream.backward == 0 for group in trace.groups)


def test_slots_of_an_older_launch_are_told() -> None:
    words = buffer(block_of(), 1, SIZE, sms={0: 5})
    older = buffer(block_of(steps=12), 1, SIZE, sms={0: 7}, shared=False)
    mixed = np.where(words != 0, words, older)
    trace = decode_block(mixed, 0)
    assert trace.sm == 5 and sum(group.foreign for group in trace.groups) > 0
    assert any("not zeroed" in note for note in trace.notes)


def test_causal_grids_have_thousands_of_blocks() -> None:
    words = buffer(block_of(block=5000, steps=3), 6000, SIZE, sms={5000: 12})
    trace = decode_block(words, 5000)
    assert trace.sm == 12 and trace.roles and choose_block(words) == 5000, "the tag holds the block's low 12 bits only"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (np.zeros(100, dtype=np.uint32), "found 0 and 0"),
        (np.zeros(100, dtype=np.uint64), "64"),
        (np.array([1, 9, 0, 0, 0, 0], dtype=np.uint32), "found 1 and 9"),
        (np.array([4000, 4, 0, 0, 0, 0], dtype=np.uint32), "do not fit"),
        (np.zeros(2, dtype=np.uint32), "found 2 words"),
    ],
)
def test_what_is_no_such_buffer_is_refused_with_what_was_found(words: np.ndarray, says: str) -> None:
    with pytest.raises(UnknownTrace, match=says):
        decode_block(words, 0)


def test_an_empty_buffer_says_what_to_set() -> None:
    words = buffer({}, 2, 1000)
    with pytest.raises(UnknownTrace, match="FA4_PROFILE_PIPELINE=1"):
        choose_block(words)
    assert decode_block(words, 1).groups == ()
    with pytest.raises(UnknownTrace, match="blocks 0 to 1, not 2"):
        decode_block(words, 2)


@given(arrays(np.uint32, st.integers(0, 400)), st.integers(0, 3), st.integers(1, 4))
def test_any_words_decode_or_are_refused(words: np.ndarray, block: int, groups: int) -> None:
    if len(words) > 2:
        words[0], words[1] = 1 + block, groups
    try:
        trace = decode_block(words, block)
    except UnknownTrace:
        return
    fork_metrics(trace)
    summarise(trace)
