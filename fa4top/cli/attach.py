"""`fa4top attach [ID]`: back to a live session."""

from __future__ import annotations

from typing import Any

import click

from fa4top.cli.fail import config_or_fail, fail
from fa4top.cli.options import view_options
from fa4top.engine.client import EngineError, find_live
from fa4top.orders import exits


@click.command("attach", epilog="Example:  fa4top attach 20261129")
@click.argument("session", default="")
@view_options
def command(session: str, **view: Any) -> None:
    """Watch a session that was detached, or that another terminal watches too. Without SESSION: the latest."""
    try:
        live = find_live(session)
    except EngineError as error:
        fail(str(error), exits.NOTHING_TO_RUN_ON)
    from fa4top.cli.screens import show
    from fa4top.ui.feed import LiveSource

    source = LiveSource(live.session_id, live.log, None)
    show(
        config_or_fail(),
        view["theme"],
        view["ascii_only"],
        view["mouse"],
        view["hz"],
        source=source,
        session_id=live.session_id,
    )
