"""`fa4top sessions`: live and recorded sessions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from fa4top.orders.shapes import format_shape
from fa4top.records import Header, Plan
from fa4top.session.paths import LOG_NAME, live_sessions, recorded_sessions
from fa4top.session.reading import LogError, read_log

HEAD_RECORDS = 40


def _describe(folder: Path) -> dict[str, Any]:
    """First plan and size of a recorded session; reads only the log's head."""
    facts: dict[str, Any] = {"folder": str(folder), "bytes": (folder / LOG_NAME).stat().st_size}
    try:
        for number, record in enumerate(read_log(folder)):
            if isinstance(record.body, Header):
                facts |= {"started_wall_ns": record.wall_ns, "simulated": record.body.simulated}
            elif isinstance(record.body, Plan):
                plan = record.body
                facts |= {"target": plan.target, "device": plan.device, "shape": format_shape(plan.shape)}
                break
            if number > HEAD_RECORDS:
                break
    except LogError as error:
        facts["error"] = str(error)
    return facts


@click.command("sessions", epilog="Examples:  fa4top sessions;  fa4top attach 2026;  fa4top replay FOLDER")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def command(as_json: bool) -> None:
    """List live sessions (to attach to) and recorded ones (to replay)."""
    live: list[dict[str, Any]] = [
        {
            "session": s.session_id,
            "pid": s.pid,
            "target": s.target,
            "folder": s.folder,
            "started_wall_ns": s.started_wall_ns,
        }
        for s in live_sessions()
    ]
    alive = {entry["folder"] for entry in live}
    recorded = [_describe(folder) for folder in recorded_sessions() if str(folder) not in alive]
    if as_json:
        click.echo(json.dumps({"live": live, "recorded": recorded}, indent=2))
        return
    for entry in live:
        since = time.strftime("%H:%M:%S", time.localtime(entry["started_wall_ns"] / 1e9))
        click.echo(f"live      {entry['session']}  {entry['target']:5} since {since}  fa4top attach {entry['session']}")
    for facts in recorded:
        name = Path(facts["folder"]).name
        if "error" in facts:
            click.echo(f"damaged   {name}  {facts['error']}")
            continue
        label = "SIMULATED" if facts.get("simulated") else facts.get("device", "?")
        size = facts["bytes"] / 2**20
        click.echo(
            f"recorded  {name}  {facts.get('target', '?'):5} {facts.get('shape', ''):20} {label}  {size:.1f} MiB  "
            f"fa4top replay {facts['folder']}"
        )
    if not live and not recorded:
        click.echo("no sessions yet; `fa4top` starts one")
