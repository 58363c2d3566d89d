"""The builtin target without a GPU: contract of the handoff, shapes, geometry, inputs."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fa4top.analysis.trace import layout
from fa4top.analysis.trace.decode import decode_events
from fa4top.analysis.trace.events import EVENTS
from fa4top.analysis.trace.layout import BEGIN, END, MARK
from fa4top.records import Shape
from fa4top.resources import resource_folder
from fa4top.targets import reference
from fa4top.targets.base import HANDICAP
from fa4top.targets.builtin.build import LAYOUT, macros, shared_bytes
from fa4top.targets.builtin.description import DESCRIPTION, setting_hazard, shape_problem
from fa4top.targets.builtin.geometry import kernel_geometry
from fa4top.targets.builtin.split import handoff, whole_part
from fa4top.targets.cuda.compile import event_name, events_header
from fa4top.targets.handoff import Handoff
from tests.traces import make_tag

SHAPE = DESCRIPTION.default_shape


def knobs(**chosen: str) -> dict[str, str]:
    full, problems = DESCRIPTION.setting(chosen)
    assert not problems
    return full


@pytest.mark.parametrize(
    ("parts", "fraction", "whole"),
    [
        (8, "3/4", 6), (8, "1/8", 1), (8, "5/8", 5), (4, "5/8", 2), (4, "1/8", 1), (4, "7/8", 3), (1, "1/2", 1),
        (2, "7/8", 1),
    ],
)  # fmt: skip
def test_a_fraction_is_whole_parts(parts: int, fraction: str, whole: int) -> None:
    assert whole_part(parts, Fraction(fraction)) == whole


@pytest.mark.parametrize("mode", ["bf16", "fp8"])
@pytest.mark.parametrize("split", ["1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8"])
@pytest.mark.parametrize("chunks", ["auto", "1", "2", "4"])
def test_the_consumer_that_follows_is_always_safe(mode: str, split: str, chunks: str) -> None:
    chosen = knobs(pv_mode=mode, p_split=split, p_chunks=chunks)
    assert handoff(chosen).safe and setting_hazard(SHAPE, "sm_90a", chosen) is None


def test_a_consumer_ahead_of_the_producer_is_refused_with_the_arithmetic() -> None:
    text = setting_hazard(SHAPE, "sm_90a", knobs(p_split="1/4", consumer_split="3/4"))
    assert text is not None and "2 of 8 chunks" in text and "6 of 8 K-tiles" in text
    assert setting_hazard(SHAPE, "sm_90a", knobs(p_split="3/4", consumer_split="1/4")) is None
    assert "after 4 of 8 chunks of P; 4 of 8 K-tiles" in handoff(knobs()).text()
    assert "after 3 of 4 chunks of P; 3 of 4 K-tiles" in handoff(knobs(pv_mode="fp8")).text()
    assert not Handoff(2, 1, 4, 3).safe and Handoff(2, 1, 4, 2).safe


def test_the_wrong_build_needs_unsafe() -> None:
    assert "hangs the kernel" in str(setting_hazard(SHAPE, "sm_90a", knobs(lost_signal="on")))


@pytest.mark.parametrize(
    ("shape", "chosen", "arch", "says"),
    [
        (replace(SHAPE, seqlen_q=1000), {}, "sm_90a", "1000 is none, 1024 would do"),
        (replace(SHAPE, seqlen_k=64), {}, "sm_90a", "64 is none, 128 would do"),
        (replace(SHAPE, head_dim=64), {}, "sm_90a", "head dim 128 only"),
        (replace(SHAPE, dtype="fp16"), {}, "sm_90a", "bf16 inputs"),
        (SHAPE, {}, "sm_103a", "for Hopper"),
        (SHAPE, {"pv_mode": "fp8", "p_chunks": "8"}, "sm_90a", "4 K-tiles"),
        (SHAPE, {"fp8_scale": "multiply"}, "sm_90a", "no effect with pv_mode=bf16"),
    ],
)
def test_what_can_not_run_is_said_before_anything_is_compiled(
    shape: Shape, chosen: dict[str, str], arch: str, says: str
) -> None:
    assert says in str(shape_problem(shape, arch, knobs(**chosen)))


def test_every_knob_reaches_the_kernel_or_its_launch() -> None:
    base = macros(SHAPE, knobs(pv_mode="fp8"), 0)
    for knob in DESCRIPTION.knobs:
        for value in knob.values if knob is not HANDICAP else ():  # that one is a kernel of its own
            chosen = knobs(**{"pv_mode": "fp8", knob.name: value})
            if value in ("auto", knob.default) or value == "fp8" or shape_problem(SHAPE, "sm_90a", chosen):
                continue
            same_parts = {"p_split": {"3/4", "7/8"}, "consumer_split": {"3/4", "7/8"}, "p_chunks": {"4"},
                          "tile_order": {"rows"}}  # fmt: skip
            changed = macros(SHAPE, chosen, 0) != base
            assert changed != (value in same_parts.get(knob.name, set())), (knob.name, value)


def test_shared_memory_fits_a_hopper_sm() -> None:
    assert shared_bytes(knobs()) <= 232448 and shared_bytes(knobs(kv_stages="2")) == shared_bytes(knobs()) - 32784


def test_geometry_of_full_and_causal_attention() -> None:
    full = kernel_geometry(SHAPE, knobs(), 132)
    assert (full.tiles, full.grid_ctas, full.steps_per_tile, full.steps_longest) == (1536, 132, 64, 12 * 64)
    small = Shape(batch=1, seqlen_q=512, seqlen_k=512, heads=1, kv_heads=1, head_dim=128, head_dim_v=128, causal=True)
    causal = kernel_geometry(small, knobs(), 2)
    # longest first: CTA 0 takes rows of 4 and 2 blocks, CTA 1 those of 3 and 1
    assert (causal.tiles, causal.grid_ctas, causal.steps_longest) == (4, 2, 6)
    rows = kernel_geometry(small, knobs(tile_order="rows"), 2)
    assert rows.steps_longest == 6 and kernel_geometry(small, knobs(tile_order="heads"), 1).steps_longest == 10


def test_e4m3_rounds_to_nearest_even_and_saturates() -> None:
    values = np.array([0.0, 1.0, 1.0625, 1.1875, -2.25, 0.001953125, 500.0, -1e9, 17.0], dtype=np.float32)
    bits = reference.bf16_bits_to_e4m3(reference.float_to_bf16(values), np)
    back = reference.e4m3_to_float(bits)
    assert back.tolist() == [0.0, 1.0, 1.0, 1.25, -2.25, 0.001953125, 448.0, -448.0, 16.0]
    every = reference.e4m3_to_float(np.arange(256, dtype=np.uint8))
    finite = every[np.isfinite(every)]
    again = reference.bf16_bits_to_e4m3(reference.float_to_bf16(finite), np)
    assert reference.e4m3_to_float(again).tolist() == finite.tolist(), "e4m3 values are exact in bf16"


def test_late_events_are_put_in_the_order_of_their_clocks() -> None:
    # a mark stored at once, then a wait that was noted before it and stored after it
    slots = np.array(
        [[make_tag(3, 1, MARK), 1000], [make_tag(3, 7, BEGIN), 400], [make_tag(3, 7, END), 700]], dtype=np.uint32
    )
    stream = decode_events(slots, 3, late=True)
    assert stream.clock.tolist() == [0, 300, 600] and stream.first_clock == 400 and stream.backward == 0
    assert (stream.key & 3).tolist() == [BEGIN, END, MARK]
    assert decode_events(slots, 3).backward == 1, "other layouts still report it"


def test_late_order_survives_a_wrap_of_the_clock() -> None:
    slots = np.array([[make_tag(3, 1, MARK), 5], [make_tag(3, 7, BEGIN), 0xFFFFFFF0]], dtype=np.uint32)
    stream = decode_events(slots, 3, late=True)
    assert stream.first_clock == 0xFFFFFFF0 and stream.clock.tolist() == [0, 21]


def test_the_layout_is_what_the_header_file_says() -> None:
    text = (resource_folder("kernels") / "trace.cuh").read_text()
    assert f"#define FA4TOP_CAPACITY {LAYOUT.capacity}" in text and f"#define FA4TOP_ROLES {len(LAYOUT.roles)}" in text
    shifts = f"kHeaderBytes = {layout.HEADER_BYTES}, kEventBytes = {LAYOUT.stride}, kGenerationShift = "
    assert f"{shifts}{layout.GENERATION_SHIFT}, kEventShift = 2;" in text
    assert f"kBegin = {layout.BEGIN}, kEnd = {layout.END}, kMark = {layout.MARK} " in text
    assert f"kStarted = {layout.STATE_STARTED}, kFinished = {layout.STATE_FINISHED} " in text
    header = re.search(r"struct RoleHeader {\s+u32 ([^;]*);\s+u32 ([^;]*);", text)
    assert header is not None
    words, pairs = (group.split(", ") for group in header.groups())
    places = {
        **{name: n for n, name in enumerate(words)},
        **{name: len(words) + 2 * n for n, name in enumerate(p.removesuffix("[2]") for p in pairs)},
    }
    assert places.pop("unused") == 7
    assert places == {
        "layout": layout.H_LAYOUT,
        "generation": layout.H_GENERATION,
        "written": layout.H_WRITTEN,
        "dropped": layout.H_DROPPED,
        "sm": layout.H_SM,
        "cta": layout.H_CTA,
        "state": layout.H_STATE,
        "timer_begin": layout.H_TIMER_BEGIN,
        "clock_begin": layout.H_CLOCK_BEGIN,
        "timer_end": layout.H_TIMER_END,
        "clock_end": layout.H_CLOCK_END,
    }


def test_kernels_take_event_ids_from_the_decoder() -> None:
    text = events_header()
    assert "  kWaitP2nd = 8,  // wait P 2nd\n" in text
    numbers = {name: int(number) for name, number in re.findall(r"(k\w+) = (\d+),", text)}
    assert numbers == {event_name(event): event.id for event in EVENTS}
    used = set()
    for path in (resource_folder("kernels") / "attention").glob("*.cuh"):
        call = r"(?:wait_late|traced_wait|mark|flush|begin|end)\((?:recorder, )?event::(k[A-Z]\w*)"
        used |= set(re.findall(call, path.read_text()))
        assert not re.search(r"enum Event", path.read_text())
    assert used <= set(numbers) and {"kStep", "kTile", "kWaitP", "kWaitP2nd", "kWaitS", "kExp2"} <= used
