"""Times as people write them."""

from __future__ import annotations

import re

from fa4top.cli import exits
from fa4top.cli.choose import fail


def parse_budget(text: str) -> float:
    """``30s``, ``2m`` or ``45`` as seconds."""
    match = re.fullmatch(r"\s*([\d.]+)\s*(s|m|min)?\s*", text)
    try:
        seconds = float(match[1]) * (60.0 if match[2] in ("m", "min") else 1.0) if match else 0.0
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        fail(f"--budget {text}: write a time, for example 30s or 2m", exits.USAGE)
    return seconds
