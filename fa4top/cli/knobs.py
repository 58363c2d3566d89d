"""`fa4top knobs`: the settings of a target."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from fa4top.cli import exits
from fa4top.cli.choose import fail
from fa4top.targets.catalog import TARGETS, UnknownTarget, describe
from fa4top.targets.fa4.probes import FAMILIES
from fa4top.targets.sim.description import FAULTS


@click.command("knobs", epilog="Example:  fa4top knobs --target sim")
@click.option("--target", default="", metavar="NAME", help="One target; default: all.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def command(target: str, as_json: bool) -> None:
    """Show each knob of a target: values, default, when it is read, whether it changes numerics."""
    try:
        chosen = [describe(target)] if target else list(TARGETS.values())
    except UnknownTarget as error:
        fail(str(error), exits.USAGE)
    if as_json:
        click.echo(json.dumps({d.name: [asdict(knob) for knob in d.knobs] for d in chosen}, indent=2))
        return
    for description in chosen:
        click.echo(f"{description.name}: {description.summary}")
        for knob in description.knobs:
            values = ", ".join(knob.values) or f"{knob.low}..{knob.high}"
            where = f"  [{', '.join(knob.architectures)}]" if knob.architectures else ""
            click.echo(f"  {knob.name:24} {values}  (default {knob.default}){where}")
            click.echo(f"  {'':24} {knob.text}; read per {knob.when}; numerics: {knob.numerics}")
        if description.name == "fa4":
            for arch, probes in FAMILIES.items():
                sets = "; ".join(f"{s.name}: {s.text}" for s in probes.sets)
                click.echo(f"  probe sets, {arch}: {sets}")
        if description.name == "sim":
            click.echo("  --sim-fault: " + "; ".join(f"{name}: {text}" for name, text in FAULTS.items()))
        click.echo()
