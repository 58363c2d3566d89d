"""Source trees with the interfaces of the fork's three profiler versions, written from the contract (section 7)."""

from __future__ import annotations

from pathlib import Path

NAMES = {"v0": 12, "v1": 14, "v2": 14}
PROFILERS = {
    "v0": """
NUM_GROUPS = 4
EVENT_NAMES = [{names}]
def allocate_profiler_buffer(max_events_per_group=256, num_blocks=256): ...
def decode_events(buffer): ...
""",
    "v1": """
NUM_GROUPS = 4
EVENT_NAMES = ({names})
LAST_BUFFER = None
def decode_trace(buffer, block): ...
""",
    "v2": """
NUM_GROUPS = 4
PROF_SMEM_EVENTS_PER_GROUP = 128
EVENT_NAMES = ({names})
LAST_BUFFER = None
def decode_trace(buffer, block): ...
def prof_flush(*arguments): ...
""",
}
GEMM = {"v0": "", "v1": ", prof_ts_addrs=None", "v2": ", prof_ts_addrs=None, prof_ts_smem=None"}


def write_checkout(top: Path, version: str, *, split: str = "3", knobs: tuple[str, ...] = ()) -> Path:
    """A checkout; returns its top folder.

    Args:
        knobs: more FA4_* names that the kernel reads.
    """
    package = top / "flash_attn" / "cute"
    package.mkdir(parents=True)
    names = ", ".join(f'"event{i}"' for i in range(NAMES[version]))
    (package / "profiler.py").write_text(PROFILERS[version].format(names=names))
    (package / "blackwell_helpers.py").write_text(f"def gemm_ptx_partial(op, acc{GEMM[version]}): ...\n")
    (package / "interface.py").write_text(
        'import os\nKEY = os.environ.get("FA4_PROFILE_PIPELINE", "0") == "1"\n'
        "def flash_attn_func(q, k, v, causal=False, pack_gqa=None, mSFQ=None, mSFK=None, mSFV=None): ...\n"
    )
    reads = "".join(f'os.environ.get("{name}", "0")\n' for name in knobs)
    (package / "flash_fwd_sm100_fp4.py").write_text(
        f'import os\nos.environ.get("FA4_FP8_PV_P_SPLIT_NUM", "{split}")\n{reads}'
        "class FlashAttentionForwardSm100:\n    def __init__(self, sf_dtype_pv=None): ...\n"
    )
    bench = top / "benchmarks"
    bench.mkdir()
    (bench / "bench_fp4.py").write_text(
        "def create_nvfp4_attention_tensors(batch, seqlen_q, seqlen_k, nheads, nheads_kv, headdim, headdim_v,\n"
        '                                   device="cuda", pv_mode="bf16"): ...\n'
    )
    return top
