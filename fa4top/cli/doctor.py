"""`fa4top doctor`: what is there, what is missing, and the command that fixes it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import click

from fa4top import __version__
from fa4top.analysis.chip.chips import ARCHITECTURES
from fa4top.cli.choose import make_order
from fa4top.cli.fail import config_or_fail
from fa4top.cli.fork.conformance import conformance
from fa4top.cli.interpreter import Interpreter, inspect
from fa4top.cli.options import RunOptions
from fa4top.engine.gpus import driver_versions, list_gpus
from fa4top.engine.sass_reading import wheel_tools
from fa4top.orders import exits
from fa4top.session.paths import RuntimeFolderError, config_file, runtime_folder, sessions_folder
from fa4top.targets.base import MISSING, NOTE, OK, Description, Finding
from fa4top.targets.catalog import TARGETS
from fa4top.targets.cuda.tools import find_tool, version_of
from fa4top.targets.fork.description import NAME as FORK
from fa4top.targets.fork.doctor import checkout_findings, is_checkout
from fa4top.targets.references import load

SMALL = "b1,s1024,h4,d128"
LEAST_PYTHON = (3, 10)


def _driver() -> list[Finding]:
    gpus = list_gpus()
    if not gpus:
        return [Finding("GPU", MISSING, "no NVIDIA driver answers", "none needed for --target sim and replay")]
    version, cuda = driver_versions()
    findings = [Finding("driver", OK, f"{version}, CUDA {cuda}")]
    for gpu in gpus:
        known = gpu.arch in ARCHITECTURES
        findings.append(
            Finding(
                f"GPU {gpu.index}{' MIG' if gpu.is_mig else ''}",
                OK if known else NOTE,
                f"{gpu.name} {gpu.arch} {gpu.uuid}",
                "" if known else "no fa4 probes for this architecture; --target sim works",
            )
        )
    return findings


def _interpreter(found: Interpreter) -> list[Finding]:
    if found.error:
        return [Finding("interpreter", MISSING, found.error, "--python PATH of a Python >= 3.10")]
    number = tuple(int(part) for part in found.version.split(".")[:2])
    new = number >= LEAST_PYTHON
    fix = "" if new else "workers need Python >= 3.10"
    findings = [Finding("interpreter", OK if new else MISSING, f"{found.executable} {found.version}", fix)]
    numpy = found.versions.get("numpy")
    findings.append(
        Finding("numpy", OK if numpy else MISSING, numpy or "not there", "" if numpy else "pip install numpy")
    )
    cupy = next((found.versions[v] for v in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if v in found.versions), "")
    there = bool(found.modules.get("cupy"))
    fix = "" if there else "pip install 'fa4top[cuda13]' (or cuda12)"
    findings.append(Finding("cupy", OK if there else MISSING, cupy or ("there" if there else "not there"), fix))
    nvrtc = found.versions.get("nvidia-cuda-nvrtc") or found.versions.get("nvidia-cuda-nvrtc-cu12")
    fix = "" if nvrtc else "pip install 'fa4top[cuda13]' brings it"
    findings.append(Finding("NVRTC", OK if nvrtc else NOTE, nvrtc or "no wheel; CuPy looks in CUDA_HOME", fix))
    for target in TARGETS.values():
        if target.doctor:
            findings += load(target.doctor)(found.modules, found.versions)
    return findings


def _tools(python: str) -> list[Finding]:
    beside = wheel_tools(python)
    findings = []
    for tool in ("ptxas", "nvdisasm", "cuobjdump"):
        path = find_tool(tool, beside)
        if path is None:
            text = "not on PATH, in CUDA_HOME or in a wheel"
            findings.append(Finding(tool, NOTE, text, "pip install 'fa4top[sass]'"))
        else:
            findings.append(Finding(tool, OK, f"{path}: {version_of(path)}"))
    return findings


def _launchable(description: Description, found: Interpreter, folder: str) -> Finding:
    """Can this target be launched here with this interpreter?"""
    name = description.name
    if description.device is not None:
        return Finding(name, OK, description.summary)
    gpus = list_gpus()
    if not gpus:
        return Finding(name, MISSING, "no GPU", "none needed for --target sim and replay")
    shape, knobs = description.default_shape, description.defaults()
    reasons = [description.shape_problem(shape, gpu.arch, knobs) for gpu in gpus]
    if None not in reasons:
        return Finding(name, MISSING, str(reasons[0]), "none needed for --target sim and replay")
    if problem := found.problem(description.requires):
        return Finding(name, MISSING, problem, f"pip install 'fa4top[{description.extra}]' there, or --python PATH")
    if description.locate:
        try:
            load(description.locate)(folder, Path.cwd(), found.modules.get("flash_attn.cute.interface") or "")
        except ValueError as error:
            return Finding(name, NOTE, str(error))
    return Finding(name, OK, description.summary)


def _targets(found: Interpreter, folder: str) -> list[Finding]:
    findings = [_launchable(description, found, folder) for description in TARGETS.values()]
    findings += [
        Finding(name, MISSING, why, "another version of that package?") for name, why in TARGETS.broken.items()
    ]
    return findings


def _terminal() -> list[Finding]:
    term, colours = os.environ.get("TERM", "?"), os.environ.get("COLORTERM", "")
    encoding = sys.stdout.encoding or "?"
    findings = [
        Finding(
            "terminal",
            OK if sys.stdout.isatty() else NOTE,
            f"TERM={term} COLORTERM={colours or 'not set (256 colours)'} {encoding}",
        )
    ]
    if "utf" not in encoding.lower():
        findings.append(Finding("encoding", NOTE, encoding, "use --ascii, or a UTF-8 locale"))
    if os.environ.get("SSH_CONNECTION") and not os.environ.get("TMUX"):
        findings.append(
            Finding("SSH", NOTE, "not in tmux", "run tmux on this node: it sends less, and survives a drop")
        )
    if os.environ.get("NO_COLOR"):
        findings.append(Finding("NO_COLOR", NOTE, "set: no colours"))
    return findings


def _folders() -> list[Finding]:
    try:
        findings = [Finding("sockets", OK, str(runtime_folder()))]
    except RuntimeFolderError as error:
        findings = [Finding("sockets", MISSING, str(error))]
    folder = sessions_folder()
    parent = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(parent).free / 2**30
    writable = os.access(parent, os.W_OK)
    findings.append(
        Finding(
            "sessions",
            OK if writable else MISSING,
            f"{folder} ({free:.1f} GiB free)",
            "" if writable else "not writable: --record DIR or --no-record",
        )
    )
    findings.append(Finding("config", OK, f"{config_file()}{'' if config_file().exists() else ' (not there)'}"))
    return findings


def _launched(python: str, folder: str) -> list[Finding]:
    """What holds when the checkout runs once, a small shape in its default mode; leaves when it can not run here."""
    click.echo("launching the checkout once: it compiles for a while", err=True)
    options = RunOptions(target=FORK, shape=SMALL, no_record=True, source_path=folder, interpreter=python)
    order = make_order(config_or_fail(), options, wait_gpu_s=60.0, idle_limit_s=60.0)
    findings = [Finding("package", OK, order.why_target)]
    for row in conformance(order):
        fix = "" if row.holds else f"expected: {row.expected}"
        findings.append(Finding(row.what, OK if row.holds else MISSING, row.found, fix))
    return findings


EPILOG = """\b
Examples:
  fa4top doctor --python ~/fa4/.venv/bin/python
  fa4top doctor --fa4-path ~/flash-attention-fp4      what of that checkout fa4top can rely on
  fa4top doctor --target fa4-fork --python PATH       the same, and launch it once: a table to send back
