"""The stand-in's device: the CPU, with made-up times. Its presence marks the package as a stand-in."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# microseconds of a clean launch, by PV mode; what a traced one takes more
BASE_US = {"bf16": 900.0, "fp8": 800.0, "fp4": 1200.0, "mxfp8": 1150.0}
TRACE_COST = {"ring": 1.06, "global": 1.7, "empty": 1.02, "detail": 1.2}


def make_device(request: Any) -> Device:
    """Entry point that fa4top's launcher looks for."""
    return Device(request)


class Device:
    """Times follow from the setting, with 0.1% of noise; the launch really runs."""

    arch = "sm_103a"
    sm_count = 8
    name = "cpu"

    def __init__(self, request: Any) -> None:
        knobs = request.knobs
        split = os.environ.get("FA4_FP8_PV_P_SPLIT_NUM", "3") + "/" + os.environ.get("FA4_FP8_PV_P_SPLIT_DEN", "4")
        us = BASE_US[knobs["pv_mode"]] * (1.2 if knobs["pv_mode"] == "fp8" and split == "1/2" else 1.0)
        if os.environ.get("FA4_PROFILE_PIPELINE") == "1":
            from flash_attn.cute import profiler

            has_ring = hasattr(profiler, "prof_flush") and os.environ.get("FA4_PROF_SMEM", "1") == "1"
            kind = "ring" if has_ring else "global"
            kind = "detail" if os.environ.get("FA4_PROFILE_DETAIL") == "1" else kind
            us *= TRACE_COST["empty" if os.environ.get("FA4_PROF_EMPTY") == "1" else kind]
        if knobs["handicap"] != "off":
            us *= 1.0 + float(knobs["handicap"]) / 100.0
        self._us = us
        self._random = random.Random(f"{request.seed} {os.getpid()}")

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """No stream."""
        yield

    def _time(self) -> float:
        return self._us * (1.0 + self._random.gauss(0.0, 0.001))

    def burst(self, launch: Callable[[], None], launches: int, l2: str, primers: int) -> Any:
        """One real launch, made-up times."""
        from fa4top.targets.launcher import Burst

        launch()
        time.sleep(0.005)
        return Burst([self._time() for _ in range(launches)], 2070.0, l2)

    def timed(self, launch: Callable[[], None]) -> float:
        """One launch."""
        launch()
        return self._time()

    def peek(self, buffer: Any) -> Any:
        """The buffer as it is now."""
        return buffer.numpy().view(np.uint32).copy()

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def versions(self) -> dict[str, str]:
        """Says what it is."""
        return {"device": "stand-in: the CPU, no GPU; nothing is measured"}
