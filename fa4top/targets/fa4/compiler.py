"""Versions of packages and of the ptxas that the CuTe DSL carries inside its library, which moves results by 20%
(contract, 5.I). Nothing is imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import mmap
from collections.abc import Iterable
from pathlib import Path

MARKER = b"Cuda compilation tools, release "


def ptxas_version(data: bytes | mmap.mmap) -> str:
    """The version in a library's text "Cuda compilation tools, release X.Y, VX.Y.Z"; '' when it has none."""
    at = data.find(MARKER)
    if at < 0:
        return ""
    text = data[at + len(MARKER) : at + len(MARKER) + 64].partition(b"\0")[0].decode(errors="replace")
    return text.split(", V")[-1].strip()


def dsl_compiler(flavour: str) -> str:
    """Version of the compiler that the DSL of this flavour (cu12, cu13) loads; '' when it can not be told."""
    try:
        spec = importlib.util.find_spec("cutlass")
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin:
        return ""
    found = sorted(Path(spec.origin).resolve().parent.glob("_mlir/_mlir_libs/_cutlass_ir*.so"))
    for path in sorted(found, key=lambda path: flavour not in path.name)[:1]:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return ptxas_version(data)
    return ""


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of those distributions that are there, and what the CuTe DSL compiles with: flavour and ptxas."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    for flavour in ("cu13", "cu12"):
        try:
            importlib.metadata.version(f"nvidia-cutlass-dsl-libs-{flavour}")
        except importlib.metadata.PackageNotFoundError:
            continue
        found["dsl flavour"] = flavour
        break
    if compiler := dsl_compiler(found.get("dsl flavour", "")):
        found["nvPTXCompiler"] = compiler
    return found
