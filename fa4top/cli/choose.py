"""From options to an order: which target, which GPU, which interpreter, and whether all that fits together."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from fa4top.cli import exits
from fa4top.engine.gpus import Gpu, GpuError, choose_gpu, list_gpus
from fa4top.engine.order import Order
from fa4top.session.config import Config, ConfigError, load_config, remember
from fa4top.session.paths import RuntimeFolderError, new_session_id, runtime_folder, sessions_folder
from fa4top.targets.base import Description, ShapeError, parse_shape
from fa4top.targets.catalog import UnknownTarget, describe
from fa4top.targets.fork.checkout import NoCheckout
from fa4top.targets.fork.description import NAME as FORK
from fa4top.targets.fork.environment import chosen_knobs, strangers
from fa4top.targets.fork.find import Found, find_fork, refusal
from fa4top.targets.fork.modes import SM103
from fa4top.targets.sim.chips import load_chip
from fa4top.targets.sim.description import FAULTS

INSPECT = Path(__file__).resolve().parent.parent / "worker" / "probe_interpreter.py"
INSPECT_TIMEOUT_S = 20.0


def fail(text: str, code: int) -> NoReturn:
    """Say why on stderr and leave."""
    click.echo(f"fa4top: {text}", err=True)
    raise SystemExit(code)


def config_or_fail() -> Config:
    """The person's config."""
    try:
        return load_config()
    except ConfigError as error:
        fail(str(error), exits.USAGE)


