"""Who may import whom (design.md), and what must start without CUDA."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "fa4top"
CUDA = {"cupy", "cupyx", "torch", "cutlass", "flash_attn", "tvm_ffi", "triton"}
NVML = {"pynvml"}
SCREEN = {"textual", "rich"}

# layer: (layers of ours it may import, outside packages it must never import)
RULES: dict[str, tuple[set[str], set[str]]] = {
    "records": (set(), CUDA | NVML | SCREEN | {"numpy", "msgspec", "click"}),
    "resources": (set(), CUDA | NVML | SCREEN | {"numpy"}),
    "analysis": ({"records"}, CUDA | NVML | SCREEN | {"msgspec", "click", "plotext", "platformdirs"}),
    "targets": ({"records", "analysis", "resources"}, NVML | SCREEN | {"msgspec", "click"}),
    "worker": ({"records", "analysis", "targets"}, NVML | SCREEN | {"msgspec", "click"}),
    "session": ({"records", "analysis"}, CUDA | NVML | SCREEN | {"click"}),
    "engine": ({"records", "analysis", "targets", "session"}, CUDA | SCREEN | {"click", "numpy"}),
    "ui": ({"records", "analysis", "targets", "session", "engine", "resources"}, CUDA | NVML | {"click"}),
    "cli": ({"records", "analysis", "targets", "session", "engine", "ui", "resources"}, CUDA),
}
# descriptions of targets are what the engine and the screens may know of them
NO_CUDA_IN_TARGETS = {
    "base.py",
    "catalog.py",
    "description.py",
    "probes.py",
    "chips.py",
    "launcher.py",
    "split.py",
    "geometry.py",
    "instructions.py",
    "suite.py",
    "published.py",
}


def imports(path: Path) -> set[str]:
    """Full names of all modules that a file imports, also inside functions; type-only imports left out."""
    tree = ast.parse(path.read_text())
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            skipped |= {child for statement in node.body for child in ast.walk(statement)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def files_of(layer: str) -> list[Path]:
    single = PACKAGE / f"{layer}.py"
    return [single] if single.exists() else sorted((PACKAGE / layer).rglob("*.py"))


@pytest.mark.parametrize("layer", RULES)
def test_a_layer_imports_only_what_lies_below_it(layer: str) -> None:
    allowed, forbidden = RULES[layer]
    files = files_of(layer)
    assert files
    for path in files:
        for name in imports(path):
            top, *rest = name.split(".")
            if top == "fa4top" and rest:
                assert rest[0] == layer or rest[0] in allowed, f"{path} imports {name}"
            assert top not in forbidden, f"{path} imports {name}"


def test_descriptions_of_targets_know_no_cuda() -> None:
    for path in (PACKAGE / "targets").rglob("*.py"):
        if path.name in NO_CUDA_IN_TARGETS:
            assert not {name.split(".")[0] for name in imports(path)} & CUDA, path


def test_every_file_of_ours_belongs_to_a_layer() -> None:
    known = set(RULES) | {"__init__", "__main__"}
    assert {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir() if not p.name.startswith("__py")} - known <= {
        "_data"
    }


@pytest.mark.parametrize(
    "code",
    [
        "import fa4top.cli.root as r; r.main(['--help'])",
        "import fa4top.cli.root as r; r.main(['--version'])",
        "import fa4top.cli.root as r; r.main(['replay', '--help'])",
        "import fa4top.ui.app",
        "import fa4top.engine.main",
    ],
)
def test_starts_without_cuda_packages(code: str) -> None:
    check = (
        "import sys\ntry:\n    " + code.replace("; ", "\n    ") + "\nexcept SystemExit: pass\n"
        f"bad = sorted({CUDA!r} & set(sys.modules)); assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_scripts_run_by_path_shadow_no_module_of_the_standard_library() -> None:
    # the folder of a script is first on its sys.path: a file named like a standard module would take its place
    names = {path.stem for path in (PACKAGE / "worker").glob("*.py")} - {"__init__"}
    assert not names & sys.stdlib_module_names


def test_version_imports_no_numpy_and_no_textual() -> None:
    code = (
        "import sys, fa4top.cli.root as r\ntry: r.main(['--version'])\nexcept SystemExit: pass\n"
        "assert not {'numpy', 'textual', 'msgspec'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True)
