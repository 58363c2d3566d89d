"""`fa4top`: the live screens."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

from fa4top.cli.choose import make_order
from fa4top.cli.fail import config_or_fail
from fa4top.cli.options import RunOptions, run_options, view_options
from fa4top.cli.screens import show

HEADLESS_SECONDS = 10.0


@click.command("top", epilog="Example:  fa4top --target sim --set chip=b200")
@run_options
@view_options
def command(theme: str, ascii_only: bool | None, mouse: bool | None, hz: float, **options: Any) -> None:
    """Start a session and watch it. Without a terminal: print the compact form of `live` after 10 s."""
    config = config_or_fail()
    headless = not (sys.stdin.isatty() and sys.stdout.isatty())
    idle = 5.0 if headless else config.idle_limit_min * 60.0
    order = make_order(config, RunOptions(**options), wait_gpu_s=0.0 if headless else 86400.0, idle_limit_s=idle)
    if headless:
        from fa4top.cli.live import run_live

        raise SystemExit(run_live(order, HEADLESS_SECONDS, as_json=False))
    # a plan that can not go on is no reason to lose the screen: the person may choose another
    show(config, theme, ascii_only, mouse, hz, order=replace(order, stay=True))
