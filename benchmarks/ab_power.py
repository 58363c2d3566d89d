"""Error rate and power of the A/B rule, by simulation, with a look after every block.

python benchmarks/ab_power.py [RUNS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from fa4top.analysis.compare.evidence import ALPHA, F64, first_calls
from fa4top.analysis.compare.verdict import resolution

BLOCKS, PILOT = 200, 4
LOOKS = (12, 20, 40, 100, 200)


def drifting(random: np.random.Generator, shape: tuple[int, int], coin: bool) -> F64:
    noise = random.normal(size=shape)
    for i in range(1, shape[1]):
        noise[:, i] += 0.5 * noise[:, i - 1]
    return noise * np.where(random.random(shape) < 0.5, 1.0, -1.0) if coin else noise


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    random = np.random.default_rng(1)
    shape = (runs, BLOCKS + PILOT)
    cases: list[tuple[str, Callable[[], F64]]] = [
        ("A/A, normal", lambda: random.normal(size=shape)),
        ("A/A, t with 3 degrees", lambda: random.standard_t(3, size=shape)),
        (
            "A/A, 5% outliers of 10 sd",
            lambda: random.normal(size=shape) * np.where(random.random(shape) < 0.05, 10.0, 1.0),
        ),
        ("A/A, AR(0.5) with the coin", lambda: drifting(random, shape, True)),
        ("A/A, AR(0.5) without it", lambda: drifting(random, shape, False)),
    ]
    for effect in (1.74, 1.09, 0.68, 0.40, 0.29):
        cases.append((f"B differs by {effect} sd", lambda effect=effect: random.normal(size=shape) + effect))  # type: ignore[misc]
    print(
        f"{'called different by block':30}" + "".join(f"{look:>8}" for look in LOOKS) + f"   {runs} runs, alpha {ALPHA}"
    )
    for name, draw in cases:
        first = first_calls(draw(), PILOT)
        called = [(first > 0) & (first <= look) for look in LOOKS]
        print(f"{name:30}" + "".join(f"{np.mean(hits):8.1%}" for hits in called))
    pairs_that_differ(random, shape)
    return 0


def pairs_that_differ(random: np.random.Generator, shape: tuple[int, int]) -> None:
    """A against A when two processes differ by a little for as long as they live, and a launch takes 1.56 ms."""
    least = resolution(1560.0)
    print(f"\nA/A with process offsets, block sd 0.2%, by block {BLOCKS}; tier 1 calls nothing below {least:.4%}")
    print(f"{'sd of the offset':30}{'any':>8}{'tier 1':>8}   called different")
    for offset in (0.0, 0.0001, 0.0002, 0.0005):
        blocks = random.normal(size=shape) * 0.002 + random.normal(size=(shape[0], 1)) * offset
        plain = first_calls(blocks, PILOT) > 0
        # a difference is called when the interval lies beyond the resolution on one side
        beyond = (first_calls(blocks - least, PILOT) > 0) & (first_calls(blocks + least, PILOT) > 0)
        print(f"{offset:<30.2%}{np.mean(plain):8.1%}{np.mean(plain & beyond):8.1%}")


if __name__ == "__main__":
    sys.exit(main())
