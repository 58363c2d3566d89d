"""The simulated device beside the published figures it is held against.

python benchmarks/sim_table.py
"""

from __future__ import annotations

import pathlib
import sys
from fractions import Fraction

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fa4top.records import Shape  # noqa: E402
from fa4top.targets.sim.chips import load_chip  # noqa: E402
from fa4top.targets.sim.device import Device  # noqa: E402

LONG = Shape(batch=1, seqlen_q=32768, seqlen_k=32768, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)
SHORT = Shape(batch=1, seqlen_q=4096, seqlen_k=4096, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)
# TFLOP/s; sources: docs/simulator.md
PUBLISHED = {
    ("gb300", "bf16", "3/4", 32768): 2235,
    ("gb300", "fp8", "3/4", 32768): 2677,
    ("gb300", "nvfp4", "3/4", 32768): 1725,
    ("gb300", "mxfp8", "3/4", 32768): 1809,
    ("gb300", "bf16", "3/4", 4096): 1949,
    ("gb300", "fp8", "3/4", 4096): 2046,
    ("gb300", "nvfp4", "3/4", 4096): 1291,
    ("gb300", "mxfp8", "3/4", 4096): 1360,
    ("b200", "bf16", "3/4", 32768): 1887,
    ("b200", "fp8", "3/4", 32768): 2018,
}


def tflops(chip: str, mode: str, split: str, seqlen: int) -> float:
    """One setting."""
    data = load_chip(chip)
    device = Device(data, data.modes[mode], LONG if seqlen == 32768 else SHORT, Fraction(split), 0, frozenset())
    time_us, _ = device.launch_us()
    return device.geometry.flops / time_us / 1e6


def main() -> None:
    """Print the table."""
    print(f"{'chip':6} {'PV':6} {'s':>6} {'published':>10} {'simulated':>10} {'ratio':>7}")
    for (chip, mode, split, seqlen), published in PUBLISHED.items():
        simulated = tflops(chip, mode, split, seqlen)
        print(f"{chip:6} {mode:6} {seqlen:6} {published:10} {simulated:10.0f} {simulated / published:7.3f}")
    for mode, words in (("fp8", "+24% (1909 to 2366, 2026-06)"), ("nvfp4", "none (1/2, 3/4, 7/8 near 1595)")):
        gain = tflops("gb300", mode, "3/4", 32768) / tflops("gb300", mode, "1/2", 32768) - 1
        print(f"gb300 {mode}: split 1/2 to 3/4: published {words}, simulated {gain:+.1%}")


if __name__ == "__main__":
    main()
