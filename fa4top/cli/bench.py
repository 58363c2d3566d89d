"""`fa4top bench`: the microbenchmarks as a table, or as records."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

from fa4top.analysis.tables import bench_row, bench_title, bench_verdict
from fa4top.cli import exits
from fa4top.cli.choose import config_or_fail, fail, interpreter_problem, make_order
from fa4top.cli.follow import follow, leave_on_fault, say_recorded
from fa4top.engine.gpus import GpuError, choose_gpu, list_gpus
from fa4top.engine.jobs import BenchJob, job_to_data
from fa4top.engine.order import Order
from fa4top.records import BenchResult, Envelope
from fa4top.targets.bench.instructions import ARCHITECTURES
from fa4top.targets.bench.suite import SUITE
from fa4top.targets.catalog import describe

EPILOG = """\b
Examples:
  fa4top bench                      everything, on the GPU that is here
  fa4top bench ex2 cvt mix          what has one of these words in its name or group
  fa4top bench --arch sm_103a       compile and check in SASS only; no GPU needed
  fa4top bench --json > bench.jsonl
"""


@click.command("bench", epilog=EPILOG)
@click.argument("words", nargs=-1)
@click.option("--arch", type=click.Choice(ARCHITECTURES), help="Compile for this architecture, run nothing.")
@click.option("--gpu", default="", metavar="GPU", help="NVML index, UUID or the start of one.")
@click.option("--python", "interpreter", default="", metavar="PATH", help="Interpreter that has CuPy and NVRTC.")
@click.option("--record", "record_folder", default="", metavar="DIR", help="Record the session under DIR.")
@click.option("--no-record", is_flag=True, help="Keep nothing on disk after the end.")
@click.option("--wait-gpu", default=0.0, metavar="S", help="Wait up to S seconds when another fa4top has the GPU.")
@click.option("--curve", is_flag=True, help="Show the figure at every thread count.")
@click.option("--list", "only_list", is_flag=True, help="List what there is, by group, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(words: tuple[str, ...], curve: bool, only_list: bool, as_json: bool, **options: Any) -> None:
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
    order = _order(list(words), options)
    progress = _Progress(as_json)
    code, fold = follow(order, as_json, progress.show, lambda: False)
    progress.end()
    results = fold.snapshot().bench
    if not as_json and results:
        click.echo(render(results, curve))
    leave_on_fault(code, fold)
    say_recorded(order)
    if any(result.status in ("refused", "failed") for result in results):
        raise SystemExit(exits.CHECK_FAILED)
    raise SystemExit(exits.OK if results else exits.FAULT)


def _order(words: list[str], options: dict[str, Any]) -> Order:
    config = config_or_fail()
    python = options["interpreter"] or config.python or sys.executable
    description = describe("builtin")
    arch, gpu = options.pop("arch") or "", None
    if not arch:
        try:
            gpu = choose_gpu(options["gpu"] or config.gpu, list_gpus())
        except GpuError as error:
            fail(
                f"{error}. Without a GPU: fa4top bench --arch {ARCHITECTURES[-1]} compiles the kernels and checks "
                "their SASS",
                exits.NOTHING_TO_RUN_ON,
            )
        if gpu.arch not in ARCHITECTURES:
            fail(f"no microbenchmarks for {gpu.name} ({gpu.arch}); there are: {', '.join(ARCHITECTURES)}", exits.USAGE)
    if problem := interpreter_problem(description, python):
        fail(f"{problem}; pip install 'fa4top[cuda13,sass]' there, or give --python PATH", exits.NOTHING_TO_RUN_ON)
    blank = {
        "target": "sim",
        "shape": "",
        "dtype": "",
        "causal": None,
        "settings": (),
        "seed": 0,
        "detail": False,
        "inflight": False,
        "probe_set": "",
        "unsafe": False,
        "sim_fault": "",
        "idle_limit": None,
    }
    why = f"bench on {gpu.name}" if gpu else f"bench for {arch}: compiled, not run"
    base = make_order(config, {**blank, **options, "gpu": ""}, wait_gpu_s=0.0, idle_limit_s=5.0)
    return replace(
        base,
        target="builtin",
        why_target=why,
        notices=[why],
        knobs=description.setting({})[0],
        shape=description.default_shape,
        gpu_uuid=gpu.uuid if gpu else "",
        gpu_name=gpu.name if gpu else arch,
        arch=gpu.arch if gpu else arch,
        simulated=False,
        job=job_to_data(BenchJob(words, arch)),
    )


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


def render(results: tuple[BenchResult, ...], curve: bool = False) -> str:
    """The table, by group."""
    lines = [bench_title(results), ""]
    for group in dict.fromkeys(result.group for result in results):
        own = [result for result in results if result.group == group]
        limit = "perfect" if group == "mix" else "limit"
        lines.append(f"{group:42} {'figure':>8} {'unit':17} {limit:>8} {'share':>6} {'publ.':>6} {'spread':>6} threads")
        for result in own:
            row = bench_row(result)
            share = f"{row.limit_share:.1%}" if row.limit_share is not None else ""
            lines.append(
                f"  {row.name:40} {row.value:>8} {row.unit:17} {row.limit:>8} {share:>6} {row.published:>6} "
                f"{row.spread:>6} {row.threads:>5}  {row.note}".rstrip()
            )
            if curve and result.curve:
                points = "   ".join(f"{threads}: {value:.1f}" for threads, value in result.curve)
                lines.append(f"    {points}")
        lines.append("")
    lines.append(f"> {bench_verdict(results)}")
    return "\n".join(lines)
