"""Leaving with a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from fa4top.orders import exits
from fa4top.session.config import Config, ConfigError, load_config


def fail(text: str, code: int) -> NoReturn:
    """Say why on stderr and leave."""
    click.echo(f"fa4top: {text}", err=True)
    raise SystemExit(code)


@contextmanager
def usage() -> Iterator[None]:
    """What is typed wrongly ends the command with a sentence: a ValueError's text."""
    try:
        yield
    except ValueError as error:
        fail(str(error), exits.USAGE)


def config_or_fail() -> Config:
    """The person's config."""
    try:
        return load_config()
    except ConfigError as error:
        fail(str(error), exits.USAGE)
