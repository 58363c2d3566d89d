"""`fa4top check`: is the output right, the same every time, and that of the baseline?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fa4top.analysis.fold import Snapshot
from fa4top.cli import exits
from fa4top.cli.choose import config_or_fail, fail, make_order, parse_settings
from fa4top.cli.compact import title
from fa4top.cli.follow import follow, leave_on_fault, say_recorded
from fa4top.cli.live import Progress
from fa4top.cli.options import run_options
from fa4top.engine.check import check_orders
from fa4top.engine.jobs import CheckJob, job_to_data

EPILOG = """\b
Examples:
  fa4top check --target builtin                                20 launches: right, and the same every time?
  fa4top check --target builtin --b p_split=3/4                bitwise equal to the present setting?
  fa4top check --target fa4 --b mma_pv_is_rs=off --b intra_wg_overlap=off --bisect
  fa4top check --target fa4 --save before.npy                  then change the kernel's source, and
  fa4top check --target fa4 --against before.npy               is it still bitwise equal?
  fa4top check --fa4-path DIR --set pv_mode=fp4 --times 40     known flakes of quantised P

\b
Exit codes: 0 passed, 1 wrong, flaky, or not equal where its knobs say so.
"""


@click.command("check", epilog=EPILOG)
@run_options
@click.option("--a", "a_settings", multiple=True, metavar="KNOB=VALUE", help="The baseline's knobs, beside --set.")
@click.option("--b", "b_settings", multiple=True, metavar="KNOB=VALUE", help="The other setting's knobs.")
@click.option("--times", default=20, type=click.IntRange(1, 10_000), help="Launches of each setting.")
@click.option("--bisect", is_flag=True, help="Find the knob that changes the output, also where it may.")
@click.option("--save", default="", metavar="FILE", help="Keep the baseline's output, with a hash of its inputs.")
@click.option("--against", default="", metavar="FILE", help="Hold the present setting against a kept output.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(
    a_settings: tuple[str, ...],
    b_settings: tuple[str, ...],
    times: int,
    bisect: bool,
    save: str,
    against: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Launch a setting many times in a fresh process, compare every output bit for bit, and hold another setting's
    output against it.

    Where the knobs say bitwise, outputs must be equal; elsewhere the error against FP32 must be the baseline's own.
    """
    order = make_order(config_or_fail(), options, wait_gpu_s=0.0, idle_limit_s=5.0)
    if against and (save or b_settings):
        fail("--against holds the present setting against a file; leave --save and --b out", exits.USAGE)
    places = [str(Path(place).absolute()) if place else "" for place in (save, against)]
    job = CheckJob(parse_settings(a_settings), parse_settings(b_settings), times, bisect, *places)
    _, _, problems = check_orders(order, job)
    if problems:
        fail("; ".join(problems), exits.USAGE)
    progress = Progress()
    code, fold = follow(replace(order, job=job_to_data(job)), as_json, progress.show, lambda: False)
    snapshot = fold.snapshot()
    if not as_json and snapshot.check_run is not None:
        click.echo(render(snapshot))
    leave_on_fault(code, fold)
    say_recorded(order)
    passed = snapshot.check_run is not None and snapshot.check_run.passed
    raise SystemExit(exits.OK if passed else exits.CHECK_FAILED)


def render(snapshot: Snapshot) -> str:
    """A line a setting, and the sentence."""
    run = snapshot.check_run
    assert run is not None
    label = f"{snapshot.label}  " if snapshot.label else ""
    head = title(snapshot) if snapshot.plan else f"{label}check · {run.target} on {run.device}"
    lines = [
        head,
        "",
        f"  {'setting':40} {'launches':>8} {'differ':>7} {'against baseline':>18} {'RMS error':>10}  verdict",
    ]
    for found in snapshot.repeats:
        error = f"{found.rms_error:.2e}" if found.rms_error is not None else "?"
        counts = f"{found.times:8} {found.flaky_launches:7} {found.against or 'is it':>18} {error:>10}"
        lines.append(f"  {found.setting[:40]:40} {counts}  {found.verdict}")
        if found.where:
            lines.append(f"    differs between launches: {found.where}")
        if found.differs_where:
            lines.append(f"    differs from the baseline: {found.differs_where}")
    mark = f" ({snapshot.label})" if snapshot.label else ""
    lines += ["", f"> {run.text or run.state}{mark}"]
    return "\n".join(lines)
