"""What a worker's interpreter has, asked in a process of its own; nothing of it is imported here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from fa4top.targets.catalog import TARGETS

INSPECT = Path(__file__).resolve().parent.parent / "worker" / "probe_interpreter.py"
INSPECT_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Interpreter:
    """``modules``: where each lies, None where it is not there. ``error``: why it could not be asked."""

    python: str
    executable: str = ""
    version: str = ""
    modules: dict[str, str | None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    error: str = ""

    def missing(self, modules: Sequence[str]) -> list[str]:
        """Those of these modules that it lacks."""
        return [name for name in modules if not self.modules.get(name)]

    def problem(self, modules: Sequence[str]) -> str | None:
        """Why workers that need these modules can not run under it, in a sentence; None when they can."""
        if self.error:
            return self.error
        missing = self.missing(modules)
        return f"{self.python} lacks {', '.join(missing)}" if missing else None


@cache
def inspect(python: str) -> Interpreter:
    """Ask an interpreter for all that our targets need."""
    modules = sorted({name for target in TARGETS.values() for name in target.requires} | {"cupy"})
    distributions = sorted({name for target in TARGETS.values() for name in target.distributions})
    question = json.dumps({"modules": modules, "distributions": distributions})
    try:
        done = subprocess.run(
            [python, str(INSPECT), question], capture_output=True, timeout=INSPECT_TIMEOUT_S, text=True, check=False
        )
        found = json.loads(done.stdout)
        return Interpreter(python, found["executable"], found["python"], found["modules"], found["versions"])
    except FileNotFoundError:
        return Interpreter(python, error=f"{python} does not exist")
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        return Interpreter(python, error=f"{python} can not be asked: {type(error).__name__}")
