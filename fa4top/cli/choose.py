"""From options to an order: whether target, shape, setting and place fit together, and where the session is kept."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from fa4top.cli.fail import fail, usage
from fa4top.cli.options import RunOptions
from fa4top.cli.place import choose_place
from fa4top.orders import exits
from fa4top.orders.order import Order
from fa4top.orders.shapes import parse_shape
from fa4top.orders.typed import settings
from fa4top.records import Shape
from fa4top.session.config import Config, remember
from fa4top.session.paths import RuntimeFolderError, new_session_id, runtime_folder, sessions_folder
from fa4top.targets.base import Described, Description
from fa4top.targets.catalog import TARGETS
from fa4top.targets.legal import problems_of


def python_of(config: Config, options: RunOptions) -> str:
    """The interpreter of the workers."""
    return options.interpreter or config.python or sys.executable


def shape_of(description: Description, options: RunOptions) -> Shape:
    """The problem that the options mean; leaves with a sentence when it can not be read."""
    with usage():
        shape = parse_shape(options.shape, description.default_shape)
    if options.dtype:
        shape = replace(shape, dtype=options.dtype)
    return shape if options.causal is None else replace(shape, causal=options.causal)


def make_order(config: Config, options: RunOptions, *, wait_gpu_s: float = 0.0, idle_limit_s: float = 5.0) -> Order:
    """An order from the common options; leaves with a sentence when something does not fit.

    Nothing is compiled, and no worker started, for a combination that can not run.
    """
    python = python_of(config, options)
    folder = options.source_path
    target = options.target or ("" if folder else config.target)
    place = choose_place(target, options.gpu or config.gpu, python, folder)
    description = place.description
    with usage():
        chosen = settings(options.settings, "--set")
    knobs, problems = description.setting(chosen)
    if problems:
        fail("; ".join(problems), exits.USAGE)
    device, shape = place.device(knobs), shape_of(description, options)
    knobs, problems = problems_of(description.name, shape, device.arch, knobs, options.unsafe)
    problems = [*_unknown_faults(options), *(place.sources.problems(knobs) if place.sources else []), *problems]
    if problems:
        fail("; ".join(problems), exits.USAGE)
    if options.interpreter and options.interpreter != config.python:
        try:
            remember("python", str(Path(options.interpreter).absolute()))
        except OSError as error:
            click.echo(f"fa4top: could not remember --python: {error}", err=True)
    order = new_order(config, options, description, device, place.why, wait_gpu_s, idle_limit_s)
    notices = [place.why, *(description.notes(shape, device.arch, knobs) if description.notes else [])]
    notices += place.sources.notices if place.sources else ()
    return replace(
        order,
        shape=shape,
        knobs=knobs,
        simulated=place.simulated,
        source_path=place.sources.path if place.sources else "",
        notices=[*notices, *order.notices[1:]],
    )


def _unknown_faults(options: RunOptions) -> list[str]:
    known = {name for description in TARGETS.values() for name in description.faults}
    unknown = [name for name in options.sim_fault.split(",") if name and name not in known]
    return [f"no simulated fault {', '.join(unknown)}; there are: {', '.join(sorted(known))}"] if unknown else []


def new_order(
    config: Config,
    options: RunOptions,
    description: Description,
    device: Described,
    why: str,
    wait_gpu_s: float = 0.0,
    idle_limit_s: float = 5.0,
) -> Order:
    """An order with a session of its own, at the target's default shape and setting; nothing is judged."""
    session_id = new_session_id()
    record = config.record and not options.no_record
    notices = [why]
    if options.detail:
        notices.append("detail probes: spans are inflated, read them as proportions only")
    if options.unsafe:
        notices.append("--unsafe: settings that are known to be dangerous are allowed in this session")
    return Order(
        session_id=session_id,
        folder=str(_folder_for(config, options, record) / session_id),
        record=record,
        target=description.name,
        why_target=why,
        shape=description.default_shape,
        knobs=description.defaults(),
        seed=options.seed,
        python=python_of(config, options),
        gpu_uuid=device.uuid,
        gpu_name=device.name,
        arch=device.arch,
        simulated=False,
        argv=_public_argv(),
        unsafe=options.unsafe,
        detail=options.detail,
        inflight=options.inflight,
        probe_set=options.probe_set,
        sim_fault=options.sim_fault,
        wait_gpu_s=options.wait_gpu or wait_gpu_s,
        lock_mhz=options.lock_clock,
        idle_limit_s=options.idle_limit * 60.0 if options.idle_limit is not None else idle_limit_s,
        notices=notices,
    )


def _folder_for(config: Config, options: RunOptions, record: bool) -> Path:
    try:
        runtime = runtime_folder()
    except RuntimeFolderError as error:
        fail(str(error), exits.FAULT)
    if not record:
        return runtime
    if options.record_folder:
        return Path(options.record_folder).absolute()
    return Path(config.sessions).expanduser() if config.sessions else sessions_folder()


def _public_argv() -> list[str]:
    """The command line as it goes into the log: people share logs, so folders of their machine stay out."""
    return ["fa4top", *(Path(word).name if word.startswith(("/", "~", "./")) else word for word in sys.argv[1:])]
