"""Ending asyncio tasks for certain."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_S = 0.2


async def end_task(task: asyncio.Task[Any]) -> BaseException | None:
    """Cancel a task until it has ended; returns its exception, None when it was cancelled or succeeded.

    Once is not enough: before Python 3.12 asyncio.wait_for drops a cancellation that arrives together with its result.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=AGAIN_S)
    return None if task.cancelled() else task.exception()
