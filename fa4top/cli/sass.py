"""`fa4top sass`: the compiled code of a setting or a file, compared, or held against conditions. No GPU."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from fa4top.analysis.chip.chips import ARCHITECTURES
from fa4top.analysis.sass import compare
from fa4top.analysis.sass.compare import BadExpectation, Expected
from fa4top.cli.choose import python_of, shape_of
from fa4top.cli.fail import config_or_fail, fail, usage
from fa4top.cli.interpreter import inspect
from fa4top.cli.options import RunOptions
from fa4top.cli.text import sass as text
from fa4top.engine.sass_reading import Read, SassError, Wanted, read_file, read_setting, read_settings, wheel_tools
from fa4top.orders import exits
from fa4top.orders.jobs import SassJob
from fa4top.orders.shapes import DTYPES
from fa4top.orders.typed import knob_values, setting_words
from fa4top.orders.typed import settings as typed_settings
from fa4top.targets.catalog import UnknownTarget, compiled_without_gpu, describe

EPILOG = """\b
Examples:
  fa4top sass --arch sm_103a                                     flash-attn-4, its default setting
  fa4top sass --arch sm_103a --a split_P_arrive=0 --b split_P_arrive=96
  fa4top sass --arch sm_100a --set num_regs_softmax=176 --set num_regs_correction=88 --expect no-spill
  fa4top sass --arch sm_100a --matrix split_P_arrive=0,32,64,96 --expect "no-spill,registers<=128" --json
  fa4top sass --arch sm_100a --python dsl-4.8/bin/python --python dsl-4.9/bin/python     one row a DSL version
  fa4top sass kernel.cubin --expect "softmax.step.transitions>=90"
  fa4top sass old.cubin new.ptx --listing

