"""kernels/ to cubins: NVRTC through CuPy, with a disk cache. Needs no GPU."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fa4top.analysis.trace.events import EVENTS, Event
from fa4top.resources import resource_folder
from fa4top.targets.launcher import TargetError

# ptxas says C75xx when it gives up on asynchronous wgmma: such a kernel runs, several times slower
SERIALISED = "wgmma.mma_async instructions are serialized"


class CompileError(TargetError):
    """NVRTC refused; ``log`` has all its words."""

    def __init__(self, text: str, log: str) -> None:
        super().__init__("compile error", text, "the worker's log has the compiler's words")
        self.log = log


@dataclass(frozen=True)
class Cubin:
    """One compiled kernel. ``log`` is the compiler's; ``compiler`` names NVRTC's version; ``key`` its cache entry."""

    data: bytes
    log: str
    compiler: str
    key: str
    cached: bool

    @property
    def serialised(self) -> bool:
        """Did ptxas serialise the wgmma instructions?"""
        return SERIALISED in self.log


def cache_folder() -> Path:
    """Where cubins are kept: $XDG_CACHE_HOME/fa4top/kernels."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fa4top" / "kernels"


def compile_kernel(
    source: str, arch: str, defines: Mapping[str, int | str] | None = None, headers: Mapping[str, str] | None = None
) -> Cubin:
    """Compile ``kernels/<source>`` for one architecture.

    Args:
        source: file name inside kernels/.
        arch: sm_90a and the like.
        defines: macros.
        headers: generated headers, by name; found by ``#include``. "events.cuh" always is: the decoder's event ids.

    Raises:
        CompileError: the compiler refused.
        ModuleNotFoundError: CuPy or NVRTC is missing.
    """
    from cupy.cuda import nvrtc

    folder = resource_folder("kernels")
    text = (folder / source).read_text()
    options = (
        f"-arch={arch}",
        "-std=c++17",
        f"-I{folder}",
        "--ptxas-options=-v",
        *(f"-D{name}={value}" for name, value in sorted((defines or {}).items())),
    )
    compiler = "NVRTC {}.{}".format(*nvrtc.getVersion())
    headers = {"events.cuh": events_header(), **(headers or {})}
    key = _key(folder, source, text, options, headers, compiler)
    if (kept := _read_cache(key, compiler)) is not None:
        return kept
    generated = {name.encode(): content.encode() for name, content in headers.items()}
    program = nvrtc.createProgram(text, source, tuple(generated.values()), tuple(generated.keys()))
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        first = next((line for line in log.splitlines() if "error" in line), str(error))
        raise CompileError(f"{source} for {arch}: {first.strip()}", log) from error
    data = complete_elf(nvrtc.getCUBIN(program))
    cubin = Cubin(data, nvrtc.getProgramLog(program), compiler, key, False)
    nvrtc.destroyProgram(program)
    _write_cache(cubin)
    return cubin


def events_header() -> str:
    """The decoder's event ids as C++: "wait P 2nd" is fa4top::event::kWaitP2nd."""
    begin = ["#pragma once", '#include "ptx.cuh"', "namespace fa4top::event {", "enum Event : u32 {"]
    lines = [f"  {event_name(event)} = {event.id},  // {event.name}" for event in EVENTS]
    return "\n".join([*begin, *lines, "};", "}", ""])


def event_name(event: Event) -> str:
    """How a kernel calls it."""
    return "k" + "".join(word[0].upper() + word[1:] for word in event.name.split())


def complete_elf(data: bytes) -> bytes:
    """CuPy's getCUBIN drops the last byte, as it would for a C string; the driver does not mind, nvdisasm does."""
    if data[:4] != b"\x7fELF":
        return data
    ends = []
    for offset_at, size_at, count_at in ((32, 54, 56), (40, 58, 60)):  # program headers, section headers
        offset = int.from_bytes(data[offset_at : offset_at + 8], "little")
        size, count = (int.from_bytes(data[at : at + 2], "little") for at in (size_at, count_at))
        ends.append(offset + size * count)
    return data.ljust(max(ends), b"\0")


def _key(
    folder: Path, source: str, text: str, options: tuple[str, ...], headers: Mapping[str, str], compiler: str
) -> str:
    digest = hashlib.sha256()
    parts = [compiler, source, text, *(option for option in options if not option.startswith("-I"))]
    parts += [f"{path.relative_to(folder)}\n{path.read_text()}" for path in sorted(folder.rglob("*.cuh"))]
    parts += [f"{name}\n{content}" for name, content in sorted(headers.items())]
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


def _read_cache(key: str, compiler: str) -> Cubin | None:
    try:
        about = json.loads((cache_folder() / f"{key}.json").read_text())
        data = (cache_folder() / f"{key}.cubin").read_bytes()
        if hashlib.sha256(data).hexdigest() != about["sha256"]:
            return None  # cut short by a full disk
        return Cubin(data, about["log"], compiler, key, True)
    except (OSError, ValueError, KeyError):
        return None


def _write_cache(cubin: Cubin) -> None:
    about = {"sha256": hashlib.sha256(cubin.data).hexdigest(), "log": cubin.log, "compiler": cubin.compiler}
    keep(f"{cubin.key}.cubin", cubin.data)
    keep(f"{cubin.key}.json", json.dumps(about).encode())


def keep(name: str, data: bytes) -> None:
    """Put a file into the cache in one step; a cache that can not be written is no error."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(data)
        Path(file.name).replace(folder / name)
    except OSError:
        pass


def kept(name: str) -> bytes | None:
    """A file of the cache, if it is there."""
    try:
        return (cache_folder() / name).read_bytes()
    except OSError:
        return None
