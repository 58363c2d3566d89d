"""`fa4top ab`: did this knob help? A verdict with a stated error rate, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import log1p
from pathlib import Path
from typing import Any

import click
import numpy as np

from fa4top.analysis.compare.evidence import ALPHA, PILOTS, fewest_blocks, redrawn_error_rate
from fa4top.analysis.view.snapshot import Snapshot
from fa4top.cli.choose import make_order
from fa4top.cli.fail import config_or_fail, fail, usage
from fa4top.cli.follow import Progress, leave_on_fault, run_job, say_recorded
from fa4top.cli.options import RunOptions, l2_option, run_options
from fa4top.cli.text.results import of_kind
from fa4top.engine.jobs.ab import arm_orders
from fa4top.orders import exits
from fa4top.orders.jobs import BURST, SUSTAINED, AbJob
from fa4top.orders.typed import budget_seconds, margin_share, settings
from fa4top.records import AbBlock, Envelope
from fa4top.session.reading import LogError, read_log

EXPECTATIONS = ("faster", "slower", "not-slower", "equivalent", "decided")

EPILOG = """\b
Examples:
  fa4top ab --a p_split=1/2 --b p_split=3/4 --target builtin --set pv_mode=fp8
  fa4top ab --b kv_stages=2 --target builtin --margin 0.5% --budget 60s
  fa4top ab --b p_split=3/4 --expect not-slower && git commit -a
  fa4top ab --b kv_stages=2 --target builtin --mode sustained
  fa4top ab --self-test --target builtin       A against A: must come out equivalent
  fa4top ab --a handicap=0 --b handicap=0.25 --target builtin    a known difference: must be found
  fa4top ab --redraw SESSION                   that session's error rate, had its coins fallen otherwise

