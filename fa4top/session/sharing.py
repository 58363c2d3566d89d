"""Records that can be shown to others: what a node, a person or a folder is called is taken out, numbers stay."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import Any

from fa4top.records import Envelope

# an absolute or home path of at least two parts; its last part stays
_PATH = re.compile(r"(?<![\w./])(?:~|(?:/[\w.+@-]+))(?:/[\w.+@-]+)*/([\w.+@-]+)")
_UUID = re.compile(r"\b(GPU|MIG)-[0-9a-f]{4,}(?:-[0-9a-f]{4,})+", re.IGNORECASE)
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")


def shareable_text(text: str) -> str:
    """Paths become their last part, GPU UUIDs a short hash (so that two GPUs stay two), addresses disappear."""
    text = _UUID.sub(lambda m: f"{m[1]}-{hashlib.sha256(m[0].encode()).hexdigest()[:8]}", text)
    text = _PATH.sub(r"…/\1", text)
    return _ADDRESS.sub("…", text)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return shareable_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{f.name: _clean(getattr(value, f.name)) for f in dataclasses.fields(value)})
    return value


def shareable(record: Envelope) -> Envelope:
    """The record without names of places."""
    return dataclasses.replace(record, body=_clean(record.body))
