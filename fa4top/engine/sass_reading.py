"""SASS of a setting or of a file: compiled in processes of their own, read here."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from fa4top.analysis.sass.kernel import KernelSass, NoKernel, read_kernel
from fa4top.orders.commands import Compile, to_line
from fa4top.records import Shape
from fa4top.targets.cuda import tools
from fa4top.targets.launcher import TargetError

BOOTSTRAP = Path(__file__).resolve().parent.parent / "worker" / "bootstrap.py"
COMPILE_TIMEOUT_S = 600.0
ELF = b"\x7fELF"


@dataclass(frozen=True)
class Wanted:
    """One thing to compile: under which interpreter, for which chip, with which setting."""

    target: str
    shape: Shape
    arch: str
    knobs: dict[str, str]
    python: str
    probe_set: str = ""


@dataclass(frozen=True)
class Read:
    """A kernel, and what made it. ``digest`` names the cubin's bytes; ``ptx`` is '' where there is none."""

    kernel: KernelSass
    versions: dict[str, str]
    digest: str
    ptx: str = ""


class SassError(RuntimeError):
    """It could not be compiled or read; text and hint are for the person."""

    def __init__(self, text: str, hint: str = "", log: str = "") -> None:
        super().__init__(text)
        self.text, self.hint, self.log = text, hint, log


def read_setting(wanted: Wanted) -> Read:
    """Compile and read one setting; nothing is launched and no GPU is needed.

    Raises:
        SassError: it could not be done.
    """
    with tempfile.TemporaryDirectory(prefix="fa4top-sass-") as folder:
        out = Path(folder) / "kernel"
        message = Compile(
            target=wanted.target,
            shape=wanted.shape,
            arch=wanted.arch,
            knobs=wanted.knobs,
            probe_set=wanted.probe_set,
            out=str(out),
        )
        try:
            done = subprocess.run(
                [wanted.python, str(BOOTSTRAP)],
                input=to_line(message).decode(),
                capture_output=True,
                text=True,
                timeout=COMPILE_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SassError(f"{wanted.python}: {error}", "--python PATH of the target's environment") from error
        tail = "\n".join(done.stderr.splitlines()[-12:])
        try:
            answer = json.loads(out.with_suffix(".json").read_text())
        except (OSError, ValueError) as error:
            raise SassError(f"the compile process ended with code {done.returncode} and no word", "", tail) from error
        if "error" in answer:
            raise SassError(answer["error"], answer.get("hint", ""), tail)
        cubin = out.with_suffix(".cubin")
        ptx = out.with_suffix(".ptx")
        text = ptx.read_text() if ptx.exists() else ""
        return _read_cubin(cubin, "", answer.get("versions", {}), wheel_tools(wanted.python), text)


def read_settings(
    wanted: Sequence[Wanted], done: Callable[[Wanted, Read | SassError], None] = lambda *_: None
) -> list[Read | SassError]:
    """Many settings, as many at a time as the host has cores for; one that fails does not stop the others."""

    def one(each: Wanted) -> Read | SassError:
        try:
            result: Read | SassError = read_setting(each)
        except SassError as error:
            result = error
        done(each, result)
        return result

    with ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) // 2)) as pool:
        return list(pool.map(one, wanted))


def read_file(path: Path, kernel: str = "", arch: str = "", beside: str = "") -> Read:
    """A cubin, an object file, PTX, or a listing of nvdisasm.

    Args:
        kernel: a part of the kernel's name, where a file has more than one.
        arch: for PTX: the chip, where it is not that of its ``.target``.
        beside: a folder with NVIDIA's tools to look into first.

    Raises:
        SassError: it is none of them.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SassError(f"{path}: {error.strerror}") from error
    try:
        if data.startswith(ELF):
            return _read_elf(path, kernel, beside)
        text = data.decode(errors="replace")
        if ".version" in text and ".target" in text:
            with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
                data, version = tools.assemble(text, arch, beside)
                file.write(data)
                file.flush()
                return _read_cubin(Path(file.name), kernel, {"ptxas": version}, beside, text)
        return Read(read_kernel(text, name=kernel), {}, hashlib.sha256(data).hexdigest()[:16])
    except NoKernel as error:
        raise SassError(f"{path}: {error}", "a .cubin, .o, .ptx or a listing of nvdisasm -c is wanted") from error
    except TargetError as error:
        raise SassError(error.text, error.hint) from error


def _read_elf(path: Path, kernel: str, beside: str) -> Read:
    """A cubin, or the largest one inside a host object that has the kernel."""
    with tempfile.TemporaryDirectory(prefix="fa4top-elf-") as folder:
        found = tools.device_code(path, Path(folder), beside)
        for cubin in found:
            try:
                return _read_cubin(cubin, kernel, {}, beside, "")
            except SassError:
                if cubin == found[-1]:
                    raise
    raise SassError(f"{path.name} holds no CUDA code")  # device_code raises for that itself


def _read_cubin(path: Path, name: str, versions: dict[str, str], beside: str, ptx: str) -> Read:
    try:
        text = tools.disassembly(path, beside)
        usage = tools.resources(path, beside)
        kernel = read_kernel(text, name=name)
    except NoKernel as error:
        raise SassError(f"{path.name}: {error}") from error
    except TargetError as error:
        raise SassError(error.text, error.hint) from error
    registers, stack = usage.get(kernel.name, (None, None))
    versions = {**versions, "nvdisasm": tools.version_of(tools.need_tool("nvdisasm", beside))}
    described = replace(kernel, registers=registers, stack_bytes=stack)
    return Read(described, versions, hashlib.sha256(path.read_bytes()).hexdigest()[:16], ptx)


def wheel_tools(python: str) -> str:
    """The folder of NVIDIA's tools in an interpreter's wheels, '' where there is none."""
    for folder in sorted(Path(python).parent.parent.glob("lib/python*/site-packages/nvidia/cu1*/bin")):
        if (folder / "nvdisasm").is_file():
            return str(folder)
    return ""
