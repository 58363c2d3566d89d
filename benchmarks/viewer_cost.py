"""What watching costs: CPU of the viewer, the engine and the (simulated) workers, bytes to the terminal, memory.

    python benchmarks/viewer_cost.py [--seconds 20]

A real pty, 256 colours, 4 redraws a second, a simulated session behind it.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fa4top.engine.client import connect, find_live  # noqa: E402
from tests.pty.harness import Terminal  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mib(pid: int) -> int:
    """Resident memory."""
    match = re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) // 1024 if match else 0


def main() -> None:
    """Measure at two sizes and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="f4v")
    for columns, rows in ((80, 24), (120, 40), (200, 50)):
        terminal = Terminal("--target", "sim", "--no-record", columns=columns, rows=rows)
        terminal.until("TFLOP/s")
        terminal.read(options.seconds)
        session = find_live()
        listed = subprocess.run(["pgrep", "-P", str(session.pid)], capture_output=True, text=True, check=True).stdout
        groups = ([terminal.pid], [session.pid], [int(pid) for pid in listed.split()])
        before, size, start = [sum(map(cpu_s, pids)) for pids in groups], len(terminal.raw), time.monotonic()
        terminal.read(options.seconds)
        seconds = time.monotonic() - start
        shares = [(sum(map(cpu_s, pids)) - old) / seconds for pids, old in zip(groups, before, strict=True)]
        print(
            f"{columns}x{rows}: viewer {shares[0]:.1%}, engine {shares[1]:.1%}, simulated workers {shares[2]:.1%} of a "
            f"core; {(len(terminal.raw) - size) / seconds / 1000:.1f} KB/s; memory viewer {rss_mib(terminal.pid)} MiB, "
            f"engine {rss_mib(session.pid)} MiB"
        )
        connect(session.session_id).ask({"do": "stop"})
        time.sleep(1.0)
        terminal.close()


if __name__ == "__main__":
    main()
