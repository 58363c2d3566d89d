"""A checkout of the fork, looked at without importing it: which profiler it has, which knobs, what fa4top relies on.

Versions are told by what the sources hold (contract, section 7), never by a version number. Nothing is run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fa4top.targets.fork.knobs import BY_NAME

PACKAGE = Path("flash_attn") / "cute"
KERNEL, PROFILER, HELPERS, INTERFACE = "flash_fwd_sm100_fp4.py", "profiler.py", "blackwell_helpers.py", "interface.py"
BENCH = "bench_fp4.py"
FACTORY = "create_nvfp4_attention_tensors"
SKIPPED = {".git", "node_modules", "build", "dist", "csrc"}


class NoCheckout(ValueError):
    """The folder holds no such package; the text says what was looked for."""


@dataclass(frozen=True)
class Holds:
    """One thing that fa4top relies on: what was expected, what was found."""

    what: str
    expected: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Checkout:
    """What a folder holds. ``profiler``: v0 (64-bit entries), v1 (32-bit words), v2 (and a ring in shared memory) or
    none. ``unknown_knobs`` are read by its sources and not in our table; ``absent_knobs`` the other way round.
    ``split_default``: numerator of the fp8 split, '' where it has no such knob."""

    package: Path
    commit: str
    profiler: str
    unknown_knobs: tuple[str, ...]
    absent_knobs: tuple[str, ...]
    split_default: str
    rows: tuple[Holds, ...]

    @property
    def usable(self) -> bool:
        """Does all hold that a trace needs?"""
        return all(row.holds for row in self.rows)


def find_package(folder: Path) -> Path:
    """The folder of flash_attn.cute inside a checkout, or that folder itself.

    Raises:
        NoCheckout: there is none.
    """
    for candidate in (folder / PACKAGE, folder):
        if (candidate / INTERFACE).is_file() and (candidate / KERNEL).is_file():
            return candidate.resolve()
    raise NoCheckout(
        f"{folder} holds no flash-attention-fp4: expected {PACKAGE / INTERFACE} and {PACKAGE / KERNEL} in it"
    )


class _Source:
    """One file's functions, names and text; empty where the file is not there or no Python."""

    def __init__(self, path: Path) -> None:
        self.there = path.is_file()
        self.text = path.read_text(errors="replace") if self.there else ""
        try:
            self._tree: ast.AST = ast.parse(self.text)
        except SyntaxError:
            self._tree = ast.parse("")

    def arguments(self, function: str) -> list[str] | None:
        """Names of a function's parameters (of a method's too); None when there is no such function."""
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function:
                every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                return [argument.arg for argument in every]
        return None

    def assigned(self, name: str) -> ast.expr | None:
        """The value that a name is given."""
        for node in ast.walk(self._tree):
            targets: Sequence[ast.expr] = ()
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign):
                targets = (node.target,)
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                value: ast.expr | None = node.value  # type: ignore[attr-defined]
                return value
        return None

    def length(self, name: str) -> int | None:
        """Entries of a literal list, tuple or dictionary."""
        value = self.assigned(name)
        if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            return len(value.elts)
        return len(value.keys) if isinstance(value, ast.Dict) else None

    def number(self, name: str) -> int | None:
        """A literal whole number."""
        value = self.assigned(name)
        return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else None


def profiler_version(profiler: _Source) -> str:
    """v0, v1, v2 or none."""
    if not profiler.there:
        return "none"
    if profiler.arguments("decode_trace") is None:
        return "v0" if profiler.arguments("decode_events") is not None else "none"
    has_ring = profiler.arguments("prof_flush") is not None or profiler.number("PROF_SMEM_EVENTS_PER_GROUP") is not None
    return "v2" if has_ring else "v1"


def git_commit(folder: Path) -> str:
    """Short commit of the checkout that a folder lies in, read from .git; '' where there is none."""
    for place in (folder, *folder.parents):
        head = place / ".git" / "HEAD"
        if head.is_file():
            text = head.read_text().strip()
            if text.startswith("ref: "):
                name = text.removeprefix("ref: ")
                reference = place / ".git" / name
                if reference.is_file():
                    return reference.read_text().strip()[:12]
                packed = place / ".git" / "packed-refs"
                lines = packed.read_text().splitlines() if packed.is_file() else []
                return next((line.split()[0][:12] for line in lines if line.endswith(f" {name}")), "")
            return text[:12]
    return ""


