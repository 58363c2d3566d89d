"""Run the screens and say what is left to say when they are gone."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from fa4top.cli.fail import fail
from fa4top.orders import exits
from fa4top.session.config import Config


def show(config: Config, theme: str, ascii_only: bool | None, mouse: bool | None, hz: float, **what: Any) -> NoReturn:
    """Run the app; ``what`` is its order or its source. Leaves with the app's exit code."""
    from fa4top.ui.actions import KeyMapError, key_map
    from fa4top.ui.app import Fa4topApp
    from fa4top.ui.themes import ThemeError, load_themes

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail("the screens need a terminal; fa4top live prints numbers without one", exits.USAGE)
    try:
        key_map(config.keys)
        names = [entry.name for entry in load_themes()]
    except (KeyMapError, ThemeError) as error:
        fail(str(error), exits.USAGE)
    chosen = theme or config.theme
    if chosen not in names:
        fail(f"no theme {chosen}; there are: {', '.join(names)}", exits.USAGE)
    app = Fa4topApp(
        theme_name=chosen,
        ascii_only=config.ascii if ascii_only is None else ascii_only,
        hz=hz or config.refresh_hz,
        keys=config.keys,
        idle_limit_min=config.idle_limit_min,
        **what,
    )
    said = app.run(mouse=config.mouse if mouse is None else mouse)
    if said:
        click.echo(said)
    raise SystemExit(app.return_code or 0)