def inspect_interpreter(python: str) -> dict[str, Any]:
    """What an interpreter has; {'error': sentence} when it can not be asked."""
    try:
        done = subprocess.run(
            [python, str(INSPECT)], capture_output=True, timeout=INSPECT_TIMEOUT_S, text=True, check=False
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    except FileNotFoundError:
        return {"error": f"{python} does not exist"}
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return {"error": f"{python} can not be asked: {type(error).__name__}"}


def missing_modules(description: Description, found: dict[str, Any]) -> list[str]:
    """Modules that a target needs and an interpreter lacks."""
    if "error" in found:
        return [str(found["error"])]
    missing = []
    for name in description.requires:
        if name == "flash_attn.cute.interface":
            if not found.get(name):
                missing.append("flash-attn-4")
        elif not found["modules"].get(name):
            missing.append(name)
    return missing


def interpreter_problem(description: Description, python: str) -> str | None:
    """Why a target's workers can not run under this interpreter, in a sentence; None when they can."""
    found = inspect_interpreter(python)
    if "error" in found:
        return str(found["error"])
    missing = missing_modules(description, found)
    return f"{python} lacks {', '.join(missing)}" if missing else None


@dataclass(frozen=True)
class Place:
    """What was chosen, and the sentence that says why."""

    description: Description
    gpu: Gpu | None
    why: str
    fork: Found | None = None

    @property
    def simulated(self) -> bool:
        """Will nothing of it be measured?"""
        return self.description.simulated or (self.fork is not None and self.fork.stand_in)


def choose_fork(gpu: str, python: str, fa4_path: str) -> Place:
    """The checkout of flash-attention-fp4, and the GPU; leaves with what was expected and what was found."""
    description = describe(FORK)
    installed = str(inspect_interpreter(python).get("flash_attn.cute.interface") or "")
    try:
        fork = find_fork(fa4_path, Path.cwd(), installed)
    except NoCheckout as error:
        fail(f"target {FORK}: {error}", exits.NOTHING_TO_RUN_ON)
    if message := refusal(fork.checkout):
        fail(f"target {FORK}: {message}", exits.NOTHING_TO_RUN_ON)
    # its kernels are timed on a CuPy stream; the stand-in has a device of its own
    needs = description if fork.stand_in else replace(description, requires=(*description.requires, "cupy"))
    if problem := interpreter_problem(needs, python):
        fail(
            f"target {FORK}: {problem}; --python PATH of the checkout's environment (pip install cupy-cuda13x there)",
            exits.NOTHING_TO_RUN_ON,
        )
    why = f"target {FORK}: {fork.sentence()}"
    if fork.stand_in:
        return Place(description, None, f"{why}: a stand-in without a GPU, everything here is simulated", fork)
    try:
        return Place(description, choose_gpu(gpu, list_gpus()), why, fork)
    except GpuError as error:
        fail(f"target {FORK} needs a GPU: {error}. Try --target sim", exits.NOTHING_TO_RUN_ON)


def choose_place(target: str, gpu: str, python: str, fa4_path: str = "") -> Place:
    """The target and the GPU. `auto` takes fa4 where a GPU with probes and the package are there, else sim."""
    if target == FORK or (fa4_path and target in ("", "auto")):
        return choose_fork(gpu, python, fa4_path)
    if fa4_path:
        fail(f"--fa4-path is for --target {FORK}, not {target}", exits.USAGE)
    if target not in ("", "auto"):
        try:
            description = describe(target)
        except UnknownTarget as error:
            fail(str(error), exits.USAGE)
        if description.simulated:
            return Place(description, None, f"target {target}, as asked")
        try:
            chosen = choose_gpu(gpu, list_gpus())
        except GpuError as error:
            fail(f"target {target} needs a GPU: {error}. Try --target sim", exits.NOTHING_TO_RUN_ON)
        if problem := interpreter_problem(description, python):
            fail(
                f"target {target}: {problem}; install it there, or give --python PATH (fa4top doctor shows more)",
                exits.NOTHING_TO_RUN_ON,
            )
        return Place(description, chosen, f"target {target} on {chosen.name}, as asked")
    gpus = list_gpus()
    if not gpus:
        return Place(describe("sim"), None, "target sim, because no NVIDIA GPU answers here")
    fa4 = describe("fa4")
    try:
        chosen = choose_gpu(gpu, gpus)
    except GpuError as error:
        fail(str(error), exits.NOTHING_TO_RUN_ON)
    if fa4.shape_problem(fa4.default_shape, chosen.arch, {}):
        return Place(
            describe("sim"), None, f"target sim, because there are no probes for {chosen.name} ({chosen.arch})"
        )
    if problem := interpreter_problem(fa4, python):
        return Place(describe("sim"), None, f"target sim, because {problem}; --python PATH names another interpreter")
    return Place(fa4, chosen, f"target fa4, because {chosen.name} and flash-attn-4 are here")


def unread_knobs(fork: Found, knobs: dict[str, str]) -> list[str]:
    """Knobs that are set and that this checkout does not read: they would do nothing, without a word."""
    unread = [name for name in chosen_knobs(knobs) if name in fork.checkout.absent_knobs]
    return [f"this checkout does not read {', '.join(unread)}"] if unread else []


def parse_settings(settings: Sequence[str]) -> dict[str, str]:
    """KNOB=VALUE pairs."""
    chosen: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name or not value:
            fail(f"--set {setting}: write KNOB=VALUE, for example --set p_split=1/2", exits.USAGE)
        chosen[name] = value
    return chosen


def make_order(config: Config, options: dict[str, Any], *, wait_gpu_s: float, idle_limit_s: float) -> Order:
    """An order from the common options; leaves with a sentence when something does not fit.

    Nothing is compiled, and no worker started, for a combination that can not run.
    """
    python = options["interpreter"] or config.python or sys.executable
    fa4_path = options["fa4_path"]
    place = choose_place(
        options["target"] or ("" if fa4_path else config.target), options["gpu"] or config.gpu, python, fa4_path
    )
    description = place.description
    knobs, problems = description.setting(parse_settings(options["settings"]))
    try:
        shape = parse_shape(options["shape"], description.default_shape)
    except ShapeError as error:
        fail(str(error), exits.USAGE)
    if options["dtype"]:
        shape = replace(shape, dtype=options["dtype"])
    if options["causal"] is not None:
        shape = replace(shape, causal=options["causal"])
    arch, name, uuid = "", "", ""
    if place.gpu is not None:
        arch, name, uuid = place.gpu.arch, place.gpu.name, place.gpu.uuid
    elif place.fork is not None:
        arch, name, uuid = SM103, "stand-in", "SIM-stand-in"
    elif not problems:
        chip = load_chip(knobs["chip"])
        arch, name, uuid = chip.arch, chip.name, f"SIM-{chip.key}"
    if not problems and (message := description.shape_problem(shape, arch, knobs)):
        problems.append(message)
    if unknown := [f for f in options["sim_fault"].split(",") if f and f not in FAULTS]:
        problems.append(f"no simulated fault {', '.join(unknown)}; there are: {', '.join(FAULTS)}")
    if place.fork is not None:
        problems += unread_knobs(place.fork, knobs)
    if not problems and not options["unsafe"] and (message := description.danger(shape, arch, knobs)):
        problems.append(message + "; --unsafe runs it all the same")
    if problems:
        fail("; ".join(problems), exits.USAGE)
    if options["interpreter"] and options["interpreter"] != config.python:
        try:
            remember("python", str(Path(options["interpreter"]).absolute()))
        except OSError as error:
            click.echo(f"fa4top: could not remember --python: {error}", err=True)
    return _order(config, options, place, wait_gpu_s, idle_limit_s, python, shape, knobs, (arch, name, uuid))


def _order(
    config: Config,
    options: dict[str, Any],
    place: Place,
    wait_gpu_s: float,
    idle_limit_s: float,
    python: str,
    shape: Any,
    knobs: dict[str, str],
    device: tuple[str, str, str],
) -> Order:
    session_id = new_session_id()
    record = config.record and not options["no_record"]
    try:
        runtime = runtime_folder()
    except RuntimeFolderError as error:
        fail(str(error), exits.FAULT)
    if not record:
        base = runtime
    elif options["record_folder"]:
        base = Path(options["record_folder"]).absolute()
    else:
        base = Path(config.sessions).expanduser() if config.sessions else sessions_folder()
    arch, name, uuid = device
    notices = [place.why]
    if place.description.notes is not None:
        notices += place.description.notes(shape, arch, knobs)
    if place.fork is not None and place.fork.checkout.split_default not in ("", "3"):
        notices.append("this checkout hands over 1/2 of fp8's P by default; 3/4 was 24% faster on a GB300")
    if place.fork is not None and (exported := strangers()):
        words = " ".join(f"--set {name}={value}" for name, value in exported.items())
        notices.append(f"FA4_* variables of your shell are not taken over; to use them: {words}")
    if options["detail"]:
        notices.append("detail probes: spans are inflated, read them as proportions only")
    if options["unsafe"]:
        notices.append("--unsafe: settings that are known to be dangerous are allowed in this session")
    return Order(
        session_id=session_id,
        folder=str(base / session_id),
        record=record,
        target=place.description.name,
        why_target=place.why,
        shape=shape,
        knobs=knobs,
        seed=options["seed"],
        python=python,
        gpu_uuid=uuid,
        gpu_name=name,
        arch=arch,
        simulated=place.simulated,
        argv=_public_argv(),
        unsafe=options["unsafe"],
        detail=options["detail"],
        inflight=options["inflight"],
        probe_set=options["probe_set"],
        sim_fault=options["sim_fault"],
        wait_gpu_s=options["wait_gpu"] or wait_gpu_s,
        lock_mhz=options["lock_clock"],
        fa4_path=place.fork.path if place.fork else "",
        idle_limit_s=options["idle_limit"] * 60.0 if options["idle_limit"] is not None else idle_limit_s,
        notices=notices,
    )


def _public_argv() -> list[str]:
    """The command line as it goes into the log: people share logs, so folders of their machine stay out."""
    return ["fa4top", *(Path(word).name if word.startswith(("/", "~", "./")) else word for word in sys.argv[1:])]
