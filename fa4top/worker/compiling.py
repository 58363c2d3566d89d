"""The worker's job to compile: one setting for an architecture, no GPU; the cubin is left in a file."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

from fa4top.orders.commands import Compile
from fa4top.targets.catalog import describe
from fa4top.targets.launcher import Compiled, TargetError
from fa4top.targets.references import load


def run_compile(what: Compile) -> int:
    """Write OUT.cubin, OUT.ptx where there is one, and OUT.json: versions, or the reason why not."""
    out = Path(what.out)
    answer: dict[str, Any] = {}
    try:
        made = _compile(what)
        answer["versions"] = made.versions
        out.with_suffix(".cubin").write_bytes(made.cubin)
        if made.ptx:
            out.with_suffix(".ptx").write_text(made.ptx)
    except TargetError as error:
        answer = {"error": error.text, "hint": error.hint}
    except Exception as error:
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0], "hint": "the log below has more"}
    out.with_suffix(".json").write_text(json.dumps(answer))
    return 0


def _compile(what: Compile) -> Compiled:
    compile_only = describe(what.target).compile_only
    if not compile_only:
        raise TargetError(
            "no kernel",
            f"target {what.target} can not be compiled without its GPU",
            "dump its cubin (CUTE_DSL_KEEP_CUBIN=1) and give the file: fa4top sass FILE.cubin",
        )
    made: Compiled = load(compile_only)(what.shape, what.arch, what.knobs, what.probe_set)
    return made