\b
Figures for --expect: instructions, registers, stack, spills, ex2, packs, transitions, longest_run, clock_reads, units
(MUFU, FMA, ...), and of a role: softmax.registers, softmax.spills, softmax.step.instructions, mma.step.tensor, ...
Exit codes: 0 ok, 1 a condition does not hold, 2 it can not be compiled or read.
"""


@dataclass(frozen=True)
class Show:
    """How results are held and shown."""

    conditions: tuple[str, ...]
    listing: bool
    as_json: bool


@click.command("sass", epilog=EPILOG)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--target", default="fa4", metavar="NAME", help="A target that compiles without a GPU: fa4 or builtin.")
@click.option("--arch", default="", metavar="ARCH", help=f"{', '.join(ARCHITECTURES)}; default: the target's own.")
@click.option("--shape", default="", metavar="SHAPE", help="As everywhere; a length does not matter to the code.")
@click.option("--dtype", default="", type=click.Choice(["", *DTYPES]), help=", ".join(DTYPES))
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
def command(files: tuple[Path, ...], expected: tuple[str, ...], listing: bool, as_json: bool, **options: Any) -> None:
    """Read a kernel's SASS: instructions by unit, roles and their steps, MUFU/F2FP transitions, registers, spills.

    Static counts are not time. Blackwell code is compiled, not run.
    """
    show = Show(tuple(part for each in expected for part in each.split(",") if part.strip()), listing, as_json)
    try:
        if files:
            raise SystemExit(_files(files, options, show))
        wanted = _base(options)
        job = job_of(options)
        if options["matrix"] or len(options["pythons"]) > 1:
            raise SystemExit(_matrix(wanted, options["matrix"], options["pythons"] or (wanted.python,), show))
        if job.a or job.b:
            arms = [_changed(wanted, changes) for changes in (job.a, job.b)]
            _say(f"compiling 2 settings for {wanted.arch}")
            reads = [_or_raise(found) for found in read_settings(arms)]
            titles = [setting_words(changes) or "defaults" for changes in (job.a, job.b)]
            raise SystemExit(_compared(titles, reads, show))
        _say(f"compiling {wanted.target} for {wanted.arch}")
        title = f"{wanted.target} {wanted.arch} {' '.join(options['settings'])}".strip()
        raise SystemExit(_single(title, read_setting(_changed(wanted, {})), show))
    except SassError as error:
        if error.log:
            click.echo(error.log, err=True)
        fail(f"{error.text}{f'; {error.hint}' if error.hint else ''}", exits.USAGE)
    except BadExpectation as error:
        fail(str(error), exits.USAGE)


def job_of(options: Mapping[str, Any]) -> SassJob:
    """Which arms were typed, as a job; leaves with a sentence where they can not be read."""
    with usage():
        a, b = typed_settings(options["a_settings"], "--a"), typed_settings(options["b_settings"], "--b")
    return SassJob(a=a, b=b)


def _say(words: str) -> None:
    click.echo(words + " (some seconds)", err=True)


def _or_raise(found: Read | SassError) -> Read:
    if isinstance(found, SassError):
        raise found
    return found


def _run_options(options: Mapping[str, Any]) -> RunOptions:
    pythons = options["pythons"]
    return RunOptions(
        target=options["target"],
        shape=options["shape"],
        dtype=options["dtype"],
        causal=options["causal"],
        settings=options["settings"],
        interpreter=pythons[0] if pythons else "",
    )


def _files(files: Sequence[Path], options: Mapping[str, Any], show: Show) -> int:
    if len(files) > 2:
        fail("one file, or two to compare", exits.USAGE)
    beside = wheel_tools(python_of(config_or_fail(), _run_options(options)))
    reads = [read_file(path, options["kernel"], options["arch"], beside) for path in files]
    names = [path.name for path in files]
    return _compared(names, reads, show) if len(reads) == 2 else _single(names[0], reads[0], show)


def _base(options: Mapping[str, Any]) -> Wanted:
    run = _run_options(options)
    try:
        description = describe(run.target)
    except UnknownTarget as error:
        fail(str(error), exits.USAGE)
    if not description.compile_only:
        fail(f"--target: only {' and '.join(compiled_without_gpu())} can be compiled without a GPU", exits.USAGE)
    python = python_of(config_or_fail(), run)
    with usage():
        chosen = typed_settings(run.settings, "--set")
    # CuPy launches, and nothing is launched; NVRTC is reached through it, which the compile says by itself
    needs = tuple(name for name in description.requires if name != "cupy")
    for each in options["pythons"] or (python,):
        if problem := inspect(each).problem(needs):
            fail(f"{problem}; --python PATH of an environment that has it", exits.NOTHING_TO_RUN_ON)
    knobs = _legal(run.target, chosen)
    arch = options["arch"] or description.default_arch
    return Wanted(run.target, shape_of(description, run), arch, knobs, python, options["probe_set"])


def _legal(target: str, chosen: dict[str, str]) -> dict[str, str]:
    knobs, problems = describe(target).setting(chosen)
    if problems:
        fail("; ".join(problems), exits.USAGE)
    return knobs


def _changed(wanted: Wanted, changes: dict[str, str]) -> Wanted:
    """With other knobs.

    Raises:
        SassError: there is no such kernel.
    """
    knobs = _legal(wanted.target, {**wanted.knobs, **changes})
    if message := describe(wanted.target).shape_problem(wanted.shape, wanted.arch, knobs):
        raise SassError(message)
    return replace(wanted, knobs=knobs)


def _code(held: Sequence[Expected]) -> int:
    return exits.OK if all(each.holds for each in held) else exits.CHECK_FAILED


def _print(as_json: bool, data: Callable[[], Any], lines: Callable[[], list[str]]) -> None:
    click.echo(json.dumps(data(), indent=2) if as_json else "\n".join(lines()))


def _single(title: str, read: Read, show: Show) -> int:
    held = compare.hold(read.kernel, show.conditions)
    _print(
        show.as_json,
        lambda: {"name": title, **text.described(read), "expected": [asdict(each) for each in held]},
        lambda: text.single(title, read, held, show.listing),
    )
    return _code(held)


def _compared(titles: Sequence[str], reads: Sequence[Read], show: Show) -> int:
    a, b = reads
    difference = compare.compare(a.kernel, b.kernel)
    held = compare.hold(b.kernel, show.conditions)
    _print(
        show.as_json,
        lambda: {
            "a": {"name": titles[0], **text.described(a)},
            "b": {"name": titles[1], **text.described(b)},
            "difference": asdict(difference),
            "expected": [asdict(each) for each in held],
        },
        lambda: text.compared(titles, reads, difference, held, show.listing),
    )
    return _code(held)


def _matrix(base: Wanted, matrix: Sequence[str], pythons: Sequence[str], show: Show) -> int:
    with usage():
        axes = [knob_values(each) for each in matrix]
    cells: list[tuple[str, Wanted | SassError]] = []
    for python, *chosen in itertools.product(pythons, *(values for _, values in axes)):
        changes = {knob: value for (knob, _), value in zip(axes, chosen, strict=True)}
        name = f"{python if len(pythons) > 1 else ''} {setting_words(changes)}".strip()
        try:
            cells.append((name, replace(_changed(base, changes), python=python)))
        except SassError as error:
            cells.append((name, error))
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
        held = compare.hold(read.kernel, show.conditions)
        code = max(code, _code(held))
        rows.append({"name": name, **text.described(read), "expected": [asdict(each) for each in held]})
    _print(show.as_json, lambda: {"target": base.target, "arch": base.arch, "rows": rows}, lambda: text.matrix(rows))
    return code
