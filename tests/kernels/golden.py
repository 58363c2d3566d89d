"""The machine code of the builtin kernel as it was when it was last measured: one hash a setting.

`python -m tests.kernels.golden` writes tests/data/golden_code.json anew, for a change that means to change the code.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import struct
from dataclasses import replace

from fa4top.targets.builtin import build
from fa4top.targets.builtin.description import DESCRIPTION
from fa4top.targets.cuda.compile import Cubin
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "data" / "golden_code.json"
SETTINGS: list[dict[str, str]] = [
    {"pv_mode": "bf16"},
    {"pv_mode": "fp8"},
    {"pv_mode": "fp8", "fp8_scale": "multiply"},
    {"p_chunks": "1"},
    {"p_chunks": "2", "p_split": "1/2"},
    {"kv_stages": "2"},
    {"exp2_emulation": "1/4"},
    {"s_handover": "early"},
    {"tile_order": "heads"},
    {"lost_signal": "on"},
]
CASES = [
    (setting, causal, trace)
    for setting, causal, trace in itertools.product(range(len(SETTINGS)), (False, True), (0, 1, 2))
    if trace < 2 or setting < 2  # detail probes stand in softmax alone
]


def name_of(setting: int, causal: bool, trace: int) -> str:
    """A case in words."""
    knobs = " ".join(f"{knob}={value}" for knob, value in SETTINGS[setting].items())
    return f"{knobs}{' causal' if causal else ''} trace={trace}"


def built(setting: int, causal: bool, trace: int) -> Cubin:
    """Compile a case."""
    knobs, problems = DESCRIPTION.setting(SETTINGS[setting])
    assert not problems
    return build.build(replace(DESCRIPTION.default_shape, causal=causal), knobs, trace)


def code_hash(cubin: bytes, section: str = ".text.attention") -> str:
    """SHA-256 of a section's bytes (64-bit ELF)."""
    table_at, size, count, names_index = (*struct.unpack_from("<Q", cubin, 40), *struct.unpack_from("<3H", cubin, 58))
    headers = [struct.unpack_from("<IIQQQQ", cubin, table_at + index * size) for index in range(count)]
    names_at = headers[names_index][4]
    for name, _, _, _, offset, length in headers:
        start = names_at + name
        if cubin[start : cubin.index(b"\0", start)].decode() == section:
            return hashlib.sha256(cubin[offset : offset + length]).hexdigest()
    raise AssertionError(f"no section {section}")


def main() -> None:
    """Write the hashes of all cases."""
    found = {name_of(*case): built(*case) for case in CASES}
    compilers = {cubin.compiler for cubin in found.values()}
    hashes = {name: code_hash(cubin.data) for name, cubin in found.items()}
    GOLDEN.write_text(json.dumps({"compiler": compilers.pop(), "code": hashes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
