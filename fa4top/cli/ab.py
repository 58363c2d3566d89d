"""`fa4top ab`: did this knob help? A verdict with a stated error rate, for people and for scripts."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log1p
from pathlib import Path
from typing import Any

import click
import numpy as np

from fa4top.analysis.evidence import ALPHA, PILOTS, fewest_blocks, redrawn_error_rate
from fa4top.analysis.fold import Snapshot
from fa4top.analysis.tables import ab_rows, clock_text, milestones, percent_range
from fa4top.cli import exits
from fa4top.cli.budget import parse_budget
from fa4top.cli.choose import config_or_fail, fail, make_order, parse_settings
from fa4top.cli.follow import follow, leave_on_fault, say_recorded
from fa4top.cli.live import Progress
from fa4top.cli.options import l2_option, run_options
from fa4top.engine.ab import arm_orders
from fa4top.engine.jobs import AbJob, job_to_data, margin_share
from fa4top.records import AbBlock, AbState, Envelope
from fa4top.session.reading import LogError, read_log

DEFAULT_BUDGET_S = {"1": 30.0, "2": 600.0}
SUSTAINED_BUDGET_S = 120.0
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
@click.option("--coins", default=0, help="Seed of the coins that order the blocks.")
@click.option("--tier", default="1", type=click.Choice(["1", "2"]), help="2: replicate over fresh pairs of processes.")
@click.option(
    "--mode",
    default="burst",
    type=click.Choice(["burst", "sustained"]),
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
def command(
    a_settings: tuple[str, ...],
    b_settings: tuple[str, ...],
    margin: str,
    budget: str,
    coins: int,
    tier: str,
    mode: str,
    l2: str,
    watch: bool,
    self_test: bool,
    redraw: Path | None,
    expect: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare two settings in blocks of ABBA or BAAB, in the order that a fair coin chooses.

    The chance that the verdict is ever wrong is at most 5%, however often one looks. Tier 1 holds for this pair of
    processes; a claim needs tier 2, whose unit is a fresh pair (give it a budget of minutes). Two questions are never
    mixed: the kernel's speed at boost (bursts of at most 5 ms), and at power equilibrium (--mode sustained).
    """
    if redraw is not None:
        _redraw(redraw, as_json)
        return
    if self_test and b_settings:
        fail("--self-test compares A with itself; leave --b out", exits.USAGE)
    if not self_test and not a_settings and not b_settings:
        fail("say what differs, for example --b p_split=3/4; or --self-test", exits.USAGE)
    config = config_or_fail()
    order = make_order(config, options, wait_gpu_s=0.0, idle_limit_s=5.0)
    a = parse_settings(a_settings)
    try:
        share = margin_share(margin)
    except ValueError as error:
        fail(f"--{error}", exits.USAGE)
    job = AbJob(
        a,
        a if self_test else parse_settings(b_settings),
        share,
        parse_budget(budget) if budget else max(DEFAULT_BUDGET_S[tier], SUSTAINED_BUDGET_S * (mode == "sustained")),
        not watch,
        coins,
        int(tier),
        mode=mode,
        l2=l2,
    )
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
        elif record.kind in ("worker", "notice", "fault"):
            progress.show(record)

    code, fold = follow(replace(order, job=job_to_data(job)), as_json, note, lambda: False)
    snapshot = fold.snapshot()
    if not as_json and snapshot.ab is not None:
        click.echo(render(snapshot))
    leave_on_fault(code, fold)
    say_recorded(order)
    raise SystemExit(exits.OK if snapshot.ab is not None and as_expected(snapshot, expect) else exits.CHECK_FAILED)


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
    equivalent = "equivalent" in state.text.lower()
    not_slower = bool(known) and known[-1] < log1p(state.margin)
    holds = {
        None: True,
        "decided": state.word in ("faster", "slower", "equivalent"),
        "faster": state.word == "faster",
        "slower": state.word == "slower",
        "not-slower": state.word == "faster" or not_slower,
        "equivalent": equivalent,
    }
    return holds[expect]


def render(snapshot: Snapshot) -> str:
    """Arms side by side, the interval after some of the blocks, the verdict."""
    state = snapshot.ab
    assert state is not None
    label = f"{snapshot.label}  " if snapshot.label else ""
    lines = [f"{label}A/B · {state.target} on {state.device} · {state.mode}, tier {state.tier}", ""]
    for name, a, b in ab_rows(state, snapshot.ab_arms):
        lines.append(f"{name:26} {a:32} {b}")
    lines.append("")
    for pair in milestones(snapshot.ab_pairs, 8):
        lines.append(f"after pair {pair.number:5}  B against A, time: {percent_range(pair.low, pair.high)}")
    for block in milestones(snapshot.ab_blocks, 8) if state.tier == 1 else []:
        lines.append(f"after block {block.number:4}  B against A, time: {percent_range(block.low, block.high)}")
    rejected = sum(not block.accepted for block in snapshot.ab_blocks)
    pilots = sum(block.pilot for block in snapshot.ab_blocks)
    pairs = f"{len(snapshot.ab_pairs)} pairs of processes, " if snapshot.ab_pairs else ""
    lines.append(f"{pairs}{len(snapshot.ab_blocks)} blocks: {pilots} pilot, {rejected} rejected")
    mark = f" ({snapshot.label})" if snapshot.label else ""
    lines += ["", f"> {state.text or state.state}{mark}", f"  {tier_text(state)}"]
    if state.tier == 1 and (clock := clock_text(snapshot.ab_blocks)):
        lines.append(f"  {clock}")
    return "\n".join(lines)


def tier_text(state: AbState) -> str:
    """How far the verdict reaches."""
    reach = "replicated over fresh pairs of processes" if state.tier == 2 else "this pair of processes only"
    pace = "at power equilibrium" if state.mode == "sustained" else "bursts of at most 5 ms"
    gap = ", ".join(f"{arm} {percent:+.1f}%" for arm, percent in state.l2_gap_percent.items())
    cold = f" (cold against warm: {gap})" if gap else ""
    return f"{reach} (tier {state.tier}), {pace}, L2 {state.l2}{cold}; at any time {1 - state.alpha:.0%}"
