"""`fa4top doctor`: what is there, what is missing, and the command that fixes it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from fa4top import __version__
from fa4top.cli import exits
from fa4top.cli.choose import config_or_fail, inspect_interpreter, interpreter_problem, make_order
from fa4top.cli.conformance import conformance
from fa4top.cli.options import run_options
from fa4top.engine.gpus import ARCH_OF, list_gpus
from fa4top.session.paths import RuntimeFolderError, config_file, runtime_folder, sessions_folder
from fa4top.targets.catalog import describe
from fa4top.targets.fa4.probes import KNOWN_GOOD
from fa4top.targets.fork.checkout import KERNEL, PACKAGE, NoCheckout, inspect_checkout
from fa4top.targets.fork.description import NAME as FORK

OK, MISSING, NOTE = "ok", "missing", "note"
SMALL = "b1,s1024,h4,d128"
EXTRAS = {"fa4": "fa4,cuda13", "builtin": "cuda13,sass"}


@dataclass(frozen=True)
class Finding:
    """One thing looked at: ok, missing (with what fixes it) or a note."""

    what: str
    state: str
    found: str
    fix: str = ""


def _driver() -> list[Finding]:
    gpus = list_gpus()
    if not gpus:
        return [Finding("GPU", MISSING, "no NVIDIA driver answers", "none needed for --target sim and replay")]
    import pynvml

    version = pynvml.nvmlSystemGetDriverVersion()
    cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    findings = [Finding("driver", OK, f"{version}, CUDA {cuda // 1000}.{cuda % 1000 // 10}")]
    for gpu in gpus:
        known = gpu.arch in ARCH_OF.values()
        findings.append(
            Finding(
                f"GPU {gpu.index}{' MIG' if gpu.is_mig else ''}",
                OK if known else NOTE,
                f"{gpu.name} {gpu.arch} {gpu.uuid}",
                "" if known else "no fa4 probes for this architecture; --target sim works",
            )
        )
    return findings


def _interpreter(python: str) -> list[Finding]:
    found = inspect_interpreter(python)
    if "error" in found:
        return [Finding("interpreter", MISSING, found["error"], "--python PATH of a Python >= 3.10")]
    versions, modules = found["versions"], found["modules"]
    number = tuple(int(part) for part in found["python"].split(".")[:2])
    findings = [
        Finding(
            "interpreter",
            OK if number >= (3, 10) else MISSING,
            f"{found['executable']} {found['python']}",
            "" if number >= (3, 10) else "workers need Python >= 3.10",
        )
    ]

    def module(name: str, package: str, fix: str) -> None:
        version = versions.get(package, "")
        state = OK if modules.get(name) else MISSING
        findings.append(
            Finding(name, state, version or ("there" if state == OK else "not there"), "" if state == OK else fix)
        )

    module("numpy", "numpy", "pip install numpy")
    cupy = next((v for v in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if v in versions), "cupy")
    module("cupy", cupy, "pip install 'fa4top[cuda13]' (or cuda12)")
    nvrtc = versions.get("nvidia-cuda-nvrtc") or versions.get("nvidia-cuda-nvrtc-cu12")
    findings.append(
        Finding(
            "NVRTC",
            OK if nvrtc else NOTE,
            nvrtc or "no wheel; CuPy looks in CUDA_HOME",
            "" if nvrtc else "pip install 'fa4top[cuda13]' brings it",
        )
    )
    module("torch", "torch", "pip install 'fa4top[fa4]'")
    module("cutlass", "nvidia-cutlass-dsl", "pip install 'fa4top[fa4]'")
    flavour = [f for f in ("cu13", "cu12") if f"nvidia-cutlass-dsl-libs-{f}" in versions]
    findings.append(
        Finding(
            "DSL flavour",
            OK if flavour else NOTE,
            ", ".join(flavour) or "unknown",
            "" if flavour else "the flavour moves results: pip install 'nvidia-cutlass-dsl[cu13]'",
        )
    )
    findings.append(_package(found, versions))
    return findings


def _package(found: dict[str, Any], versions: dict[str, str]) -> Finding:
    if not found["flash_attn.cute.interface"]:
        return Finding("flash-attn-4", MISSING, "not there", "pip install --pre 'fa4top[fa4]', or --python PATH")
    version, dsl = versions.get("flash-attn-4", "?"), versions.get("nvidia-cutlass-dsl", "?")
    where = Path(found["flash_attn.cute.interface"]).parent
    if dsl in KNOWN_GOOD.get(version, ()):
        return Finding("flash-attn-4", OK, f"{version} with DSL {dsl}: known good ({where})")
    tried = "; ".join(f"{p} with {', '.join(d)}" for p, d in KNOWN_GOOD.items())
    return Finding(
        "flash-attn-4",
        NOTE,
        f"{version} with DSL {dsl}: never tried ({where})",
        f"known good: {tried}; others are tried and verified by probe counts",
    )


def _tools(python: str) -> list[Finding]:
    findings = []
    wheel = inspect_interpreter(python).get("nvdisasm")
    for tool in ("ptxas", "nvdisasm"):
        path = shutil.which(tool) or (wheel if tool == "nvdisasm" else None)
        if path is None and (home := os.environ.get("CUDA_HOME")):
            candidate = Path(home) / "bin" / tool
            path = str(candidate) if candidate.exists() else None
        if path is None:
            findings.append(Finding(tool, NOTE, "not on PATH nor in CUDA_HOME", "pip install 'fa4top[sass]'"))
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
        findings.append(Finding(tool, OK, f"{path}: {said.strip().splitlines()[-1] if said.strip() else '?'}"))
    return findings


def _targets(python: str) -> list[Finding]:
    """What can be launched here with this interpreter."""
    gpus = list_gpus()
    findings = []
    for name in ("fa4", "builtin"):
        description = describe(name)
        problem = None if gpus else "no GPU"
        if not problem:
            shape, knobs = description.default_shape, description.setting({})[0]
            reasons = [description.shape_problem(shape, gpu.arch, knobs) for gpu in gpus]
            problem = None if None in reasons else reasons[0]
        fix = "none needed for --target sim and replay"
        if not problem and (problem := interpreter_problem(description, python)):
            fix = f"pip install 'fa4top[{EXTRAS[name]}]' there, or --python PATH"
        findings.append(
            Finding(name, MISSING if problem else OK, problem or description.summary, fix if problem else "")
        )
    findings.append(Finding("sim", OK, describe("sim").summary))
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


def _fork(folder: Path) -> list[Finding]:
    """A checkout of flash-attention-fp4: what of its contract holds. Nothing of it is imported."""
    try:
        found = inspect_checkout(folder)
    except NoCheckout as error:
        return [Finding("checkout", MISSING, str(error), "--fa4-path DIR, the top folder of the checkout")]
    where = f"{found.package}{f', commit {found.commit}' if found.commit else ''}"
    findings = [Finding("checkout", OK, where)]
    for row in found.rows:
        fix = "" if row.holds else f"expected: {row.expected}. Send this table to fa4top's authors"
        findings.append(Finding(row.what, OK if row.holds else MISSING, row.found, fix))
    if found.split_default:
        text = f"fp8 split {found.split_default}/{4 if found.split_default == '3' else 2} by default"
        old = found.split_default != "3"
        findings.append(Finding("split", NOTE if old else OK, text, "set 3/4: 1/2 cost 24% on a GB300" if old else ""))
    if found.unknown_knobs:
        findings.append(Finding("knobs", NOTE, f"not in fa4top's table: {', '.join(found.unknown_knobs)}"))
    if found.absent_knobs:
        findings.append(Finding("knobs", NOTE, f"not in this checkout: {', '.join(found.absent_knobs)}"))
    return findings


def _launched(python: str, fa4_path: str) -> list[Finding]:
    """What holds when the checkout runs once, a small shape in its default mode; leaves when it can not run here."""
    words = ["--target", FORK, "--shape", SMALL, "--no-record", "--fa4-path", fa4_path, "--python", python]
    options: dict[str, Any] = order_options.main(words, standalone_mode=False)
    click.echo("launching the checkout once: it compiles for a while", err=True)
    order = make_order(config_or_fail(), options, wait_gpu_s=60.0, idle_limit_s=60.0)
    findings = [Finding("package", OK, order.why_target)]
    for row in conformance(order):
        fix = "" if row.holds else f"expected: {row.expected}"
        findings.append(Finding(row.what, OK if row.holds else MISSING, row.found, fix))
    return findings


@click.command()
@run_options
def order_options(**options: Any) -> dict[str, Any]:
    """The options of an order, with their defaults."""
    return options


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
    sections = {
        "GPU": _driver(),
        "worker interpreter": _interpreter(python),
        "SASS tools": _tools(python),
        "targets": _targets(python),
        "terminal": _terminal(),
        "folders": _folders(),
    }
    here = Path.cwd()
    if fa4_path is not None or (here / PACKAGE / KERNEL).is_file():
        sections["flash-attention-fp4"] = _fork(fa4_path or here)
    if target == FORK:
        sections["flash-attention-fp4, launched"] = _launched(interpreter, str(fa4_path or ""))
    if as_json:
        click.echo(
            json.dumps(
                {"fa4top": __version__, **{name: [asdict(f) for f in found] for name, found in sections.items()}},
                indent=2,
            )
        )
    else:
        click.echo(f"fa4top {__version__}, Python {sys.version.split()[0]}")
        marks = {OK: "ok     ", MISSING: "MISSING", NOTE: "note   "}
        for name, found in sections.items():
            click.echo(f"\n{name}")
            for finding in found:
                click.echo(f"  {marks[finding.state]} {finding.what:14} {finding.found}")
                if finding.fix:
                    click.echo(f"          {'':14} -> {finding.fix}")
    if target == FORK:
        held = all(finding.state != MISSING for finding in sections["flash-attention-fp4, launched"])
        raise SystemExit(exits.OK if held else exits.CHECK_FAILED)
    real = [finding for finding in sections["targets"] if finding.what != "sim"]
    raise SystemExit(exits.OK if any(finding.state == OK for finding in real) else exits.NOTHING_TO_RUN_ON)
