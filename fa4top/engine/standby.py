"""Workers that have imported what a target needs and wait for an order: what makes a change of setting quick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from fa4top.engine.workers import WorkerGone, WorkerProcess
from fa4top.orders.order import Order
from fa4top.targets.catalog import describe

TWINS = ("clean", "traced")


class Standby:
    """One worker for each twin. They hold no GPU memory; nothing of theirs is measured."""

    def __init__(self, fresh: Callable[[str], WorkerProcess]) -> None:
        self._fresh = fresh
        self._waiting: dict[str, tuple[WorkerProcess, Order]] = {}

    async def fill(self, order: Order) -> None:
        """Start what is missing; returns at once, while they import."""
        if not describe(order.target).prepare:
            return
        for twin in TWINS:
            held = self._waiting.get(twin)
            if held is not None and held[0].pid is not None and fits(held[1], order):
                continue
            if held is not None:
                await held[0].stop(0.1)
            worker = self._fresh(twin)
            try:
                await worker.stand_by(order, Path(order.folder) / f"{worker.name}.stderr")
            except WorkerGone:
                return
            self._waiting[twin] = (worker, order)

    def take(self, twin: str, order: Order) -> WorkerProcess | None:
        """One that can serve this order; it is not ours any more."""
        held = self._waiting.get(twin)
        if held is None or held[0].pid is None or not fits(held[1], order):
            return None
        del self._waiting[twin]
        return held[0]

    async def close(self) -> None:
        """End them."""
        waiting, self._waiting = self._waiting, {}
        await asyncio.gather(*(worker.stop(0.1) for worker, _ in waiting.values()))


def fits(prepared: Order, wanted: Order) -> bool:
    """May a worker that was prepared for one order serve the other?"""
    fixed = describe(wanted.target).fixed_at_import
    same = all(getattr(prepared, name) == getattr(wanted, name) for name in ("target", "python", "gpu_uuid"))
    return same and all(prepared.knobs.get(name) == wanted.knobs.get(name) for name in fixed)
