"""Who may import whom (docs/design.md), how long a file may be, and what must start without CUDA."""

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
MOST_LINES, LONGER = 350, {"records.py"}

# room: (rooms it may import, outside packages it must never import); rooms may be folders or single files
RULES: dict[str, tuple[set[str], set[str]]] = {
    "records": (set(), CUDA | NVML | SCREEN | {"numpy", "msgspec", "click"}),
    "resources": (set(), CUDA | NVML | SCREEN | {"numpy"}),
    "orders": ({"records"}, CUDA | NVML | SCREEN | {"numpy", "msgspec", "click"}),
    "analysis/trace": ({"records"}, CUDA | NVML | SCREEN | {"msgspec", "click"}),
    "analysis/compare": ({"records"}, CUDA | NVML | SCREEN | {"msgspec", "click"}),
    "analysis/sass": ({"records"}, CUDA | NVML | SCREEN | {"msgspec", "click"}),
    "analysis/chip": ({"records"}, CUDA | NVML | SCREEN | {"msgspec", "click"}),
    "analysis/view": (
        {"records", "orders", "analysis/trace", "analysis/compare", "analysis/sass", "analysis/chip"},
        CUDA | NVML | SCREEN | {"msgspec", "click", "plotext"},
    ),
    "analysis/triage": (
        {"records", "orders", "analysis/compare", "analysis/sass", "analysis/chip", "analysis/view"},
        CUDA | NVML | SCREEN | {"msgspec", "click", "plotext"},
    ),
    "targets": ({"records", "orders", "analysis", "resources"}, NVML | SCREEN | {"msgspec", "click"}),
    "worker": ({"records", "orders", "analysis", "targets"}, NVML | SCREEN | {"msgspec", "click"}),
    "session": ({"records", "orders", "analysis"}, CUDA | NVML | SCREEN | {"click"}),
    "engine": ({"records", "orders", "analysis", "targets", "session"}, CUDA | SCREEN | {"click", "numpy"}),
    "ui": ({"records", "orders", "analysis", "targets", "session", "engine", "resources"}, CUDA | NVML | {"click"}),
    "cli": ({"records", "orders", "analysis", "targets", "session", "engine", "ui", "resources"}, CUDA | NVML),
}
# within a room: the core knows nothing of the single jobs but their registry, the widgets nothing of the screens
UPWARD: dict[str, tuple[str, ...]] = {
    "engine/host.py": ("fa4top.engine.jobs", "fa4top.engine.live", "fa4top.engine.main"),
    "engine/twins.py": ("fa4top.engine.jobs", "fa4top.engine.host", "fa4top.engine.live"),
    "engine/pool.py": ("fa4top.engine.jobs", "fa4top.engine.host", "fa4top.engine.live"),
    "engine/custody.py": ("fa4top.engine.jobs", "fa4top.engine.host", "fa4top.engine.live"),
    "engine/jobs": ("fa4top.engine.live", "fa4top.engine.main"),
    "ui/widgets": ("fa4top.ui.screens", "fa4top.ui.app", "fa4top.ui.commands"),
    "ui/screens": ("fa4top.ui.app", "fa4top.ui.commands"),
    "cli/text": ("fa4top.cli.live", "fa4top.cli.choose", "fa4top.cli.follow"),
    "cli/formats": ("fa4top.cli.live", "fa4top.cli.choose", "fa4top.cli.follow"),
    "targets/builtin": ("fa4top.targets.catalog", "fa4top.targets.fork", "fa4top.targets.sim"),
    "targets/fa4": ("fa4top.targets.catalog", "fa4top.targets.fork", "fa4top.targets.sim", "fa4top.targets.builtin"),
}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path, nested: bool = True) -> set[str]:
    """Full names of all modules that a file imports, also inside functions unless not ``nested``; for types only: left
    out."""
    tree = tree_of(path)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            skipped |= {child for statement in node.body for child in ast.walk(statement)}
    found: set[str] = set()
    for node in ast.walk(tree) if nested else tree.body:
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names if is_module(f"{node.module}.{alias.name}")}
    return found


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def files_of(room: str) -> list[Path]:
    single = PACKAGE / f"{room}.py" if not room.endswith(".py") else PACKAGE / room
    return [single] if single.exists() else sorted((PACKAGE / room).rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def lies_in(module: str, room: str) -> bool:
    name = "fa4top." + room.replace("/", ".")
    return module == name or module.startswith(name + ".")


@pytest.mark.parametrize("room", RULES)
def test_a_room_imports_only_what_lies_below_it(room: str) -> None:
    allowed, forbidden = RULES[room]
    found = files_of(room)
    assert found
    for path in found:
        for name in imports(path):
            if name.startswith("fa4top."):
                own = lies_in(name, room) or name == "fa4top.analysis"
                assert own or any(lies_in(name, other) for other in allowed), f"{path} imports {name}"
            assert name.split(".")[0] not in forbidden, f"{path} imports {name}"


@pytest.mark.parametrize("part", UPWARD)
def test_within_a_room_nothing_looks_up(part: str) -> None:
    found = files_of(part)
    assert found
    for path in found:
        for name in imports(path):
            assert not any(name == up or name.startswith(up + ".") for up in UPWARD[part]), f"{path} imports {name}"


def test_no_import_goes_in_a_circle() -> None:
    graph = {module_of(path): imports(path) for path in files()}
    graph = {module: {name for name in names if name in graph} - {module} for module, names in graph.items()}
    done: set[str] = set()

    def walk(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module in done:
            return
        for name in sorted(graph[module]):
            walk(name, (*trail, module))
        done.add(module)

    for module in graph:
        walk(module, ())


def test_no_file_is_longer_than_one_can_read() -> None:
    long = {str(path): lines for path in files() if (lines := len(path.read_text().splitlines())) > MOST_LINES}
    assert {Path(path).name for path in long} <= LONGER, long


def test_what_the_engine_and_the_screens_import_of_targets_knows_no_cuda() -> None:
    seen: set[Path] = set()
    wanted = [name for room in ("engine", "ui", "cli") for path in files_of(room) for name in imports(path)]
    wanted += [f"fa4top.targets.{folder.name}.description" for folder in (PACKAGE / "targets").iterdir()]
    while wanted:
        name = wanted.pop()
        path = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        if not name.startswith("fa4top.targets") or not path.exists() or path in seen:
            continue
        seen.add(path)
        at_import = imports(path, nested=False)
        assert not {found.split(".")[0] for found in at_import} & CUDA, path
        wanted += at_import
    assert len(seen) > 20


def test_every_file_of_ours_belongs_to_a_room() -> None:
    rooms = [*RULES, "__init__", "__main__"]
    for path in files():
        inside = path.relative_to(PACKAGE).with_suffix("").as_posix()
        inside = inside.removesuffix("/__init__")
        assert inside in ("analysis", *rooms) or any(inside.startswith(f"{room}/") for room in rooms), path


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
