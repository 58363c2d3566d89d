"""How long a jump in a large recording takes, and how much memory its index needs.

    python benchmarks/seek.py [--mib 1024] [--jumps 40]

The log is made of the H200 examples' own records, again and again with later times, in a temporary file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import random
import re
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fa4top.session.playing import Player  # noqa: E402


def write_log(path: pathlib.Path, size_bytes: int) -> None:
    """A session that goes on and on."""
    header, *lines = gzip.decompress((ROOT / "examples" / "h200-fa4.jsonl.gz").read_bytes()).splitlines(keepends=True)
    first, last = (json.loads(line)["mono_ns"] for line in (lines[0], lines[-1]))
    begin = re.compile(rb'"mono_ns":(\d+)')
    written = 0
    with path.open("wb") as file:
        file.write(header)
        shift = 0
        while written < size_bytes:
            for line in lines:
                written += file.write(
                    begin.sub(lambda found, s=shift: b'"mono_ns":%d' % (int(found[1]) + s), line, count=1)  # type: ignore[misc]
                )
            shift += last - first + 100_000_000


def rss_mib() -> int:
    """Resident memory of this process."""
    match = re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())
    return int(match[1]) // 1024 if match else 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--jumps", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "log.jsonl"
        write_log(path, options.mib << 20)
        start, memory = time.perf_counter(), rss_mib()
        player = Player(path)
        first_s = time.perf_counter() - start
        player.wait_for_index(3600.0)
        indexed_s = time.perf_counter() - start
        grown = rss_mib() - memory
        draw = random.Random(1)
        times, folds = [], []
        for _ in range(options.jumps):
            at_s = draw.random() * player.duration_s
            start = time.perf_counter()
            jump = player.seek(at_s)
            times.append(1000.0 * (time.perf_counter() - start))
            start = time.perf_counter()
            jump.fold().snapshot()
            folds.append(1000.0 * (time.perf_counter() - start))
        player.close()
    print(
        f"{options.mib} MiB, {player.duration_s:.0f} s: opened in {1000 * first_s:.0f} ms, "
        f"indexed in {indexed_s:.1f} s (in a thread; {grown} MiB); "
        f"a jump {statistics.median(times):.0f} ms (worst {max(times):.0f}), "
        f"its fold {statistics.median(folds):.0f} ms"
    )


if __name__ == "__main__":
    main()
