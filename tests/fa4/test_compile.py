"""flash-attn-4 with probes, compiled for three architectures without a GPU, and read as PTX and SASS.

Compiled, not run: what is proved here is that the probes are where they should be, and what they cost in registers
and memory.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fa4.compiling import SCRIPT, compiled

pytestmark = pytest.mark.fa4
pytest.importorskip("flash_attn.cute", reason="needs flash-attn-4 (make test-fa4)")

ARCHITECTURES = ("sm_90a", "sm_100a", "sm_103a")


def comments(result: dict[str, object]) -> Counter[str]:
    """Probes in the PTX, by role."""
    return Counter(m.group(1) for m in re.finditer(r"// fa4top (\w+)", str(result["ptx"])))


# clock reads in the PTX a role: what the data in probes.py must give for this package version
EXPECTED = {
    ("sm_90a", "coarse", False): {"mma": 14},
    ("sm_90a", "coarse", True): {"mma": 20},
    ("sm_90a", "period", False): {"mma": 5},
    ("sm_100a", "coarse", False): {"mma": 41, "softmax_loop": 19, "correction_loop": 21},
    ("sm_103a", "coarse", False): {"mma": 41, "softmax_loop": 19, "correction_loop": 21},
    ("sm_103a", "coarse", True): {"mma": 41, "softmax_loop": 26, "correction_loop": 21},
    ("sm_103a", "period", False): {"mma": 1, "softmax_loop": 3, "correction_loop": 1},
}


@pytest.mark.parametrize(("arch", "probe_set", "causal"), EXPECTED)
def test_probe_counts_by_role(arch: str, probe_set: str, causal: bool) -> None:
    result = compiled(arch, probe_set, causal)
    expected = EXPECTED[arch, probe_set, causal]
    assert result["counts"] == expected
    assert comments(result) == expected


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("causal", [False, True])
def test_coarse_probes_cost_no_registers_and_no_memory_in_the_step_loops(arch: str, causal: bool) -> None:
    clean, traced = compiled(arch, "clean", causal), compiled(arch, "coarse", causal)
    assert clean["registers"] == traced["registers"]
    assert clean["stack"] == 0 and not clean["local_in_loops"] and clean["clocks"] == 0
    assert traced["clocks"] > 0
    assert not traced["local_in_loops"], traced["local_in_loops"]
    assert traced["stack"] == 0 and traced["local_accesses"] == 0


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_the_wait_inside_the_pv_gemm_is_timed_on_its_slow_path(arch: str) -> None:
    ptx = str(compiled(arch, "coarse")["ptx"])
    assert ptx.count("FA4TOP_READY:") == 4  # two stages, in the loop and in the tail
    block = ptx[ptx.index("mbarrier.test_wait.parity.shared::cta.b64 P1") :]
    assert block.index("@P1 bra DONE") < block.index("%clock") < block.index("LAB_WAIT:")


@pytest.mark.parametrize(("arch", "shape", "dtype"), [
    ("sm_90a", "s4096,hk8", "bf16"), ("sm_90a", "s4096,d64", "fp16"), ("sm_90a", "s4096,d192,dv128", "bf16"),
    ("sm_103a", "s4096,hk8", "bf16"), ("sm_103a", "s4096,d64", "fp16"), ("sm_103a", "s4096", "fp8"),
])  # fmt: skip
def test_other_shapes_and_dtypes_take_the_probes(arch: str, shape: str, dtype: str) -> None:
    result = compiled(arch, "coarse", False, shape, dtype)
    assert all(result["counts"].values()) and result["clocks"] > 0


@pytest.mark.parametrize("arch", ["sm_90a", "sm_103a"])
def test_detail_adds_phases(arch: str) -> None:
    coarse, detail = compiled(arch, "coarse"), compiled(arch, "detail")
    assert sum(detail["counts"].values()) > sum(coarse["counts"].values())


def test_geometry_comes_from_the_kernel_itself() -> None:
    assert compiled("sm_90a", "clean")["geometry"]["grid_ctas"] == 1536
    blackwell = compiled("sm_103a", "clean")["geometry"]
    assert blackwell["persistent"] and blackwell["grid_ctas"] == 148 and blackwell["steps_longest"] == 384


def test_the_callers_compiled_kernel_caches_stay_untouched(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    import os

    environment = {
        **os.environ, "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED": "1", "FLASH_ATTENTION_CUTE_DSL_CACHE_DIR": str(mine),
        "CUTE_DSL_CACHE_DIR": str(mine), "HOME": str(mine),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "sm_90a", "coarse", "0", "s2048", "bf16", "{}"], capture_output=True, text=True,
        env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(mine.iterdir()) == []


def test_a_package_that_looks_different_is_refused_with_what_is_missing() -> None:
    code = (
        "import os; os.environ.update(CUTE_DSL_ARCH='sm_90a', FLASH_ATTENTION_ARCH='sm_90a');"
        "import flash_attn.cute.flash_fwd_sm90 as m; del m.FlashAttentionForwardSm90.warp_scheduler_barrier_sync;"
        "from fa4top.targets.fa4 import injection, probes;"
        "injection.install(probes.SM90, probes.SM90.sets[0], 4096, 4096)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        done.returncode != 0 and "missing: method FlashAttentionForwardSm90.warp_scheduler_barrier_sync" in done.stderr
    )


def knobs(**values: str) -> str:
    """Chosen knobs as an argument."""
    return json.dumps(values)


def test_register_knobs_reach_the_kernel() -> None:
    """The package's own table (184/80/64) does not spill on sm_100a; 176/88/64 does: published.json."""
    budget = knobs(num_regs_softmax="176", num_regs_correction="88", num_regs_other="64")
    good, bad = compiled("sm_100a", "clean"), compiled("sm_100a", "clean", knobs=budget)
    assert (good["local_accesses"], good["stack"]) == (0, 0)
    assert (bad["local_accesses"], bad["stack"]) == (63, 112)


def test_emulation_knob_moves_exp2_from_mufu() -> None:
    plain, emulated = (
        str(compiled("sm_103a", "clean", knobs=knobs(ex2_emu_freq=freq))["ptx"]).count("ex2.approx")
        for freq in ("0", "10")
    )
    assert plain > emulated > 0


def test_split_knob_changes_what_is_compiled() -> None:
    one, two = (compiled("sm_103a", "coarse", knobs=knobs(split_P_arrive=columns)) for columns in ("0", "64"))
    assert one["ptx"] != two["ptx"]
    default = comments(compiled("sm_103a", "coarse"))
    assert comments(two) == default  # the same probes, wherever the split is
    assert comments(one)["mma"] < default["mma"]  # with one signal there is no second wait to time


def test_tile_knob_reaches_hopper_s_kernel() -> None:
    geometry = compiled("sm_90a", "coarse", knobs=knobs(tile_mn="128x64"))["geometry"]
    default = compiled("sm_90a", "coarse")["geometry"]
    assert isinstance(geometry, dict) and isinstance(default, dict)
    assert geometry["steps_per_tile"] == 2 * default["steps_per_tile"]
