"""A/B on a real GPU, many runs: how often A against A is called different, and how soon a known difference is found.

    python benchmarks/ab_live.py aa     [PAIRS RUNS BLOCKS SHAPE SEED]   A against A; every block is looked at
    python benchmarks/ab_live.py known  [PAIRS RUNS]                0.25% and 1% injected by a delay kernel

A pair is two fresh worker processes with their twins; runs of a pair have coins and pilots of their own. Traced
launches between the blocks are left out; for ``aa`` slices are of two launches, with a kernel's time of rest. The
target is builtin; FA4TOP_BENCH_TARGET=sim tries the script without a GPU.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fa4top.cli.choose import make_order
from fa4top.cli.options import RunOptions, run_options
from fa4top.engine import pace
from fa4top.engine.host import Host
from fa4top.engine.jobs import ab
from fa4top.engine.jobs import arms as arms_module
from fa4top.engine.jobs.arms import Blocks
from fa4top.engine.sessionlog import SessionLog
from fa4top.orders.jobs import AbJob
from fa4top.orders.order import Order
from fa4top.session.config import load_config

TARGET = os.environ.get("FA4TOP_BENCH_TARGET", "builtin")
KNOWN = ("0.25", "1")  # percent; the delay kernel runs for no time in arm A


@click.command()
@run_options
def order_of(**options: Any) -> Order:
    """The same options as every command of fa4top."""
    return make_order(load_config(), RunOptions(**options), wait_gpu_s=60.0, idle_limit_s=5.0)


def order_for(folder: str, shape: str) -> Order:
    arguments = ["--target", TARGET, "--record", folder, *(["--shape", shape] if shape else [])]
    order: Order = order_of.main(arguments, standalone_mode=False)
    Path(order.folder).mkdir(parents=True, exist_ok=True)
    return order


class Runs:
    """One pair of arms, run after run."""

    def __init__(self, host: Host, job: AbJob) -> None:
        self._host, self._job = host, job
        self._orders = ab.arm_orders(host.order, job)[0]
        self._first = ab._Run(host, job, self._orders)

    async def ready(self) -> None:
        """Compile, check, warm up."""
        await self._first._ready()
        assert not self._first._invalid, self._first._invalid

    async def run(self, seed: int, blocks: int, until_decided: bool) -> tuple[ab._Run, int, float]:
        """The run, the block at which a difference was called (0: never), and the seconds until then or the end."""
        run = ab._Run(self._host, replace(self._job, seed=seed), self._orders)
        run._arms, run._slices = self._first._arms, self._first._slices
        run._blocks = Blocks(self._host, run._slices)
        began = time.monotonic()
        called = 0
        for number in range(1, blocks + 1):
            await run._measure_block(began)
            if run._evidence is not None and run._evidence.differs and not called:
                called = number
            if until_decided and called:
                break
        return run, called, time.monotonic() - began

    async def end(self) -> None:
        """End the workers."""
        for arm in self._first._arms.values():
            await self._host.end(*arm.twins.workers.values())


async def main(what: str, numbers: list[str]) -> None:
    ab.TRACE_EVERY = 10**9
    if what == "aa":
        pace.BURST_US, arms_module.LEAST_GAP_S = 3300.0, 0.0005
    pairs, runs = (int(n) for n in (numbers + ["12", "5"][len(numbers) :])[:2])
    blocks = int(numbers[2]) if len(numbers) > 2 else 200
    shape = numbers[3] if len(numbers) > 3 else ""
    seed = int(numbers[4]) if len(numbers) > 4 else 0
    with tempfile.TemporaryDirectory() as folder:
        order = order_for(folder, shape)
        host = Host(order, SessionLog(Path(order.folder) / "log.jsonl", order.simulated), lambda *_: None)
        await host.gpu.take(lambda *_: None)
        try:
            if what == "aa":
                await against_itself(host, pairs, runs, blocks, seed)
            else:
                await known(host, pairs, runs)
        finally:
            await host.pool.close()
            host.gpu.release()


async def against_itself(host: Host, pairs: int, runs: int, blocks: int, seed: int) -> None:
    false, done, estimates, spreads, rejected = 0, 0, [], [], 0
    for pair in range(pairs):
        arms = Runs(host, AbJob())
        await arms.ready()
        for number in range(runs):
            run, called, seconds = await arms.run(seed + 1000 * pair + number, blocks, False)
            assert run._evidence is not None
            ratios = [float(x) for x in run._evidence.blocks]
            false, done = false + bool(called), done + 1
            rejected += run._blocks.rejected
            estimates.append(100 * run._evidence.estimate)
            spreads.append(100 * statistics.stdev(ratios))
            print(
                f"pair {pair} run {number}: {'CALLED at block ' + str(called) if called else 'not called'}, "
                f"{estimates[-1]:+.4f}%, sd {spreads[-1]:.3f}%, lag 1 "
                f"{statistics.correlation(ratios[:-1], ratios[1:]):+.2f}, {1e3 * seconds / blocks:.1f} ms a block",
                flush=True,
            )
        await arms.end()
    positive = sum(estimate > 0 for estimate in estimates)
    print(
        f"A against A: {false} of {done} runs of {blocks} blocks called different at any look; block sd "
        f"{statistics.median(spreads):.3f}%; {positive} estimates above 0, {done - positive} below; "
        f"{rejected} blocks rejected"
    )


async def known(host: Host, pairs: int, runs: int) -> None:
    for percent in KNOWN:
        times, found, estimates = [], 0, []
        for pair in range(pairs):
            arms = Runs(host, AbJob(a={"handicap": "0"}, b={"handicap": percent}))
            await arms.ready()
            for number in range(runs):
                run, called, seconds = await arms.run(77 * pair + number, 400, True)
                assert run._evidence is not None
                found += bool(called) and run._evidence.estimate > 0
                times.append(seconds if called else float("inf"))
                estimates.append(100 * run._evidence.estimate)
                print(
                    f"{percent}%: pair {pair} run {number}: block {called}, {seconds:.1f} s, {estimates[-1]:+.3f}%",
                    flush=True,
                )
            await arms.end()
        limit = {"0.25": 10.0, "1": 3.0}[percent]
        soon = sum(seconds < limit for seconds in times)
        print(
            f"a true {percent}%: found in {found} of {len(times)} runs, {soon} within {limit:g} s; median "
            f"{statistics.median(times):.1f} s; estimates {min(estimates):+.2f} to {max(estimates):+.2f}%"
        )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
