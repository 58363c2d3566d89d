"""What probes cost: clean and traced workers of fa4 side by side on one GPU, in one run; ratios of medians.

    python benchmarks/probe_cost.py [--shape b1,s8192,h24,d128] [--rounds 60] [--causal] [SET ...]

Every SET is a probe set's name, or points joined by '+' (turn, waits, mark, tile, phases). Workers stay
resident; in each round each gets one burst, in random order. Two numbers a set: launches in which nobody records
(every CTA still runs the probes), and recorded launches.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
from dataclasses import asdict, replace
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fa4top.orders.shapes import format_shape, parse_shape  # noqa: E402
from fa4top.records import Shape  # noqa: E402
from fa4top.targets.fa4.description import DESCRIPTION  # noqa: E402


class Worker:
    """One resident worker process, driven synchronously."""

    def __init__(self, name: str, twin: str, probe_set: str, shape: Shape) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "fa4top/worker/bootstrap.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=pathlib.Path(f"/tmp/fa4top-probe-cost-{name}.log").open("w"),  # noqa: SIM115 - the child's
            text=True,
        )
        request = {
            "target": "fa4",
            "shape": asdict(shape),
            "knobs": {},
            "twin": twin,
            "seed": 0,
            "device": 0,
            "gpu_uuid": "",
            "probe_set": probe_set,
        }
        self._write({"worker": name, "plan_id": 1, "request": request})

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def wait_for(self, kind: str, state: str = "") -> dict[str, Any]:
        """Read records until one of this kind (and state); a fault ends the program."""
        assert self._process.stdout
        for line in self._process.stdout:
            record = json.loads(line)
            if record["kind"] == "fault":
                raise SystemExit(f"{self.name}: {record['body']}")
            if record["kind"] == kind and (not state or record["body"]["state"] == state):
                return dict(record["body"])
        raise SystemExit(f"{self.name} ended")

    def ask(self, command: dict[str, Any], kind: str, state: str = "") -> dict[str, Any]:
        """Send a command and read its answer."""
        self._write(command)
        return self.wait_for(kind, state)


def main() -> None:
    """Run the comparison and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["coarse", "period", "detail"])
    parser.add_argument("--shape", default="")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    shape = replace(parse_shape(options.shape, DESCRIPTION.default_shape), causal=options.causal)
    workers = [Worker("clean", "clean", "", shape)]
    workers += [Worker(name.replace("+", "_"), "traced", name, shape) for name in options.sets]
    states = [worker.wait_for("worker", "compiled") for worker in workers]
    geometry = states[0]["geometry"]
    print(states[0]["versions"], geometry, file=sys.stderr)
    hashes = set()
    for worker in workers:
        check = worker.ask({"do": "check"}, "check")
        hashes.add(check["output_hash"])
        print(worker.name, check["text"], check["output_hash"], file=sys.stderr)
    times: dict[str, list[float]] = {worker.name: [] for worker in workers}
    recorded: dict[str, list[float]] = {worker.name: [] for worker in workers}
    periods: dict[str, list[float]] = {worker.name: [] for worker in workers}
    clocks: dict[str, list[float]] = {worker.name: [] for worker in workers}
    last: dict[str, Any] = {}
    for number in range(options.rounds):
        for worker in random.sample(workers, len(workers)):
            burst = worker.ask({"do": "clean", "launches": 3}, "clean")["times_us"]
            times[worker.name] += burst
            if worker is not workers[0]:
                cta = number * 79 % geometry["grid_ctas"]
                sample = worker.ask({"do": "trace", "cta": cta, "timeline": number == 5}, "trace")
                recorded[worker.name].append(sample["time_us"])
                clocks[worker.name].append(sample["sm_clock_mhz"] or 0.0)
                if sample["roles"] and sample["roles"][0]["period_median_cycles"]:
                    periods[worker.name].append(sample["roles"][0]["period_median_cycles"])
                if number == 5:
                    last[worker.name] = sample
    base = statistics.median(times["clean"])
    print(
        f"{format_shape(shape)} {'causal ' if shape.causal else ''}outputs {'equal' if len(hashes) == 1 else 'DIFFER'}"
    )
    print(f"{'set':34} {'median us':>10} {'ratio':>8} {'recorded us':>12} {'ratio':>8} {'period cy':>10} {'SM MHz':>8}")
    for name, values in times.items():
        middle = statistics.median(values)
        line = f"{name:34} {middle:10.2f} {middle / base:8.4f}"
        if recorded[name]:
            middle = statistics.median(recorded[name])
            line += f" {middle:12.2f} {middle / base:8.4f} {statistics.median(periods[name] or [0]):10.0f}"
            line += f" {statistics.median(clocks[name]):8.1f}"
        print(line)
    for name, sample in last.items():
        print(name, json.dumps(sample), file=sys.stderr)


if __name__ == "__main__":
    main()
