"""NVIDIA's command-line tools, wherever they are: PATH, CUDA_HOME, the usual folder, or a wheel."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from fa4top.targets.launcher import TargetError

TIMEOUT_S = 120.0
ELF_CUDA = 190  # e_machine of a cubin
WHEELS = {"nvdisasm": "nvidia-cuda-nvdisasm", "cuobjdump": "nvidia-cuda-cuobjdump", "ptxas": "nvidia-cuda-nvcc"}


@cache
def find_tools(name: str, beside: str = "") -> tuple[str, ...]:
    """Every place where a tool is, the best first.

    Args:
        beside: a folder to look into first (another interpreter's wheels).
    """
    found = [str(Path(beside) / name)] if beside else []
    if on_path := shutil.which(name):
        found.append(on_path)
    places = [Path(os.environ[key]) / "bin" for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    places.append(Path("/usr/local/cuda/bin"))
    wheel = importlib.util.find_spec("nvidia")
    for root in (wheel.submodule_search_locations or []) if wheel else []:
        places += [Path(root) / "cu13" / "bin", Path(root) / f"cuda_{name}" / "bin", Path(root) / "cuda_nvcc" / "bin"]
    found += [str(place / name) for place in places]
    return tuple(dict.fromkeys(path for path in found if Path(path).is_file()))


def find_tool(name: str, beside: str = "") -> str | None:
    """A tool's path; None where it is not here."""
    return next(iter(find_tools(name, beside)), None)


def need_tool(name: str, beside: str = "") -> str:
    """The tool's path.

    Raises:
        TargetError: it is not here; the text says how to get it.
    """
    if (found := find_tool(name, beside)) is None:
        raise TargetError(
            f"no {name}",
            f"{name} is neither on PATH nor in CUDA_HOME nor in a wheel",
            f"pip install 'fa4top[sass]' (or {WHEELS[name]}), or set CUDA_HOME",
        )
    return found


def version_of(tool: str) -> str:
    """What the tool says of its version, short."""
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
    match = re.search(r"release ([\d.]+), V([\d.]+)", said)
    return match[2] if match else "?"


def run_tool(arguments: list[str]) -> str:
    """Standard output of a tool.

    Raises:
        TargetError: it failed; the text has its words.
    """
    done = subprocess.run(arguments, capture_output=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        name = Path(arguments[0]).name
        raise TargetError(f"{name} failed", f"{name}: {words[:300]}", "another version of the tool may read it")
    return done.stdout.decode(errors="replace")


def disassembly(cubin: Path, beside: str = "") -> str:
    """``nvdisasm -c`` of a cubin or an object file; of a host object, of the cubins in it.

    Raises:
        TargetError: no tool, or it refuses.
    """
    return run_tool([need_tool("nvdisasm", beside), "-c", str(cubin)])


def device_code(path: Path, folder: Path, beside: str = "") -> list[Path]:
    """The cubins of an ELF file: itself, or, where it is an object or a program of the host, those inside it.

    Args:
        folder: where they are put.

    Raises:
        TargetError: there are none, or cuobjdump is missing.
    """
    with path.open("rb") as file:
        head = file.read(20)
    if int.from_bytes(head[18:20], "little") == ELF_CUDA:
        return [path]
    tool = need_tool("cuobjdump", beside)
    done = subprocess.run(
        [tool, "--extract-elf", "all", str(path.resolve())],
        cwd=folder,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    found = sorted(folder.glob("*.cubin"), key=lambda made: -made.stat().st_size)
    if not found:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise TargetError("no device code", f"{path.name} holds no CUDA code: {words[:200]}", "")
    return found


def resources(cubin: Path, beside: str = "") -> dict[str, tuple[int, int]]:
    """(registers, stack bytes) by kernel; {} without cuobjdump."""
    tool = find_tool("cuobjdump", beside)
    if tool is None:
        return {}
    text = run_tool([tool, "--dump-resource-usage", str(cubin)])
    return {
        match[1]: (int(match[2]), int(match[3]))
        for match in re.finditer(r"Function (\S+?):\s+REG:(\d+) STACK:(\d+)", text)
    }


def assemble(ptx: str, arch: str, beside: str = "") -> tuple[bytes, str]:
    """PTX to a cubin by ptxas, and its version; trailing NULs, which the DSL leaves, are taken off.

    Args:
        arch: sm_103a and the like; '' takes the PTX's own target.

    Raises:
        TargetError: no ptxas, or it refuses.
    """
    clean = ptx.replace("\0", "")
    target = arch or (match[1] if (match := re.search(r"\.target\s+(sm_\w+)", clean)) else "sm_90a")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        source.write_text(clean)
        need_tool("ptxas", beside)
        every = find_tools("ptxas", beside)
        for tool in every:
            try:
                run_tool([tool, f"-arch={target}", "-O3", str(source), "-o", str(made)])
                return made.read_bytes(), version_of(tool)
            except TargetError:
                if tool == every[-1]:
                    raise  # an older one on PATH may not know the PTX's version
        raise TargetError("no ptxas", "no ptxas took the PTX", f"pip install {WHEELS['ptxas']}")
