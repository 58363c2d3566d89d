"""``module:name``: what a description names without importing it."""

from __future__ import annotations

import importlib
from typing import Any


def load(reference: str) -> Any:
    """The object that ``module:name`` means.

    Raises:
        ImportError: there is no such module. AttributeError: it has no such name.
    """
    module, name = reference.split(":")
    return getattr(importlib.import_module(module), name)
