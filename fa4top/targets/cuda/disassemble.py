"""cubins to SASS text by nvdisasm, wherever it is, with a cache."""

from __future__ import annotations

import subprocess
import tempfile

from fa4top.targets.cuda.compile import Cubin, keep, kept
from fa4top.targets.cuda.tools import find_tool
from fa4top.targets.launcher import TargetError

TIMEOUT_S = 60.0


def disassemble(cubin: Cubin) -> str:
    """What ``nvdisasm -c`` says.

    Raises:
        TargetError: there is no nvdisasm, or it refuses the file.
    """
    name = f"{cubin.key}.sass"
    if (text := kept(name)) is not None:
        return text.decode()
    tool = find_tool("nvdisasm")
    if tool is None:
        raise TargetError(
            "no disassembler",
            "nvdisasm is not here, so what was compiled can not be checked",
            "pip install nvidia-cuda-nvdisasm, or set CUDA_HOME",
        )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin.data)
        file.flush()
        done = subprocess.run([tool, "-c", file.name], capture_output=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise TargetError("no disassembler", f"{tool}: {words[:200]}", "use the nvdisasm of the newest CUDA 13")
    keep(name, done.stdout)
    return done.stdout.decode(errors="replace")
