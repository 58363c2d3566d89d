"""`fa4top sass`: the compiled code of a setting or a file, compared, or held against conditions. No GPU."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from fa4top.analysis import sass_compare
from fa4top.analysis.sass_compare import BadExpectation, Expected
from fa4top.analysis.sass_kernel import UNIT_NAMES, KernelSass
from fa4top.cli import exits
from fa4top.cli.choose import config_or_fail, fail, interpreter_problem, parse_settings
from fa4top.engine.jobs import knob_values
from fa4top.engine.sass import Read, SassError, Wanted, read_file, read_setting, read_settings, wheel_tools
from fa4top.targets.base import Description, ShapeError, parse_shape
from fa4top.targets.catalog import UnknownTarget, describe

EPILOG = """\b
Examples:
  fa4top sass --arch sm_103a                                     flash-attn-4, its default setting
  fa4top sass --arch sm_103a --a split_P_arrive=0 --b split_P_arrive=96
  fa4top sass --arch sm_100a --set num_regs_softmax=176 --set num_regs_correction=88 --expect no-spill
  fa4top sass --arch sm_100a --matrix split_P_arrive=0,32,64,96 --expect no-spill,registers<=128 --json
  fa4top sass --arch sm_100a --python dsl-4.8/bin/python --python dsl-4.9/bin/python     one row a DSL version
  fa4top sass kernel.cubin --expect softmax.step.transitions>=90
  fa4top sass old.cubin new.ptx --listing

