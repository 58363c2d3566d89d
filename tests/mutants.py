"""The share of mutants that tests killed, by file, of the last `make mutants`."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

KILLED = ("killed", "timeout", "segfault", "caught by type check")


def main() -> int:
    """Print a table; 1 when nothing was run."""
    mutmut = Path(sys.executable).with_name("mutmut")
    listed = subprocess.run([mutmut, "results", "--all", "true"], capture_output=True, text=True, check=False).stdout
    killed: Counter[str] = Counter()
    all_of: Counter[str] = Counter()
    for line in listed.splitlines():
        name, found, status = line.strip().rpartition(": ")
        if not found or status == "not checked":
            continue
        file = name.split(".x")[0]
        all_of[file] += 1
        killed[file] += status in KILLED
    for file, count in sorted(all_of.items()):
        print(f"{killed[file] / count:6.1%}  {killed[file]:5} of {count:5}  {file}")
    if total := sum(all_of.values()):
        print(f"{sum(killed.values()) / total:6.1%}  {sum(killed.values()):5} of {total:5}  all")
    return 0 if all_of else 1


if __name__ == "__main__":
    sys.exit(main())
