"""The worker's job "sass": compile one setting for an architecture, no GPU, and leave the cubin in a file."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

from fa4top.records import Shape
from fa4top.targets.launcher import TargetError


def run_compile(order: dict[str, Any]) -> int:
    """Write OUT.cubin, OUT.ptx where there is one, and OUT.json: versions, or the reason why not."""
    out = Path(order["out"])
    answer: dict[str, Any] = {}
    try:
        cubin, ptx, answer["versions"] = _compile(
            order["target"], Shape(**order["shape"]), order["arch"], order["knobs"], order["probe_set"]
        )
        out.with_suffix(".cubin").write_bytes(cubin)
        if ptx:
            out.with_suffix(".ptx").write_text(ptx)
    except TargetError as error:
        answer = {"error": error.text, "hint": error.hint}
    except Exception as error:
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0], "hint": "the log below has more"}
    out.with_suffix(".json").write_text(json.dumps(answer))
    return 0


def _compile(
    target: str, shape: Shape, arch: str, knobs: dict[str, str], probe_set: str
) -> tuple[bytes, str, dict[str, str]]:
    if target == "fa4":
        from fa4top.targets.fa4.compile_only import compile_only

        made = compile_only(shape, arch, knobs, probe_set)
        return made.cubin, made.ptx, made.versions
    if target == "builtin":
        from fa4top.targets.builtin import build

        cubin = build.build(shape, knobs, {"": 0, "coarse": 1, "detail": 2}[probe_set])
        return cubin.data, "", {"compiler": cubin.compiler}
    raise TargetError(
        "no kernel",
        f"target {target} can not be compiled without its GPU",
        "dump its cubin (CUTE_DSL_KEEP_CUBIN=1) and give the file: fa4top sass FILE.cubin",
    )
