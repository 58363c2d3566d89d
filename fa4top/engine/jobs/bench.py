"""The bench job: one worker that builds, checks and times the suite."""

from __future__ import annotations

from dataclasses import replace

from fa4top.engine.host import Host, JobFailed
from fa4top.engine.workers import WorkerGone
from fa4top.orders.commands import Bench
from fa4top.orders.jobs import BenchJob
from fa4top.orders.order import Order
from fa4top.records import WorkerState

KERNEL_DEADLINE_S = 120.0


def compile_where_nothing_runs(order: Order, job: BenchJob) -> BenchJob:
    """Without a GPU: compile for the chip that is shown."""
    return replace(job, arch=job.arch or order.arch) if not order.gpu_uuid or order.simulated else job


async def run_bench(host: Host, job: BenchJob) -> None:
    """Until the last microbenchmark is done.

    Raises:
        JobFailed: the worker could not do it.
    """
    plan_id = host.next_plan_id()

    def first(name: str) -> Bench:
        return Bench(worker=name, plan_id=plan_id, names=job.names, arch=job.arch)

    try:
        worker = await host.start_for("bench", host.order, plan_id, first)
    except WorkerGone as gone:
        host.append(gone.fault)
        raise JobFailed(f"bench: {gone.fault.reason}: {gone.fault.text}. {gone.fault.hint}") from gone
    try:
        while True:
            # any record counts as a sign of life; the last one is the worker's 'stopped'
            record = await worker.wait_for_any(KERNEL_DEADLINE_S)
            host.read_gpu()
            if isinstance(record.body, WorkerState) and record.body.state == "stopped":
                return
    except WorkerGone as gone:
        host.append(gone.fault)
        raise JobFailed(f"bench: {gone.fault.reason}: {gone.fault.text}. {gone.fault.hint}") from gone
    finally:
        await host.end(worker)
