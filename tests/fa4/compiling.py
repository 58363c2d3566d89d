"""One kernel compiled in a process of its own that begins as a copy of this one: it need not import torch anew.

The DSL and flash-attn-4 are imported in the copy: they read the architecture and their switches then.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.fa4.compile_one import main
from tests.forked import in_copy


@cache
def compiled(
    arch: str, probe_set: str, causal: bool = False, shape: str = "", dtype: str = "bf16", knobs: str = "{}"
) -> dict[str, Any]:
    """PTX, SASS, resources, probe counts."""
    import torch

    assert torch.__version__
    code, out, words = in_copy(lambda: main(arch, probe_set, causal, shape, dtype, json.loads(knobs)))
    assert code == 0, words[-3000:]
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result