\b
Figures for --expect: instructions, registers, stack, spills, ex2, packs, transitions, longest_run, clock_reads, units
(MUFU, FMA, ...), and of a role: softmax.registers, softmax.spills, softmax.step.instructions, mma.step.tensor, ...
Exit codes: 0 ok, 1 a condition does not hold, 2 it can not be compiled or read.
"""
ROWS = 60


@click.command("sass", epilog=EPILOG)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--target", default="fa4", metavar="NAME", help="fa4 or builtin.")
@click.option("--arch", default="", metavar="ARCH", help="sm_90a, sm_100a, sm_103a (default; builtin: sm_90a).")
@click.option("--shape", default="", metavar="SHAPE", help="As everywhere; a length does not matter to the code.")
@click.option("--dtype", default="", type=click.Choice(["", "bf16", "fp16", "fp8"]), help="bf16, fp16, fp8.")
@click.option("--causal/--no-causal", default=False, help="Causal mask.")
@click.option("--set", "settings", multiple=True, metavar="KNOB=VALUE", help="Set a knob; may be repeated.")
@click.option("--a", "a_settings", multiple=True, metavar="KNOB=VALUE", help="Compare: arm A's knobs.")
@click.option("--b", "b_settings", multiple=True, metavar="KNOB=VALUE", help="Compare: arm B's knobs.")
@click.option("--matrix", "matrix", multiple=True, metavar="KNOB=V,V", help="A row for each value (of each --matrix).")
@click.option("--probe-set", default="", metavar="NAME", help="Compile with probes: which ones, and what they cost.")
@click.option("--python", "pythons", multiple=True, metavar="PATH", help="Interpreter; several give a row each.")
@click.option("--kernel", default="", metavar="NAME", help="A part of the kernel's name, for files with several.")
@click.option("--expect", "expected", multiple=True, metavar="LIST", help="Conditions, joined by commas.")
@click.option("--listing", is_flag=True, help="The softmax step's opcodes; of two kernels side by side.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def command(
    files: tuple[Path, ...],
    target: str,
    arch: str,
    shape: str,
    dtype: str,
    causal: bool,
    settings: tuple[str, ...],
    a_settings: tuple[str, ...],
    b_settings: tuple[str, ...],
    matrix: tuple[str, ...],
    probe_set: str,
    pythons: tuple[str, ...],
    kernel: str,
    expected: tuple[str, ...],
    listing: bool,
    as_json: bool,
) -> None:
    """Read a kernel's SASS: instructions by unit, roles and their steps, MUFU/F2FP transitions, registers, spills.

    Static counts are not time. Blackwell code is compiled, not run.
    """
    conditions = [part for text in expected for part in text.split(",") if part.strip()]
    try:
        if files:
            if len(files) > 2:
                fail("one file, or two to compare", exits.USAGE)
            beside = wheel_tools(pythons[0] if pythons else config_or_fail().python or sys.executable)
            reads = [read_file(path, kernel, arch, beside) for path in files]
            names = [path.name for path in files]
            if len(reads) == 2:
                _compared(names, reads, conditions, listing, as_json)
            _single(names[0], reads[0], conditions, listing, as_json)
        wanted = _base(target, arch, shape, dtype, causal, settings, probe_set, pythons)
        if matrix or len(pythons) > 1:
            _matrix(wanted, matrix, pythons or (wanted.python,), conditions, as_json)
        if a_settings or b_settings:
            arms = [_changed(wanted, parse_settings(chosen)) for chosen in (a_settings, b_settings)]
            _say(f"compiling 2 settings for {wanted.arch}")
            reads = [_or_raise(found) for found in read_settings(arms)]
            titles = [", ".join(chosen) or "defaults" for chosen in (a_settings, b_settings)]
            _compared(titles, reads, conditions, listing, as_json)
        _say(f"compiling {target} for {wanted.arch}")
        title = f"{target} {wanted.arch} {' '.join(settings)}".strip()
        _single(title, read_setting(_changed(wanted, {})), conditions, listing, as_json)
    except SassError as error:
        if error.log:
            click.echo(error.log, err=True)
        fail(f"{error.text}{f'; {error.hint}' if error.hint else ''}", exits.USAGE)
    except BadExpectation as error:
        fail(str(error), exits.USAGE)


def _say(text: str) -> None:
    click.echo(text + " (some seconds)", err=True)


def _or_raise(found: Read | SassError) -> Read:
    if isinstance(found, SassError):
        raise found
    return found


def _base(
    target: str,
    arch: str,
    shape: str,
    dtype: str,
    causal: bool,
    settings: Sequence[str],
    probe_set: str,
    pythons: Sequence[str],
) -> Wanted:
    try:
        description = describe(target)
        parsed = parse_shape(shape, description.default_shape)
    except (UnknownTarget, ShapeError) as error:
        fail(str(error), exits.USAGE)
    parsed = replace(parsed, causal=causal, dtype=dtype or parsed.dtype)
    arch = arch or ("sm_90a" if target == "builtin" else "sm_103a")
    python = (pythons[0] if pythons else "") or config_or_fail().python or sys.executable
    knobs = _setting(description, parse_settings(settings))
    needs = replace(description, requires=tuple(name for name in description.requires if name != "cupy"))
    for each in pythons or (python,):
        if target == "fa4" and (problem := interpreter_problem(needs, each)):
            fail(f"{problem}; --python PATH of an environment with flash-attn-4", exits.NOTHING_TO_RUN_ON)
    return Wanted(target, parsed, arch, knobs, python, probe_set)


def _setting(description: Description, chosen: dict[str, str]) -> dict[str, str]:
    knobs, problems = description.setting(chosen)
    if problems:
        fail("; ".join(problems), exits.USAGE)
    return knobs


def _changed(wanted: Wanted, changes: dict[str, str]) -> Wanted:
    """With other knobs.

    Raises:
        SassError: there is no such kernel.
    """
    description = describe(wanted.target)
    knobs = _setting(description, {**wanted.knobs, **changes})
    if message := description.shape_problem(wanted.shape, wanted.arch, knobs):
        raise SassError(message)
    return replace(wanted, knobs=knobs)


def _single(title: str, read: Read, conditions: Sequence[str], listing: bool, as_json: bool) -> None:
    held = sass_compare.hold(read.kernel, conditions)
    if as_json:
        click.echo(
            json.dumps({"name": title, **described(read), "expected": [asdict(each) for each in held]}, indent=2)
        )
    else:
        click.echo("\n".join(lines(title, read)))
        if listing and (role := sass_compare.step_of(read.kernel)) is not None:
            click.echo(
                "\n" + "\n".join(f"  {i.address:06x}  {i.predicate:5} {i.opcode} {i.operands}" for i in role.step)
            )
        _conditions(held)
        click.echo(f"\n> {sass_compare.headline(read.kernel)}\n  {sass_compare.LIMITS}")
    raise SystemExit(_code(held))


def _conditions(held: Sequence[Expected]) -> None:
    for each in held:
        found = f"{each.found:g}" if each.found is not None else "no such figure"
        click.echo(f"{'holds' if each.holds else 'FAILS'}: {each.text} (found {found})")


def _code(held: Sequence[Expected]) -> int:
    return exits.OK if all(each.holds for each in held) else exits.CHECK_FAILED


def _compared(
    titles: Sequence[str], reads: Sequence[Read], conditions: Sequence[str], listing: bool, as_json: bool
) -> None:
    a, b = reads
    difference = sass_compare.compare(a.kernel, b.kernel)
    held = sass_compare.hold(b.kernel, conditions)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "a": {"name": titles[0], **described(a)},
                    "b": {"name": titles[1], **described(b)},
                    "difference": asdict(difference),
                    "expected": [asdict(each) for each in held],
                },
                indent=2,
            )
        )
        raise SystemExit(_code(held))
    click.echo(f"A  {titles[0]}\nB  {titles[1]}\n")
    for figure, (x, y) in {**difference.figures, **difference.units}.items():
        click.echo(f"  {figure:28} {_number(x):>8} {_number(y):>8}")
    if listing:
        steps = [role.step if (role := sass_compare.step_of(read.kernel)) else () for read in reads]
        click.echo("\nsoftmax step, A | B")
        for mark, left, right in sass_compare.side_by_side(steps[0], steps[1])[: ROWS * 8]:
            click.echo(f"  {left:30} {mark} {right}")
    _conditions(held)
    click.echo(f"\n> {difference.text}")
    for arm, read in zip("AB", reads, strict=True):
        click.echo(f"  {arm}: {sass_compare.headline(read.kernel)}")
    click.echo(f"  {sass_compare.LIMITS}")
    raise SystemExit(_code(held))


def _matrix(
    base: Wanted, matrix: Sequence[str], pythons: Sequence[str], conditions: Sequence[str], as_json: bool
) -> None:
    try:
        axes = [knob_values(text) for text in matrix]
    except ValueError as error:
        fail(str(error), exits.USAGE)
    cells: list[tuple[str, Wanted | SassError]] = []
    for python in pythons:
        for chosen in itertools.product(*(values for _, values in axes)):
            changes = {knob: value for (knob, _), value in zip(axes, chosen, strict=True)}
            name = " ".join(f"{knob}={value}" for knob, value in changes.items())
            where = python if len(pythons) > 1 else ""
            try:
                cell: Wanted | SassError = replace(_changed(base, changes), python=python)
            except SassError as error:
                cell = error
            cells.append((f"{where} {name}".strip(), cell))
    _say(f"compiling {len(cells)} settings for {base.arch}")

    def tell(wanted: Wanted, found: Read | SassError) -> None:
        click.echo(f"  {'failed' if isinstance(found, SassError) else 'compiled'}", err=True)

    made = iter(read_settings([cell for _, cell in cells if isinstance(cell, Wanted)], tell))
    found = [next(made) if isinstance(cell, Wanted) else cell for _, cell in cells]
    rows: list[dict[str, Any]] = []
    code = exits.OK
    for (name, _), read in zip(cells, found, strict=True):
        if isinstance(read, SassError):
            code = exits.CHECK_FAILED
            rows.append({"name": name, "error": read.text})
            continue
        held = sass_compare.hold(read.kernel, conditions)
        code = max(code, _code(held))
        rows.append({"name": name, **described(read), "expected": [asdict(each) for each in held]})
    if as_json:
        click.echo(json.dumps({"target": base.target, "arch": base.arch, "rows": rows}, indent=2))
        raise SystemExit(code)
    width = max(len(row["name"]) for row in rows)
    head = ("instr", "regs", "stack", "spills", "EX2", "F2FP", "trans", "step", "step trans")
    click.echo(f"{'':{width}} " + " ".join(f"{name:>10}" for name in head))
    for row in rows:
        if "error" in row:
            click.echo(f"{row['name']:{width}}  failed: {row['error']}")
            continue
        known = row["figures"]
        names = (
            "instructions", "registers", "stack", "spills", "ex2", "packs", "transitions",
            f"{row['step_role']}.step.instructions", f"{row['step_role']}.step.transitions",
        )  # fmt: skip
        cells_text = " ".join(f"{_number(known.get(key)):>10}" for key in names)
        bad = [each["text"] for each in row["expected"] if not each["holds"]]
        tail = f"   FAILS {', '.join(bad)}" if bad else ("   holds" if row["expected"] else "")
        click.echo(f"{row['name']:{width}} {cells_text}{tail}")
    for row in rows:
        if row.get("spills"):
            click.echo(f"> {row['name']}: {row['spills']}")
    raise SystemExit(code)


def described(read: Read) -> dict[str, Any]:
    """A kernel as plain data."""
    kernel = read.kernel
    role = sass_compare.step_of(kernel)
    return {
        "kernel": kernel.name,
        "cubin": read.digest,
        "versions": read.versions,
        "figures": sass_compare.figures(kernel),
        "step_role": role.name if role else "",
        "spills": sass_compare.spill_sentence(kernel),
        "headline": sass_compare.headline(kernel),
    }


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def lines(title: str, read: Read) -> list[str]:
    """What a person reads of one kernel."""
    kernel = read.kernel
    out = [title, "  " + "  ".join(f"{name} {version}" for name, version in read.versions.items()), ""]
    out.append(
        f"  {len(kernel.instructions)} instructions   registers {_number(kernel.registers)}   stack "
        f"{_number(kernel.stack_bytes)} B   spills {kernel.spills}   clock reads {kernel.clock_reads}"
    )
    out.append(
        f"  MUFU.EX2 {kernel.mix.ex2}   F2FP {kernel.mix.packs}   transitions {kernel.mix.transitions}   longest run "
        f"{kernel.mix.longest_run}"
    )
    if kernel.clock_reads:
        by_role = ", ".join(f"{role.name} {role.clock_reads}" for role in kernel.roles if role.clock_reads)
        out.append(f"  clock reads by role (probes): {by_role}")
    out += ["", *role_table(kernel)]
    return out


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
