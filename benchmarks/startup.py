"""How long a person waits: `--version`, `--help`, `replay --help`, and the first paint of the screens.

    python benchmarks/startup.py [--repeats 7]

Medians, and their ratio to a bare `python -c pass` on the same machine. First paint: from the start of the process
until the title line has reached a real pty of 80x24, with a simulated session behind it.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import pty
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def command_seconds(*arguments: str) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


def paint_seconds(marks: tuple[bytes, ...], limit_s: float = 30.0) -> list[float]:
    """Seconds until each mark has been seen on a pty; the session is stopped afterwards."""
    start = time.perf_counter()
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execvpe(
            sys.executable,
            [sys.executable, "-m", "fa4top", "--target", "sim", "--no-record", "--idle-limit", "0.05"],
            {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "COLUMNS": "80", "LINES": "24"},
        )
    seen: list[float] = []
    data = b""
    while len(seen) < len(marks) and time.perf_counter() - start < limit_s:
        if select.select([fd], [], [], 0.5)[0]:
            data += os.read(fd, 65536)
            while len(seen) < len(marks) and marks[len(seen)] in data:
                seen.append(time.perf_counter() - start)
    os.kill(pid, signal.SIGTERM)
    while True:
        try:
            if not select.select([fd], [], [], 5)[0] or not os.read(fd, 65536):
                break
        except OSError:
            break
    os.waitpid(pid, 0)
    return seen


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="f4b")
    os.environ.update(XDG_RUNTIME_DIR=folder, FA4TOP_CONFIG=f"{folder}/config.toml")
    cases = {
        "python -c pass": ["-c", "pass"],
        "fa4top --version": ["-m", "fa4top", "--version"],
        "fa4top --help": ["-m", "fa4top", "--help"],
        "fa4top replay --help": ["-m", "fa4top", "replay", "--help"],
    }
    base = None
    for name, arguments in cases.items():
        seconds = statistics.median(command_seconds(*arguments) for _ in range(options.repeats))
        base = base or seconds
        print(f"{name:34} {seconds:7.3f} s   {seconds / base:5.1f} x")
    paints = [paint_seconds((b"fa4top", b"TFLOP/s")) for _ in range(max(3, options.repeats // 2))]
    for number, name in enumerate(("first paint, 80x24", "first numbers, simulated")):
        seconds = statistics.median(times[number] for times in paints if len(times) > number)
        print(f"{name:34} {seconds:7.3f} s   {seconds / (base or 1):5.1f} x")


if __name__ == "__main__":
    main()