def find_bench(package: Path) -> Path | None:
    """The benchmark that makes quantised tensors: in the checkout that the package lies in."""
    for top in (package, package.parent.parent):
        for pattern in (BENCH, f"*/{BENCH}", f"*/*/{BENCH}"):
            for path in sorted(top.glob(pattern)):
                if not SKIPPED & set(path.relative_to(top).parts):
                    return path
    return None


def inspect_checkout(folder: Path) -> Checkout:
    """Look at a checkout.

    Raises:
        NoCheckout: the folder holds none.
    """
    package = find_package(folder)
    profiler, helpers = _Source(package / PROFILER), _Source(package / HELPERS)
    interface, kernel = _Source(package / INTERFACE), _Source(package / KERNEL)
    bench_path = find_bench(package)
    bench = _Source(bench_path) if bench_path else _Source(package / "no bench")
    version = profiler_version(profiler)
    texts = [path.read_text(errors="replace") for path in sorted(package.glob("*.py"))]
    read = {name for text in texts for name in re.findall(r"[\"'](FA4_[A-Z0-9_]+)[\"']", text)}
    split = re.search(r"FA4_FP8_PV_P_SPLIT_NUM[\"']\s*,\s*[\"'](\d+)[\"']", kernel.text)
    rows: list[Holds] = []

    def row(what: str, expected: str, found: str, holds: bool) -> None:
        rows.append(Holds(what, expected, found, holds))

    row("profiler", "v1 or v2 (32-bit words)", _version_text(version), version in ("v1", "v2"))
    events, groups = profiler.length("EVENT_NAMES"), profiler.number("NUM_GROUPS")
    row("event names", "14", str(events) if events is not None else "not there", events == 14)
    row("groups", "4 (the buffer says it, too)", str(groups) if groups is not None else "not there", groups in (3, 4))
    has_buffer = "LAST_BUFFER" in profiler.text
    row("LAST_BUFFER", "a module variable", "there" if has_buffer else "not there", has_buffer)
    wanted = {"v1": ["prof_ts_addrs"], "v2": ["prof_ts_smem"]}.get(version, ["prof_ts_addrs"])
    _arguments(row, "gemm_ptx_partial", helpers.arguments("gemm_ptx_partial"), wanted)
    _arguments(row, "flash_attn_func", interface.arguments("flash_attn_func"), ["mSFQ", "mSFK", "pack_gqa"])
    keyed = "FA4_PROFILE_PIPELINE" in interface.text
    row("compile key", "holds FA4_PROFILE_PIPELINE", "it does" if keyed else "it does not", keyed)
    where = str(bench_path.relative_to(package.parent.parent)) if bench_path else "not found"
    _arguments(row, f"{FACTORY} ({where})", bench.arguments(FACTORY), ["seqlen_q", "nheads_kv", "pv_mode"])
    return Checkout(
        package,
        git_commit(package),
        version,
        tuple(sorted(read - BY_NAME.keys() - _NOT_KNOBS)),
        tuple(sorted(BY_NAME.keys() - read)),
        split.group(1) if split else "",
        tuple(rows),
    )


_NOT_KNOBS = {"FA4_BENCH_SEQS", "FA4_BENCH_H24_SWEEP", "FA4_TRACE"}


def _version_text(version: str) -> str:
    return {
        "v0": "v0: 64-bit entries, which fa4top does not read",
        "v1": "v1: a global store an event",
        "v2": "v2: a ring in shared memory",
        "none": "none: profiler.py is not there, or has neither decode_trace nor decode_events",
    }[version]


def _arguments(
    row: Callable[[str, str, str, bool], None], function: str, found: list[str] | None, wanted: Sequence[str]
) -> None:
    missing = [name for name in wanted if found is None or name not in found]
    text = "no such function" if found is None else f"lacks {', '.join(missing)}" if missing else "it has them"
    row(function, f"parameters {', '.join(wanted)}", text, not missing)
