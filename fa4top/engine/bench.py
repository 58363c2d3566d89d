"""The bench job: one worker that builds, checks and times the suite."""

from __future__ import annotations

from fa4top.engine.jobs import BenchJob, JobHost
from fa4top.engine.workers import WorkerGone
from fa4top.records import WorkerState

KERNEL_DEADLINE_S = 120.0


class JobFailed(RuntimeError):
    """The job could not be done; the text says why and what to do."""


async def run_bench(host: JobHost, job: BenchJob) -> None:
    """Until the last microbenchmark is done.

    Raises:
        JobFailed: the worker could not do it.
    """
    plan_id = host.next_plan_id()
    worker = await host.start_worker("bench", host.order, plan_id, job)
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
        await host.end_worker(worker)
