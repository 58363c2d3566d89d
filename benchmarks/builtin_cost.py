"""Probe effect of the builtin kernel, and its speed: clean and traced twins in turn, in one run. Needs a Hopper GPU.

    python benchmarks/builtin_cost.py [ROUNDS]

"nobody" is the traced kernel when no CTA records: what the code costs without the stores.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from fa4top.analysis.trace.sample import Sampling, trace_sample
from fa4top.orders.commands import LaunchRequest
from fa4top.records import Shape
from fa4top.targets.base import attention_flops
from fa4top.targets.builtin.description import DESCRIPTION
from fa4top.targets.builtin.launch import BuiltinLauncher

SHAPE = Shape(batch=1, seqlen_q=8192, seqlen_k=8192, heads=24, kv_heads=24, head_dim=128, head_dim_v=128)
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"p_split": "1/2"},
    {"p_split": "3/4"},
    {"s_handover": "early"},
    {"pv_mode": "fp8"},
    {"pv_mode": "fp8", "p_split": "1/2"},
    {"pv_mode": "fp8", "fp8_scale": "multiply"},
)
BURST = 3
SAMPLING = Sampling(worker="w", plan_id=1, launch=1, probe_set="coarse", detail=False)


def make(chosen: dict[str, str], twin: str) -> BuiltinLauncher:
    knobs, problems = DESCRIPTION.setting(chosen)
    assert not problems
    launcher = BuiltinLauncher(
        LaunchRequest(target="builtin", shape=SHAPE, knobs=knobs, twin=twin, seed=0, gpu_uuid="")
    )
    launcher.compile(lambda text, progress: None)
    assert launcher.check().rms_error <= 0.08
    return launcher


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 14
    print(
        f"{'setting':40} {'us':>8} {'TFLOP/s':>8} {'nobody':>8} {'recording':>9}  waits of mma, cycles a step (period)"
    )
    for chosen in SETTINGS:
        clean, traced = make(chosen, "clean"), make(chosen, "traced")
        times: list[tuple[float, float, float]] = []
        for number in range(rounds):
            base = float(np.median(clean.clean_burst(BURST).times_us))
            traced.record_nobody()
            idle = float(np.median(traced.clean_burst(BURST).times_us))
            capture = traced.traced_launch(number * 13 % 132)
            times.append((base, idle, capture.time_us))
            time.sleep(0.005)
        base, idle, recording = np.median(np.array(times), axis=0)
        found = trace_sample(capture, traced.layout, traced.family, SAMPLING)
        mma = next(role for role in found.roles if role.role == "mma")
        waits = ", ".join(f"{cause} {cycles:.0f}" for cause, cycles in mma.waits_cycles.items())
        name = " ".join(f"{knob}={value}" for knob, value in chosen.items()) or "default"
        print(
            f"{name:40} {base:8.1f} {attention_flops(SHAPE) / base / 1e6:8.1f} {idle / base - 1:+8.2%} "
            f"{recording / base - 1:+9.2%}  {waits} ({mma.period_median_cycles:.0f})",
            flush=True,
        )
    print(f"rounds of {BURST} clean launches, {BURST} of the traced twin, one recorded launch: {rounds}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
