"""`fa4top bench`: the microbenchmarks as a table, or as records."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from fa4top.analysis.chip.chips import ARCHITECTURES, NEWEST
from fa4top.cli.choose import new_order, python_of
from fa4top.cli.fail import config_or_fail, fail
from fa4top.cli.follow import leave_on_fault, run_job, say_recorded
from fa4top.cli.interpreter import inspect
from fa4top.cli.options import RunOptions
from fa4top.cli.text.results import of_kind
from fa4top.engine.gpus import GpuError, choose_gpu, list_gpus
from fa4top.orders import exits
from fa4top.orders.jobs import BenchJob
from fa4top.orders.order import Order
from fa4top.records import BenchResult, Envelope
from fa4top.session.config import Config
from fa4top.targets.base import Described
from fa4top.targets.bench.suite import SUITE
from fa4top.targets.catalog import describe

SERVES = "builtin"  # the target whose packages the suite needs
EPILOG = f"""\b
Examples:
  fa4top bench                      everything, on the GPU that is here
  fa4top bench ex2 cvt mix          what has one of these words in its name or group
  fa4top bench --arch {NEWEST}       compile and check in SASS only; no GPU needed
  fa4top bench --json > bench.jsonl
"""


@click.command("bench", epilog=EPILOG)
@click.argument("words", nargs=-1)
@click.option("--arch", default="", type=click.Choice(["", *ARCHITECTURES]), help="Compile for this one, run nothing.")
@click.option("--gpu", default="", metavar="GPU", help="NVML index, UUID or the start of one.")
@click.option("--python", "interpreter", default="", metavar="PATH", help="Interpreter that has CuPy and NVRTC.")
@click.option("--record", "record_folder", default="", metavar="DIR", help="Record the session under DIR.")
@click.option("--no-record", is_flag=True, help="Keep nothing on disk after the end.")
@click.option("--wait-gpu", default=0.0, metavar="S", help="Wait up to S seconds when another fa4top has the GPU.")
@click.option("--curve", is_flag=True, help="Show the figure at every thread count.")
@click.option("--list", "only_list", is_flag=True, help="List what there is, by group, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(words: tuple[str, ...], arch: str, curve: bool, only_list: bool, as_json: bool, **options: Any) -> None:
    """Measure instruction throughputs on one SM.

    Each kernel's SASS between the two clock reads is checked before its number is shown; a number above the unit's
    limit is refused.
    """
    if only_list:
        for group in dict.fromkeys(kernel.group for kernel in SUITE):
            click.echo(f"{group}: " + "; ".join(kernel.name for kernel in SUITE if kernel.group == group))
        return
    if words and not any(w.lower() in k.name.lower() or w.lower() in k.group for k in SUITE for w in words):
        fail(f"no microbenchmark has {' or '.join(words)} in its name; fa4top bench --list shows all", exits.USAGE)
    job = job_of({"words": words, "arch": arch})
    order = bench_order(config_or_fail(), RunOptions(**options), arch)
    progress = _Progress(as_json)
    code, snapshot = run_job(order, job, as_json, progress.show)
    progress.end()
    if not as_json and snapshot.bench:
        click.echo(of_kind(snapshot, "bench"))
        if curve:
            click.echo("\n".join(curves(snapshot.bench)))
    leave_on_fault(code, snapshot)
    say_recorded(order)
    if any(result.status in ("refused", "failed") for result in snapshot.bench):
        raise SystemExit(exits.CHECK_FAILED)
    raise SystemExit(exits.OK if snapshot.bench else exits.FAULT)


def job_of(options: Mapping[str, Any]) -> BenchJob:
    """What was typed, as a job."""
    return BenchJob(names=list(options["words"]), arch=options["arch"])


def bench_order(config: Config, options: RunOptions, arch: str) -> Order:
    """An order for the suite, on the GPU or compiled for an architecture; leaves with a sentence if there is none."""
    device = Described(arch, arch, "")
    why = f"bench for {arch}: compiled, not run"
    if not arch:
        try:
            gpu = choose_gpu(options.gpu or config.gpu, list_gpus())
        except GpuError as error:
            fail(
                f"{error}. Without a GPU: fa4top bench --arch {NEWEST} compiles the kernels and checks their SASS",
                exits.NOTHING_TO_RUN_ON,
            )
        if gpu.arch not in ARCHITECTURES:
            fail(f"no microbenchmarks for {gpu.name} ({gpu.arch}); there are: {', '.join(ARCHITECTURES)}", exits.USAGE)
        device, why = Described(gpu.arch, gpu.name, gpu.uuid), f"bench on {gpu.name}"
    description = describe(SERVES)
    if problem := inspect(python_of(config, options)).problem(description.requires):
        extra = f"pip install 'fa4top[{description.extra}]' there, or give --python PATH"
        fail(f"{problem}; {extra}", exits.NOTHING_TO_RUN_ON)
    return new_order(config, options, description, device, why)


class _Progress:
    """One line on stderr that says what is measured now."""

    def __init__(self, quiet: bool) -> None:
        self._live = not quiet and sys.stderr.isatty()

    def show(self, record: Envelope) -> None:
        """The name of what runs."""
        if record.kind == "worker" and self._live:
            body: Any = record.body
            share = f"{body.progress:4.0%} " if body.progress is not None else ""
            click.echo(f"\r\033[K{share}{body.state} {body.text}"[:100], err=True, nl=False)
        elif record.kind == "fault":
            fault: Any = record.body
            click.echo(f"fault: {fault.reason}: {fault.text}. Try: {fault.hint}", err=True)

    def end(self) -> None:
        """Leave a clean line."""
        if self._live:
            click.echo("\r\033[K", err=True, nl=False)


def curves(results: tuple[BenchResult, ...]) -> list[str]:
    """The figure at every thread count, a line a microbenchmark."""
    lines = ["", "by threads"]
    for result in results:
        if result.curve:
            points = "   ".join(f"{threads}: {value:.1f}" for threads, value in result.curve)
            lines.append(f"  {result.name:42} {points}")
    return lines
