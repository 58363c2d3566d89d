"""Prove that every dependency, and every dependency of every extra, has wheels for Linux aarch64 and x86-64.

    python tests/wheels.py [EXTRA ...]        (make wheels; needs a package index)

pip resolves the whole set for each platform with --only-binary=:all: and downloads nothing (--dry-run).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANYLINUX = ("2_39", "2_38", "2_35", "2_34", "2_31", "2_28", "2_27", "2_24", "2_17", "2014")
ARCHITECTURES = ("aarch64", "x86_64")
EXTRAS = ("", "cuda13", "cuda12", "fa4", "sass", "report", "export")
PYTHON = "3.12"


def requirements(extra: str) -> list[str]:
    """Direct requirements of the project, or of one extra, from the wheel's own metadata."""
    import tomlkit

    project = tomlkit.parse((ROOT / "pyproject.toml").read_text()).unwrap()["project"]
    found: list[str] = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return found


def resolve(extra: str, architecture: str) -> tuple[bool, str]:
    """Does it resolve to wheels alone? And what: a count, or pip's last words."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        platforms = [
            f"manylinux_{v}_{architecture}" if v != "2014" else f"manylinux2014_{architecture}" for v in MANYLINUX
        ]
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--pre",
                   "--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp", "--target", folder,
                   "--report", str(report)]  # fmt: skip
        for platform in [*platforms, f"linux_{architecture}"]:
            command += ["--platform", platform]
        done = subprocess.run([*command, *requirements(extra)], capture_output=True, text=True, check=False)
        if done.returncode:
            return False, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip failed"
        packages = json.loads(report.read_text())["install"]
        sdists = [p["metadata"]["name"] for p in packages if not p["download_info"]["url"].endswith(".whl")]
        return not sdists, f"{len(packages)} wheels" if not sdists else f"no wheels: {', '.join(sdists)}"


def main(extras: list[str]) -> int:
    """Print a table; 1 when something is missing."""
    failed = False
    for extra in extras or EXTRAS:
        for architecture in ARCHITECTURES:
            fine, text = resolve(extra, architecture)
            failed |= not fine
            print(f"{'ok     ' if fine else 'MISSING'} {extra or 'fa4top':8} {architecture:8} {text}", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
