"""The live screen's numbers as a compact text table, with a plotext graph of the period."""

from __future__ import annotations

from fa4top.analysis.floors import floor_sentence
from fa4top.analysis.fold import Snapshot
from fa4top.analysis.verdict import lead_role
from fa4top.targets.base import format_shape
from fa4top.targets.catalog import shown_knobs
from fa4top.targets.fork.published import SOURCE, published_tflops
from fa4top.ui.plots import line_plot

GRAPH_HEIGHT = 10


def title(snapshot: Snapshot) -> str:
    """Target, shape, setting, device; SIMULATED in front where it is."""
    plan = snapshot.plan
    if plan is None:
        return "fa4top"
    label = f"{snapshot.label}  " if snapshot.label else ""
    knobs = " ".join(f"{name}={value}" for name, value in shown_knobs(plan.target, plan.knobs).items())
    causal = " causal" if plan.shape.causal else ""
    dtype = "" if plan.simulated else f" {plan.shape.dtype}"
    return f"{label}{plan.target}{dtype} {format_shape(plan.shape)}{causal} on {plan.device}  {knobs}".rstrip()


def render(snapshot: Snapshot, width: int = 100) -> str:
    """The table, the graph and the verdict."""
    lines = [title(snapshot), ""]
    effect = f"{snapshot.probe_effect:+.1%}" if snapshot.probe_effect is not None else "?"
    if snapshot.clean_us is not None:
        lines.append(
            f"kernel, clean     {snapshot.clean_us / 1000:9.4f} ms   p95 {(snapshot.clean_p95_us or 0) / 1000:.4f}"
            f"   {snapshot.tflops or 0:.0f} TFLOP/s   {snapshot.clean_launches} launches"
        )
    plan = snapshot.plan
    if plan is not None and (figure := published_tflops(plan.device, plan.shape, plan.knobs)):
        lines.append(f"published         {figure:9.0f} TFLOP/s ({SOURCE})")
    period = snapshot.clean_period_cycles
    lines.append(
        f"clean period      {f'{period:9.0f} cycles' if period else '        ?'}   probe effect {effect}"
        f"   SM clock by kernel {f'{snapshot.sm_clock_mhz:.0f} MHz' if snapshot.sm_clock_mhz else '?'}"
    )
    if text := floor_sentence(period, snapshot.floors):
        lines.append(text)
    lines.append("")
    lines.append(f"{'role':12} {'period':>8} {'p5':>8} {'p95':>8} {'busy':>8}   waits, cycles a step (share)")
    for view in snapshot.roles:
        step = view.step_cycles or 1.0
        waits = "  ".join(f"{cause} {cycles:.0f} ({cycles / step:.0%})" for cause, cycles in view.waits_cycles)
        cells = [view.median_cycles, view.p5_cycles, view.p95_cycles, view.busy_cycles]
        lines.append(
            f"{view.role:12} "
            + " ".join(f"{c:8.0f}" if c is not None else "       ?" for c in cells)
            + f"   {waits or '-'}"
        )
    if snapshot.own:
        words = "  ".join(f"{name.replace('_', ' ')} {value:.0f}" for name, value in snapshot.own)
        lines.append(f"by the target's own definitions, cycles   {words}")
    account = snapshot.account
    if account is not None:
        lines.append("")
        lines.append(
            f"kernel account    steps {account.steps:.0%}   tile ends {account.tile_ends:.0%}   tail {account.tail:.0%}"
        )
    losses = snapshot.losses
    lines.append(
        f"events            {losses.recorded} in {losses.launches} launches   lost {losses.dropped}"
        f"   unmatched {losses.unmatched}   stale {losses.stale}"
    )
    for check in snapshot.checks:
        lines.append(f"check, {check.twin:10} {'ok' if check.passed else 'FAILED'}: {check.text}")
    lead = lead_role(snapshot.roles)
    if lead is not None and len(lead.series) > 2:
        lines += ["", f"step period of {lead.role}, cycles, over seconds"]
        start = lead.series[0].time_s
        lines.append(
            line_plot(
                [point.time_s - start for point in lead.series],
                [point.value for point in lead.series],
                width,
                GRAPH_HEIGHT,
            )
        )
    label = f" ({snapshot.label})" if snapshot.label else ""
    lines += ["", f"> {snapshot.verdict}{label}"]
    return "\n".join(lines)
