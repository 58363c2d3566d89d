"""Floors held against published pipe utilisation: floor over clean period should come near the share of time in which a
pipe is busy. Compiles flash-attn-4 for sm_100a and sm_103a; no GPU.

    python benchmarks/floors_table.py [PYTHON]      an interpreter that has flash-attn-4 (default: this one)

Published: Dao-AILab/flash-attention issue 2701, Nsight Compute. The clean period there is not known; it follows from
the tensor column, so that column agrees by construction and the others are the test.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from fa4top.analysis.chip.floors import chip_rates, sass_floors
from fa4top.analysis.sass.compare import step_of
from fa4top.engine.sass_reading import Wanted, read_setting
from fa4top.targets.fa4.description import DESCRIPTION

ELEMENTS = 256 * 128  # of S, a CTA and step
PUBLISHED = {  # percent of time busy
    ("bf16", "sm_100a"): {"tensor": 87.7, "xu": 71.9, "fma": 20.0, "alu": 31.2, "issue": 49.2},
    ("bf16", "sm_103a"): {"tensor": 99.9, "xu": 50.3, "fma": 13.1, "alu": 31.0, "issue": 46.3},
    ("fp8", "sm_100a"): {"tensor": 43.6, "xu": 71.6, "fma": 20.6, "alu": 36.3, "issue": 52.0},
    ("fp8", "sm_103a"): {"tensor": 55.2, "xu": 55.7, "fma": 14.9, "alu": 40.8, "issue": 54.6},
}


def main() -> None:
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    print(
        f"{'':14} {'tensor floor':>12} {'period':>8}   " + "   ".join(f"{n:>14}" for n in ("xu", "fma", "alu", "issue"))
    )
    for (dtype, arch), published in PUBLISHED.items():
        shape = replace(DESCRIPTION.default_shape, dtype=dtype)
        kernel = read_setting(Wanted("fa4", shape, arch, DESCRIPTION.setting({})[0], python)).kernel
        role = step_of(kernel)
        assert role is not None
        floors = sass_floors(role.step_units, role.step_mix.ex2, arch)
        assert floors is not None
        rates = chip_rates(arch, [])
        assert rates is not None
        tensor = 4.0 * ELEMENTS * 128 / rates.tensor[dtype]
        period = tensor / published["tensor"] * 100.0
        cells = []
        for name, unit in (("xu", "exp2"), ("fma", "fma"), ("alu", "alu"), ("issue", "issue")):
            cells.append(f"{100.0 * (floors.of(unit) or 0.0) / period:5.1f} ({published[name]:5.1f})")
        print(f"{dtype} {arch:9} {tensor:12.0f} {period:8.0f}   " + "   ".join(f"{cell:>14}" for cell in cells))
    print("percent of the period that a pipe is busy: from the softmax step's SASS (published)")


if __name__ == "__main__":
    main()
