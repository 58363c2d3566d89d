"""The process environment of an fa4 worker. Must run before flash_attn or cutlass is imported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import MutableMapping

# The package and the DSL key their compiled-kernel caches by source and arguments, not by what was injected: a traced
# kernel in a person's cache would later run in their production job and write through a dead address.
CACHES_OFF: dict[str, str] = {
    "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED": "0",
    "CUTE_DSL_NO_CACHE": "1",
    "CUTE_DSL_DISABLE_FILE_CACHING": "1",
}
CACHE_FOLDERS = ("FLASH_ATTENTION_CUTE_DSL_CACHE_DIR", "CUTE_DSL_CACHE_DIR")


def prepare(knobs: dict[str, str], private: str, environment: MutableMapping[str, str] = os.environ) -> None:
    """Switch the caches off, point what is left of them at a private folder, and set the package's own switches.

    Args:
        knobs: the full setting; names that start with FA_ are environment switches.
        private: an existing folder of this worker's own.
    """
    environment.update(CACHES_OFF)
    for name in CACHE_FOLDERS:
        environment[name] = private
    for name, value in knobs.items():
        if name.startswith("FA_"):
            environment[name] = value


def import_ahead(knobs: dict[str, str]) -> None:
    """What an fa4 worker imports, before it knows its shape and setting: most of the time that it takes to start."""
    prepare(knobs, tempfile.mkdtemp(prefix="fa4top-standby-"))
    import cupy  # noqa: F401
    import cutlass.cute  # noqa: F401
    import flash_attn.cute.interface  # noqa: F401
    import torch  # noqa: F401
