"""cubins to SASS text by nvdisasm, wherever it is, with a cache."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fa4top.targets.cuda.compile import Cubin, keep, kept
from fa4top.targets.cuda.tools import disassembly


def disassemble(cubin: Cubin) -> str:
    """What ``nvdisasm -c`` says.

    Raises:
        TargetError: there is no nvdisasm, or it refuses the file.
    """
    name = f"{cubin.key}.sass"
    if (text := kept(name)) is not None:
        return text.decode()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin.data)
        file.flush()
        listing = disassembly(Path(file.name))
    keep(name, listing.encode())
    return listing
