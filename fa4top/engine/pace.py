"""How long to wait for workers, how much to launch at once, and which CTA records: the same for every program."""

from __future__ import annotations

from fa4top.records import Geometry

COMPILE_DEADLINE_S = 600.0
CHECK_DEADLINE_S = 300.0
BURST_DEADLINE_S = 30.0  # while nothing is known of the kernel
LEAST_DEADLINE_S = 2.0
BURST_US = 5000.0  # GPU time of a burst: longer ones meet the power limit (after 4 to 5 ms on a B200)
MAX_BURST = 20
GOLDEN = 0.6180339887498949  # steps by it visit all CTAs evenly, in any number of launches


def burst_launches(launch_us: float) -> int:
    """Launches that make a burst of a kernel that takes this long."""
    return max(1, min(MAX_BURST, int(BURST_US / launch_us)))


def launch_deadline_s(launch_us: float | None, launches: int) -> float:
    """After this a burst of so many launches hangs: ten times what it takes, at least 2 s; more before the first."""
    if launch_us is None:
        return BURST_DEADLINE_S
    return max(LEAST_DEADLINE_S, 10.0 * launches * launch_us * 1e-6)


def recording_cta(geometry: Geometry | None, number: int) -> int:
    """The CTA that records in the ``number``-th traced launch; one that has all roles."""
    grid, stride = (geometry.grid_ctas, geometry.cta_stride) if geometry else (1, 1)
    return int(number * GOLDEN * grid) % grid // stride * stride
