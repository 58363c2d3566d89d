"""A kernel's SASS as text: one kernel, two side by side, a matrix of settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fa4top.analysis.sass import compare
from fa4top.analysis.sass.compare import Expected, SassDifference
from fa4top.analysis.sass.kernel import UNIT_NAMES, KernelSass
from fa4top.analysis.view.sass_figures import number
from fa4top.engine.sass_reading import Read

SIDE_BY_SIDE = 480  # rows


def described(read: Read) -> dict[str, Any]:
    """A kernel as plain data."""
    kernel = read.kernel
    role = compare.step_of(kernel)
    return {
        "kernel": kernel.name,
        "cubin": read.digest,
        "versions": read.versions,
        "figures": compare.figures(kernel),
        "step_role": role.name if role else "",
        "spills": compare.spill_sentence(kernel),
        "headline": compare.headline(kernel),
    }


def conditions(held: Sequence[Expected]) -> list[str]:
    """What was expected, and whether it holds."""
    lines = []
    for each in held:
        found = f"{each.found:g}" if each.found is not None else "no such figure"
        lines.append(f"{'holds' if each.holds else 'FAILS'}: {each.text} (found {found})")
    return lines


def single(title: str, read: Read, held: Sequence[Expected], listing: bool) -> list[str]:
    """What a person reads of one kernel."""
    kernel = read.kernel
    out = [title, "  " + "  ".join(f"{name} {version}" for name, version in read.versions.items()), ""]
    out.append(
        f"  {len(kernel.instructions)} instructions   registers {number(kernel.registers)}   stack "
        f"{number(kernel.stack_bytes)} B   spills {kernel.spills}   clock reads {kernel.clock_reads}"
    )
    out.append(
        f"  MUFU.EX2 {kernel.mix.ex2}   F2FP {kernel.mix.packs}   transitions {kernel.mix.transitions}   longest run "
        f"{kernel.mix.longest_run}"
    )
    if kernel.clock_reads:
        by_role = ", ".join(f"{role.name} {role.clock_reads}" for role in kernel.roles if role.clock_reads)
        out.append(f"  clock reads by role (probes): {by_role}")
    out += ["", *role_table(kernel)]
    if listing and (role := compare.step_of(kernel)) is not None:
        out.append("")
        out += [f"  {i.address:06x}  {i.predicate:5} {i.opcode} {i.operands}" for i in role.step]
    return [*out, *conditions(held), "", f"> {compare.headline(kernel)}", f"  {compare.LIMITS}"]


def compared(
    titles: Sequence[str], reads: Sequence[Read], difference: SassDifference, held: Sequence[Expected], listing: bool
) -> list[str]:
    """Figures of two kernels, and what differs."""
    out = [f"A  {titles[0]}", f"B  {titles[1]}", ""]
    for figure, (x, y) in {**difference.figures, **difference.units}.items():
        out.append(f"  {figure:28} {number(x):>8} {number(y):>8}")
    if listing:
        steps = [role.step if (role := compare.step_of(read.kernel)) else () for read in reads]
        out += ["", "softmax step, A | B"]
        for mark, left, right in compare.side_by_side(steps[0], steps[1])[:SIDE_BY_SIDE]:
            out.append(f"  {left:30} {mark} {right}")
    out += [*conditions(held), "", f"> {difference.text}"]
    out += [f"  {arm}: {compare.headline(read.kernel)}" for arm, read in zip("AB", reads, strict=True)]
    return [*out, f"  {compare.LIMITS}"]


def matrix(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A row a setting, from ``described`` data with ``name`` and ``expected``, or ``error``."""
    width = max(len(row["name"]) for row in rows)
    head = ("instr", "regs", "stack", "spills", "EX2", "F2FP", "trans", "step", "step trans")
    out = [f"{'':{width}} " + " ".join(f"{name:>10}" for name in head)]
    for row in rows:
        if "error" in row:
            out.append(f"{row['name']:{width}}  failed: {row['error']}")
            continue
        whole = ("instructions", "registers", "stack", "spills", "ex2", "packs", "transitions")
        step = tuple(f"{row['step_role']}.step.{name}" for name in ("instructions", "transitions"))
        cells = " ".join(f"{number(row['figures'].get(key)):>10}" for key in (*whole, *step))
        bad = [each["text"] for each in row["expected"] if not each["holds"]]
        tail = f"   FAILS {', '.join(bad)}" if bad else ("   holds" if row["expected"] else "")
        out.append(f"{row['name']:{width}} {cells}{tail}")
    return [*out, *(f"> {row['name']}: {row['spills']}" for row in rows if row.get("spills"))]


def role_table(kernel: KernelSass) -> list[str]:
    """Roles down, and in a step of each the instructions by unit across."""
    units = [unit for unit in UNIT_NAMES if any(role.step_units.get(unit) for role in kernel.roles)]
    head = "  ".join(f"{unit:>7}" for unit in units)
    out = [f"  {'role':11} {'regs':>5} {'instr':>6} {'spills':>6} {'step':>5}  {head}   MUFU/F2FP transitions"]
    for role in kernel.roles:
        cells = "  ".join(f"{role.step_units.get(unit, 0) or '':>7}" for unit in units)
        limit = role.register_limit if role.register_limit is not None else ""
        mix = f"{role.step_mix.transitions} (longest run {role.step_mix.longest_run})" if role.step_mix.ex2 else ""
        left = f"  {role.name:11} {limit:>5} {role.instructions:6} {role.spills or '':>6} {len(role.step) or '':>5}"
        out.append(f"{left}  {cells}   {mix}")
    return out