\b
Exit codes: 0 as expected (without --expect: a verdict, or undecided), 1 not as expected or no valid verdict.
"""


@click.command("ab", epilog=EPILOG)
@run_options
@click.option("--a", "a_settings", multiple=True, metavar="KNOB=VALUE", help="Arm A, beside --set; may be repeated.")
@click.option("--b", "b_settings", multiple=True, metavar="KNOB=VALUE", help="Arm B, beside --set; may be repeated.")
@click.option("--margin", default="1%", help="What counts as equal; set before the run.")
@click.option("--budget", default="", help="Time for it, 30s or 2m; default 30s, sustained 2m, with tier 2 10m.")
@click.option("--blocks", default=0, metavar="N", help="Blocks at most; 0: as many as the budget allows.")
@click.option("--coins", default=0, help="Seed of the coins that order the blocks.")
@click.option("--tier", default="1", type=click.Choice(["1", "2"]), help="2: replicate over fresh pairs of processes.")
@click.option("--pairs", default=24, type=click.IntRange(2, 1000), help="Tier 2: pairs of processes at most.")
@click.option(
    "--mode",
    default=BURST,
    type=click.Choice([BURST, SUSTAINED]),
    help="burst: speed at boost, in bursts of 5 ms; sustained: at power equilibrium, clocks held back are part of it.",
)
@l2_option
@click.option("--watch", is_flag=True, help="Use the whole budget, also after a verdict.")
@click.option("--self-test", is_flag=True, help="A against A in processes of its own.")
@click.option(
    "--redraw",
    type=click.Path(path_type=Path),
    metavar="SESSION",
    help="Draw the coins of a recorded A/B anew, 1000 times, and tell how often a difference would be called.",
)
@click.option("--expect", type=click.Choice(EXPECTATIONS), help="What must hold for exit code 0.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's records to stdout and nothing else.")
def command(redraw: Path | None, expect: str | None, as_json: bool, self_test: bool, **options: Any) -> None:
    """Compare two settings in blocks of ABBA or BAAB, in the order that a fair coin chooses.

    The chance that the verdict is ever wrong is at most 5%, however often one looks. Tier 1 holds for this pair of
    processes; a claim needs tier 2, whose unit is a fresh pair (give it a budget of minutes). Two questions are never
    mixed: the kernel's speed at boost (bursts of at most 5 ms), and at power equilibrium (--mode sustained).
    """
    if redraw is not None:
        _redraw(redraw, as_json)
        return
    a, b = options["a_settings"], options["b_settings"]
    if self_test and b:
        fail("--self-test compares A with itself; leave --b out", exits.USAGE)
    if not self_test and not a and not b:
        fail("say what differs, for example --b p_split=3/4; or --self-test", exits.USAGE)
    with usage():
        job = job_of({**options, "self_test": self_test})
    order = make_order(config_or_fail(), RunOptions(**{k: v for k, v in options.items() if k not in OWN}))
    orders, problems = arm_orders(order, job)
    if problems:
        fail("; ".join(problems), exits.USAGE)
    if not self_test and orders["A"].knobs == orders["B"].knobs:
        fail("both arms are the same setting; --self-test does that on purpose", exits.USAGE)
    progress = Progress()

    def note(record: Envelope) -> None:
        body: Any = record.body
        if record.kind in ("ab_block", "ab_pair") and body.text and not as_json:
            click.echo(f"{record.kind[3:]} {body.number}: {body.text}", err=True)
        else:
            progress.show(record)

    code, snapshot = run_job(order, job, as_json, note)
    if not as_json and snapshot.ab is not None:
        click.echo(of_kind(snapshot, "ab"))
    leave_on_fault(code, snapshot)
    say_recorded(order)
    raise SystemExit(exits.OK if snapshot.ab is not None and as_expected(snapshot, expect) else exits.CHECK_FAILED)


OWN = frozenset(
    {"a_settings", "b_settings", "margin", "budget", "blocks", "coins", "tier", "pairs", "mode", "l2", "watch"}
)


def job_of(options: Mapping[str, Any]) -> AbJob:
    """What was typed, as a job.

    Raises:
        ValueError: with the sentence for the person.
    """
    a = settings(options["a_settings"], "--a")
    return AbJob(
        a=a,
        b=a if options["self_test"] else settings(options["b_settings"], "--b"),
        margin=margin_share(options["margin"]),
        budget_s=budget_seconds(options["budget"]) if options["budget"] else None,
        until_decided=not options["watch"],
        seed=options["coins"],
        tier=int(options["tier"]),
        pairs=options["pairs"],
        mode=options["mode"],
        l2=options["l2"],
        most_blocks=options["blocks"],
    )


def _redraw(path: Path, as_json: bool) -> None:
    try:
        blocks = [r.body for r in read_log(path) if isinstance(r.body, AbBlock) and r.body.accepted]
    except LogError as error:
        fail(str(error), exits.USAGE)
    ratios = np.array([block.log_ratio for block in blocks])
    pilots = sum(block.pilot for block in blocks) or PILOTS
    if len(ratios) < pilots + fewest_blocks():
        fail(f"{path}: {len(ratios)} blocks; at least {pilots + fewest_blocks()} are needed", exits.USAGE)
    share = redrawn_error_rate(ratios, pilots)
    if as_json:
        click.echo(json.dumps({"blocks": len(ratios), "runs": 1000, "called_different": share, "alpha": ALPHA}))
        return
    click.echo(
        f"{len(ratios)} blocks, coins drawn anew 1000 times: a difference called in {share:.1%} of them "
        f"(at most {ALPHA:.0%} by the rule; meaningful for A against A)"
    )


def as_expected(snapshot: Snapshot, expect: str | None) -> bool:
    """Does the verdict allow exit code 0?"""
    state = snapshot.ab
    assert state is not None
    if state.state != "done" or state.word == "invalid":
        return False
    highs = [pair.high for pair in snapshot.ab_pairs] or [block.high for block in snapshot.ab_blocks]
    known = [high for high in highs if high is not None]
    not_slower = bool(known) and known[-1] < log1p(state.margin)
    holds = {
        None: True,
        "decided": state.word in ("faster", "slower", "equivalent"),
        "faster": state.word == "faster",
        "slower": state.word == "slower",
        "not-slower": state.word == "faster" or not_slower,
        "equivalent": state.equivalent,
    }
    return holds[expect]
