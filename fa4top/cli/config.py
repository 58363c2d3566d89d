"""`fa4top config`: the config file, themes and keys."""

from __future__ import annotations

import json

import click
from msgspec.structs import asdict

from fa4top.cli.fail import config_or_fail
from fa4top.session.config import HELP, example
from fa4top.session.paths import config_file, user_themes


@click.command("config", epilog='Example:  fa4top config --example > "$(fa4top config --path)"')
@click.option("--path", "show_path", is_flag=True, help="Print the file's path and nothing else.")
@click.option("--example", "show_example", is_flag=True, help="Print a file with every key at its default.")
@click.option("--themes", "show_themes", is_flag=True, help="List the themes.")
@click.option("--keys", "show_keys", is_flag=True, help="List action ids and their keys.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def command(show_path: bool, show_example: bool, show_themes: bool, show_keys: bool, as_json: bool) -> None:
    """Show the settings in force: command line over FA4TOP_* variables over the file over defaults."""
    if show_path:
        click.echo(config_file())
    elif show_example:
        click.echo(example())
    elif show_themes:
        from fa4top.ui.themes import load_themes

        for theme in load_themes():
            click.echo(f"{theme.name:20} {theme.source}")
        click.echo(f"your own: TOML files in {user_themes()}")
    elif show_keys:
        from fa4top.ui.actions import ACTIONS

        chosen = config_or_fail().keys
        for action in ACTIONS:
            click.echo(f"{action.id:16} {chosen.get(action.id, action.keys):16} {action.description}")
    elif as_json:
        click.echo(json.dumps(asdict(config_or_fail()), indent=2))
    else:
        path = config_file()
        click.echo(f"{path}{'' if path.exists() else ' (not there yet; fa4top config --example shows one)'}")
        for name, value in asdict(config_or_fail()).items():
            click.echo(f"  {name:16} {value!s:20} {HELP[name]}")
