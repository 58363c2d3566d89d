"""Puts a checkout of the stand-in somewhere, with one of the three profiler versions."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.fork.sources import GEMM

STAND_IN = Path(__file__).parent / "standin"


def write_stand_in(top: Path, version: str = "v2") -> Path:
    """A checkout of the stand-in; returns its top folder. The buffers' writer comes along, so that a process elsewhere
    finds it."""
    shutil.copytree(STAND_IN, top, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    package = top / "flash_attn" / "cute"
    shutil.copy(package / f"profiler_{version}.py", package / "profiler.py")
    for path in package.glob("profiler_v*.py"):
        path.unlink()
    helpers = package / "blackwell_helpers.py"
    helpers.write_text(helpers.read_text().replace("mbar_ptr=None", f"mbar_ptr=None{GEMM[version]}"))
    tracing = package / "tracing.py"
    tracing.write_text(tracing.read_text().replace("from tests.fork.buffers", "from flash_attn.cute.buffers"))
    shutil.copy(Path(__file__).parent / "buffers.py", package / "buffers.py")
    return top
