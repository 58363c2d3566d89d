"""`fa4top knobs --target fa4-fork`: the fork's environment knobs explained, and a setting judged. Nothing is
launched."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from fa4top.cli.fail import fail, usage
from fa4top.orders import exits, typed
from fa4top.targets.fork.description import NAME
from fa4top.targets.fork.knobs import KNOBS, SWITCH, ForkKnob
from fa4top.targets.fork.modes import PV_MODES, Case
from fa4top.targets.fork.rules import DANGER, REFUSED, judge
from fa4top.targets.fork.split import handoff


def legal(knob: ForkKnob) -> str:
    """Its values in a few words."""
    if knob.kind == SWITCH:
        return "0, 1"
    if knob.values:
        return ", ".join(knob.values)
    low = f" from {knob.least:g}" if knob.least is not None else ""
    return f"{knob.kind}{low}" + (f" to {knob.most:g}" if knob.most is not None else "")


def explain(mode: str, as_json: bool) -> None:
    """Print the table of knobs, of one PV mode or of all."""
    if mode and mode not in PV_MODES:
        fail(f"--mode {mode}: there are {', '.join(PV_MODES)}", exits.USAGE)
    chosen = [knob for knob in KNOBS if not mode or not knob.modes or mode in knob.modes]
    if as_json:
        click.echo(json.dumps({NAME: [asdict(knob) for knob in chosen]}, indent=2))
        return
    where = f", PV {mode}" if mode else ""
    click.echo(f"{NAME}: flash-attention-fp4's environment knobs{where}. Each setting needs a fresh process.")
    for knob in chosen:
        modes = f"  [PV {', '.join(knob.modes)}]" if knob.modes else f"  [QK {', '.join(knob.qk)}]" if knob.qk else ""
        click.echo(f"  {knob.name:32} {legal(knob)}  (default {knob.default}){modes}")
        click.echo(f"  {'':32} {knob.text}; read when {knob.when}; numerics: {knob.numerics}")
        if knob.caution:
            click.echo(f"  {'':32} ! {knob.caution}")
    click.echo("\nJudge a setting: fa4top knobs --target fa4-fork --mode fp8 --check FA4_FP8_PV_P_SPLIT_NUM=1")


def check(case: Case, settings: tuple[str, ...], as_json: bool) -> None:
    """Print what is to be said of a setting; leaves with 1 when it must not be launched."""
    with usage():
        chosen = typed.settings(settings, "--check")
    findings = judge(case, chosen)
    bad = [finding for finding in findings if finding.level in (REFUSED, DANGER)]
    known = not any(finding.level == REFUSED for finding in findings)
    words = handoff(case, chosen).text() if known else ""
    if as_json:
        click.echo(
            json.dumps({"case": asdict(case), "handoff": words, "findings": [asdict(finding) for finding in findings]})
        )
    else:
        if words:
            click.echo(words)
        for finding in findings:
            click.echo(f"{finding.level}: {finding.text}")
        if not findings:
            click.echo("nothing to be said against it")
    raise SystemExit(exits.CHECK_FAILED if bad else exits.OK)
