"""Small launches of the builtin kernel, for compute-sanitizer. Needs a Hopper GPU.

    compute-sanitizer --tool memcheck  python benchmarks/sanitize.py
    compute-sanitizer --tool synccheck python benchmarks/sanitize.py
    compute-sanitizer --tool racecheck python benchmarks/sanitize.py every-thread

racecheck follows single threads: it does not see that one thread's arrive after a __syncwarp covers its warp. With
``every-thread`` each thread arrives itself; barriers, phases and all accesses are the same.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from fa4top.orders.commands import LaunchRequest
from fa4top.records import Shape
from fa4top.targets.builtin import build
from fa4top.targets.builtin.description import ARCH, DESCRIPTION
from fa4top.targets.builtin.launch import BuiltinLauncher
from fa4top.targets.cuda.compile import Cubin, compile_kernel

SHAPE = Shape(batch=1, seqlen_q=256, seqlen_k=640, heads=2, kv_heads=1, head_dim=128, head_dim_v=128)
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"pv_mode": "fp8"},
    {"pv_mode": "fp8", "fp8_scale": "multiply"},
    {"s_handover": "early"},
    {"kv_stages": "2", "p_split": "1/4"},
)


def every_thread_arrives(shape: Shape, knobs: dict[str, str], trace: int) -> Cubin:
    return compile_kernel(build.SOURCE, ARCH, {**build.macros(shape, knobs, trace), "EVERY_THREAD_ARRIVES": 1})


def main() -> int:
    if "every-thread" in sys.argv[1:]:
        build.build = every_thread_arrives
    for chosen in SETTINGS:
        knobs, problems = DESCRIPTION.setting(chosen)
        assert not problems
        for causal in (False, True):
            for twin in ("clean", "traced"):
                request = LaunchRequest(
                    target="builtin", shape=replace(SHAPE, causal=causal), knobs=knobs, twin=twin, seed=0, gpu_uuid=""
                )
                launcher = BuiltinLauncher(request)
                launcher.compile(lambda text, progress: None)
                result = launcher.check()
                if twin == "traced":
                    launcher.traced_launch(0)
                assert result.rms_error <= result.limit, (chosen, causal, twin)
                print("ok", chosen, "causal" if causal else "full", twin, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
