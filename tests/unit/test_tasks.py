"""Cancelling for certain, also when a result and the cancellation arrive together."""

from __future__ import annotations

import asyncio

from fa4top.engine.tasks import end_task


async def test_a_task_that_swallows_one_cancellation_ends_all_the_same() -> None:
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            swallowed += 1
        await asyncio.sleep(60)

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    assert await end_task(task) is None and swallowed == 1


async def test_the_exception_of_a_finished_task_is_returned() -> None:
    async def fails() -> None:
        raise ValueError("x")

    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    assert isinstance(await end_task(task), ValueError)
