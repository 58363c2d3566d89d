"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from fa4top.orders.jobs import COLD, WARM
from fa4top.orders.shapes import DTYPES

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options that say what is run, and where, at their defaults: every command that starts an engine has these."""

    target: str = ""
    source_path: str = ""
    gpu: str = ""
    shape: str = ""
    dtype: str = ""
    causal: bool | None = None
    settings: tuple[str, ...] = ()
    seed: int = 0
    interpreter: str = ""
    detail: bool = False
    inflight: bool = False
    probe_set: str = ""
    record_folder: str = ""
    no_record: bool = False
    unsafe: bool = False
    sim_fault: str = ""
    idle_limit: float | None = None
    lock_clock: int = 0
    wait_gpu: float = 0.0


_RUN_OPTIONS = (
    click.option(
        "--target", default="", metavar="NAME", help="A target's name (fa4top knobs), or auto: the best here."
    ),
    click.option(
        "--fa4-path",
        "source_path",
        default="",
        metavar="DIR",
        help="A checkout of flash-attention-fp4; means --target fa4-fork.",
    ),
    click.option("--gpu", default="", metavar="GPU", help="NVML index, UUID or the start of one."),
    click.option(
        "--shape",
        default="",
        metavar="SHAPE",
        help="b1,s8192,h24,d128; also sq, sk, hk (kv heads), dv; or a published one: b1-s32768-h24.",
    ),
    click.option(
        "--dtype",
        default="",
        type=click.Choice(["", *DTYPES]),
        metavar="DTYPE",
        help="bf16, fp16, or fp8 on Blackwell.",
    ),
    click.option("--causal/--no-causal", default=None, help="Causal mask, aligned at the end."),
    click.option("--set", "settings", multiple=True, metavar="KNOB=VALUE", help="Set a knob; may be repeated."),
    click.option("--seed", default=0, help="Seed of the inputs."),
    click.option(
        "--python",
        "interpreter",
        default="",
        metavar="PATH",
        help="Interpreter that has the target's packages; remembered.",
    ),
    click.option("--detail", is_flag=True, help="Probes inside the compute stream too: proportions only."),
    click.option("--inflight", is_flag=True, help="Events in host memory that can be read while the kernel runs."),
    click.option("--probe-set", default="", metavar="NAME", help="Which probes are compiled in (fa4top knobs)."),
    click.option("--record", "record_folder", default="", metavar="DIR", help="Record the session under DIR."),
    click.option("--no-record", is_flag=True, help="Keep nothing on disk after the end."),
    click.option("--unsafe", is_flag=True, help="Launch settings that are known to be dangerous; marks the session."),
    click.option("--sim-fault", default="", metavar="LIST", help="Faults of the simulated device, by name."),
    click.option(
        "--idle-limit",
        default=None,
        type=float,
        metavar="MIN",
        help="Minutes that the engine goes on with nobody watching.",
    ),
    click.option(
        "--lock-clock",
        default=0,
        type=click.IntRange(0, 5000),
        metavar="MHZ",
        help="Ask the driver to lock the SM clock while fa4top runs (usually needs root); it is released at the end.",
    ),
    click.option("--wait-gpu", default=0.0, metavar="S", help="Wait up to S seconds when another fa4top has the GPU."),
)


def run_options(function: F) -> F:
    """All options that say what is run, and where."""
    for option in reversed(_RUN_OPTIONS):
        function = option(function)
    return function


l2_option = click.option(
    "--l2",
    default=COLD,
    type=click.Choice([COLD, WARM]),
    help="L2 before each timed launch: overwritten, or as the launch before left it.",
)

_VIEW_OPTIONS = (
    click.option("--theme", default="", metavar="NAME", help="Colour theme (fa4top config --themes)."),
    click.option("--ascii/--no-ascii", "ascii_only", default=None, help="Plain ASCII graphs."),
    click.option("--mouse/--no-mouse", default=None, help="Listen to the mouse."),
    click.option("--hz", default=0.0, metavar="N", help="Redraws a second (default 4, over SSH 2)."),
)


def view_options(function: F) -> F:
    """Options of the screens."""
    for option in reversed(_VIEW_OPTIONS):
        function = option(function)
    return function
