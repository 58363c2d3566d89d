"""kernels/ compiled by NVRTC for Hopper and Blackwell, and read as SASS. No GPU: compiled, not run."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fa4top.analysis.sass.listing import parse_sass
from fa4top.targets.bench.build import build as build_bench
from fa4top.targets.bench.build import sass_problem
from fa4top.targets.bench.instructions import BY_NAME
from fa4top.targets.bench.suite import SUITE, Kernel
from fa4top.targets.builtin import build
from fa4top.targets.builtin.description import DESCRIPTION
from fa4top.targets.cuda.compile import CompileError, cache_folder, compile_kernel, complete_elf
from fa4top.targets.cuda.disassemble import disassemble
from tests.kernels.golden import SETTINGS

pytestmark = pytest.mark.kernels

PAIRS = [(kernel, arch) for kernel in SUITE for arch in kernel.archs]


@pytest.mark.parametrize(("kernel", "arch"), PAIRS, ids=[f"{k.name}, {a}" for k, a in PAIRS])
def test_the_timed_loop_holds_what_was_meant(kernel: Kernel, arch: str) -> None:
    assert sass_problem(kernel, build_bench(kernel, arch)) is None


def without(name: str, **changes: object) -> Kernel:
    kernel = next(kernel for kernel in SUITE if kernel.name == name)
    return replace(kernel, **changes)  # type: ignore[arg-type]


def test_a_loop_that_ptxas_removes_is_refused() -> None:
    """The naive reciprocal chain, which once reported 132 104 per clock: rcp(rcp(x)) is x, so nothing is left."""
    kernel = next(kernel for kernel in SUITE if kernel.name == "rcp.approx.ftz.f32")
    naive = replace(kernel, header=re.sub(r" xor\.b32 %0, %0, %1;", "", kernel.header))
    assert naive.header != kernel.header
    assert "the timed work has moved" in str(sass_problem(naive, build_bench(naive, "sm_90a")))


def test_two_maxima_in_a_row_are_refused_on_blackwell() -> None:
    kernel = next(kernel for kernel in SUITE if kernel.name == "max.f32")
    naive = replace(kernel, header=kernel.header.replace("min.ftz.f32 %0, %0, %2", "max.ftz.f32 %0, %0, %2"))
    assert "instead of" in str(sass_problem(naive, build_bench(naive, "sm_103a"))), "ptxas makes FMNMX3 of them"
    assert sass_problem(naive, build_bench(naive, "sm_90a")) is None


def test_a_narrow_conversion_fed_back_by_a_permutation_is_refused() -> None:
    kernel = next(kernel for kernel in SUITE if kernel.name == "cvt.rn.satfinite.e4m3x2.f32")
    one = "{ .reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, %0, %1; mov.b32 %0, {h, h}; }"
    header = re.sub(r'asm volatile\("[^"]*"', f'asm volatile("{one}"', kernel.header)
    naive = replace(kernel, header=header)
    assert sass_problem(naive, build_bench(naive, "sm_90a")) is not None


def test_instructions_that_a_chip_lacks_do_not_compile_for_it() -> None:
    for name in ("fma.rn.f32x2", "cvt.rn.satfinite.e2m1x2.f32"):
        assert not BY_NAME[name].exists_on("sm_90a")
        kernel = next(kernel for kernel in SUITE if kernel.name == name)
        with pytest.raises(CompileError, match=re.escape("for sm_90a")):
            build_bench(kernel, "sm_90a")


@pytest.mark.parametrize(("chosen", "causal"), list(itertools.product(SETTINGS, [False, True])), ids=str)
def test_attention_has_its_instructions_and_no_spill(chosen: dict[str, str], causal: bool) -> None:
    knobs, problems = DESCRIPTION.setting(chosen)
    assert not problems
    shape = replace(DESCRIPTION.default_shape, causal=causal)
    counts = []
    for trace in (0, 1):
        cubin = build.build(shape, knobs, trace)  # refuses serialised wgmma
        spills = re.search(r"(\d+) bytes spill stores", cubin.log)
        assert spills is not None and int(spills[1]) <= (0 if trace == 0 else 8), cubin.log
        instructions = parse_sass(disassemble(cubin))["attention"]
        counts.append({name: sum(i.opcode.startswith(name) for i in instructions) for name in ("HGMMA", "QGMMA")})
        stores = [i for i in instructions if i.opcode.startswith("STG")]
        assert bool(stores) == bool(trace), "a clean kernel stores nothing but its output, by TMA"
    # 8 a QK tile: two in the prologue, two in the loop; PV: two in the loop, two at the end
    expected = {
        "HGMMA": 32 + (32 if knobs["pv_mode"] == "bf16" else 0),
        "QGMMA": 0 if knobs["pv_mode"] == "bf16" else 16,
    }
    assert counts[0] == counts[1] == expected


def test_the_cache_gives_back_what_was_compiled_and_notices_damage() -> None:
    knobs, _ = DESCRIPTION.setting({})
    first = build.build(DESCRIPTION.default_shape, knobs, 0)
    again = build.build(DESCRIPTION.default_shape, knobs, 0)
    assert again.cached and again.data == first.data and again.log == first.log
    path = cache_folder() / f"{first.key}.cubin"
    path.write_bytes(path.read_bytes()[:100])
    assert not build.build(DESCRIPTION.default_shape, knobs, 0).cached


def test_a_cache_that_can_not_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    knobs, _ = DESCRIPTION.setting({})
    assert not build.build(DESCRIPTION.default_shape, knobs, 0).cached


def test_a_compile_error_names_the_place() -> None:
    knobs, _ = DESCRIPTION.setting({})
    wrong = {**build.macros(DESCRIPTION.default_shape, knobs, 0), "KV_STAGES": "no_such_name"}
    with pytest.raises(CompileError, match=r"attention_sm90.cu for sm_90a: .*error.*no_such_name"):
        compile_kernel("attention_sm90.cu", "sm_90a", wrong)


def test_cubins_are_whole_files() -> None:
    knobs, _ = DESCRIPTION.setting({})
    data = build.build(DESCRIPTION.default_shape, knobs, 0).data
    assert complete_elf(data) == data and complete_elf(data[:-1]) == data and complete_elf(b"text") == b"text"
