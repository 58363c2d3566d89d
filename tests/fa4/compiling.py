"""One kernel compiled in a fresh process: the DSL and flash-attn-4 read the architecture when they are imported."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "compile_one.py"


@cache
def compiled(
    arch: str, probe_set: str, causal: bool = False, shape: str = "", dtype: str = "bf16", knobs: str = "{}"
) -> dict[str, Any]:
    """PTX, SASS, resources, probe counts."""
    words = [arch, probe_set, "1" if causal else "0", shape, dtype, knobs]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
