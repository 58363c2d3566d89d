"""Run as a script under any Python >= 3.8: prints as JSON what this interpreter has. Imports none of it.

The one argument is JSON: ``modules`` (dotted ones are looked for as files) and ``distributions`` to look for.
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys


def find(name):
    """Where a module lies, None where it is not; of a.b.c only a is resolved, the rest is looked for as a file."""
    top, _, rest = name.partition(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or [])
    if not rest:
        return spec.origin or (folders[0] if folders else "")
    for folder in folders:
        path = os.path.join(folder, *rest.split("."))
        for candidate in (path + ".py", os.path.join(path, "__init__.py")):
            if os.path.exists(candidate):
                return candidate
    return None


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    question = json.loads(sys.argv[1])
    found = {name: version(name) for name in question["distributions"]}
    print(
        json.dumps(
            {
                "python": platform.python_version(),
                "executable": sys.executable,
                "modules": {name: find(name) for name in question["modules"]},
                "versions": {name: number for name, number in found.items() if number is not None},
            }
        )
    )


if __name__ == "__main__":
    main()
