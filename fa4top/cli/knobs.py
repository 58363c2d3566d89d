"""`fa4top knobs`: the settings of a target."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from fa4top.cli.fail import fail
from fa4top.cli.fork import knobs as fork_knobs
from fa4top.orders import exits
from fa4top.targets.base import Knob
from fa4top.targets.catalog import TARGETS, UnknownTarget, describe
from fa4top.targets.fork.description import NAME as FORK
from fa4top.targets.fork.modes import SM100, SM103, Case

EPILOG = """\b
Examples:
  fa4top knobs --target sim
  fa4top knobs --target fa4-fork --mode fp8          flash-attention-fp4's FA4_* variables
  fa4top knobs --target fa4-fork --mode fp8 --check FA4_FP8_PV_P_SPLIT_NUM=1 --check FA4_FP8_PV_TMEM_STORE_REP=16

\b
Exit codes: 0 ok, 1 a checked setting must not be launched.
"""


def _plain(knob: Knob) -> dict[str, object]:
    return {name: value for name, value in asdict(knob).items() if name != "check"}


@click.command("knobs", epilog=EPILOG)
@click.option("--target", default="", metavar="NAME", help="One target, or fa4-fork; default: all that can run.")
@click.option("--mode", default="", metavar="PV", help="fa4-fork: precision of PV (bf16, fp8, fp4, mxfp8).")
@click.option("--qk", default="nvfp4", metavar="QK", help="fa4-fork, --check: precision of QK (nvfp4, mxfp8).")
@click.option("--head-dim", default=128, help="fa4-fork, --check: 64 or 128.")
@click.option("--arch", default=SM103, help=f"fa4-fork, --check: {SM100} or {SM103}.")
@click.option("--check", "checked", multiple=True, metavar="KNOB=VALUE", help="fa4-fork: judge a setting; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def command(target: str, mode: str, qk: str, head_dim: int, arch: str, checked: tuple[str, ...], as_json: bool) -> None:
    """Show each knob of a target: values, default, when it is read, whether it changes numerics."""
    if target == FORK:
        if checked:
            fork_knobs.check(Case(mode or "bf16", qk, head_dim, arch), checked, as_json)
        fork_knobs.explain(mode, as_json)
        return
    if checked or mode:
        fail("--mode and --check are for --target fa4-fork", exits.USAGE)
    try:
        chosen = [describe(target)] if target else list(TARGETS.values())
    except UnknownTarget as error:
        fail(str(error), exits.USAGE)
    if as_json:
        click.echo(json.dumps({d.name: [_plain(knob) for knob in d.knobs] for d in chosen}, indent=2))
        return
    for description in chosen:
        click.echo(f"{description.name}: {description.summary}")
        for knob in description.knobs:
            where = f"  [{', '.join(knob.architectures)}]" if knob.architectures else ""
            click.echo(f"  {knob.name:24} {knob.legal}  (default {knob.default}){where}")
            click.echo(f"  {'':24} {knob.text}; read per {knob.when}; numerics: {knob.numerics}")
        for line in description.about() if description.about is not None else ():
            click.echo(f"  {line}")
        click.echo()