"""


@click.command("doctor", epilog=EPILOG)
@click.option("--python", "interpreter", default="", metavar="PATH", help="The interpreter to look into.")
@click.option(
    "--fa4-path",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A checkout of flash-attention-fp4; default: this folder, if it is one.",
)
@click.option(
    "--target", default="", type=click.Choice(["", FORK]), metavar="NAME", help=f"{FORK}: launch it once, too."
)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def command(interpreter: str, fa4_path: Path | None, target: str, as_json: bool) -> None:
    """Look at GPU, driver, interpreter, packages, tools, terminal and folders. Ends with 3 when only `sim` can run."""
    python = interpreter or config_or_fail().python or sys.executable
    found, here = inspect(python), Path.cwd()
    sections = {
        "GPU": _driver(),
        "worker interpreter": _interpreter(found),
        "SASS tools": _tools(python),
        "targets": _targets(found, str(fa4_path or "")),
        "terminal": _terminal(),
        "folders": _folders(),
    }
    if fa4_path is not None or is_checkout(here):
        sections["flash-attention-fp4"] = checkout_findings(fa4_path or here)
    launched: list[Finding] = []
    if target:
        launched = sections["flash-attention-fp4, launched"] = _launched(interpreter, str(fa4_path or ""))
    if as_json:
        facts = {name: [asdict(finding) for finding in each] for name, each in sections.items()}
        click.echo(json.dumps({"fa4top": __version__, **facts}, indent=2))
    else:
        click.echo(f"fa4top {__version__}, Python {sys.version.split()[0]}")
        marks = {OK: "ok     ", MISSING: "MISSING", NOTE: "note   "}
        for name, each in sections.items():
            click.echo(f"\n{name}")
            for finding in each:
                click.echo(f"  {marks[finding.state]} {finding.what:14} {finding.found}")
                if finding.fix:
                    click.echo(f"          {'':14} -> {finding.fix}")
    if target:
        held = all(finding.state != MISSING for finding in launched)
        raise SystemExit(exits.OK if held else exits.CHECK_FAILED)
    real = {name for name, description in TARGETS.items() if description.device is None}
    can_run = any(finding.state == OK and finding.what in real for finding in sections["targets"])
    raise SystemExit(exits.OK if can_run else exits.NOTHING_TO_RUN_ON)
