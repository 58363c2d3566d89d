"""Files that travel with the program: themes/ and kernels/, found in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


class MissingResource(RuntimeError):
    """The installation is incomplete; the text says which folder is missing."""


def resource_folder(name: str) -> Path:
    """The folder ``themes`` or ``kernels``: inside the package (wheel), else beside it (checkout).

    Raises:
        MissingResource: it is in neither place.
    """
    for candidate in (PACKAGE / "_data" / name, PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise MissingResource(f"the folder {name}/ is missing beside or inside {PACKAGE}; reinstall fa4top")
