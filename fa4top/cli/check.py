"""`fa4top check`: is the output right, the same every time, and that of the baseline?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from fa4top.cli.choose import make_order
from fa4top.cli.fail import config_or_fail, fail, usage
from fa4top.cli.follow import Progress, leave_on_fault, run_job, say_recorded
from fa4top.cli.options import RunOptions, run_options
from fa4top.cli.text.results import of_kind
from fa4top.engine.jobs.check import check_problems
from fa4top.orders import exits
from fa4top.orders.jobs import CheckJob
from fa4top.orders.typed import settings

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
def command(as_json: bool, **options: Any) -> None:
    """Launch a setting many times in a fresh process, compare every output bit for bit, and hold another setting's
    output against it.

    Where the knobs say bitwise, outputs must be equal; elsewhere the error against FP32 must be the baseline's own.
    """
    with usage():
        job = job_of(options)
    order = make_order(config_or_fail(), RunOptions(**{k: v for k, v in options.items() if k not in OWN}))
    if job.against and (job.save or job.b):
        fail("--against holds the present setting against a file; leave --save and --b out", exits.USAGE)
    if problems := check_problems(order, job):
        fail("; ".join(problems), exits.USAGE)
    code, snapshot = run_job(order, job, as_json, Progress().show)
    if not as_json and snapshot.check_run is not None:
        click.echo(of_kind(snapshot, "check"))
    leave_on_fault(code, snapshot)
    say_recorded(order)
    passed = snapshot.check_run is not None and snapshot.check_run.passed
    raise SystemExit(exits.OK if passed else exits.CHECK_FAILED)


OWN = frozenset({"a_settings", "b_settings", "times", "bisect", "save", "against"})


def job_of(options: Mapping[str, Any]) -> CheckJob:
    """What was typed, as a job; files by their whole path, since an engine has a working folder of its own.

    Raises:
        ValueError: with the sentence for the person.
    """
    save, against = (str(Path(options[name]).absolute()) if options[name] else "" for name in ("save", "against"))
    return CheckJob(
        a=settings(options["a_settings"], "--a"),
        b=settings(options["b_settings"], "--b"),
        times=options["times"],
        bisect=options["bisect"],
        save=save,
        against=against,
    )
