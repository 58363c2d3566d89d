"""Record one session that goes through several plans, for examples/.

    python benchmarks/record_plans.py OUT.jsonl.gz --seconds 10 --target fa4 \
        "s8192" "s8192 causal" "s4096,b4" "s16384 fp16" "s8192,hk8"

Each plan is a shape, then optional words: causal, bf16, fp16, fp8, KNOB=VALUE.
"""

from __future__ import annotations

import argparse
import gzip
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fa4top.cli.choose import make_order  # noqa: E402
from fa4top.cli.options import RunOptions  # noqa: E402
from fa4top.engine.client import connect, start_engine  # noqa: E402
from fa4top.records import Fault, Notice, TraceSample  # noqa: E402
from fa4top.session.config import Config  # noqa: E402
from fa4top.session.following import Follower  # noqa: E402
from fa4top.session.paths import LOG_NAME  # noqa: E402

DTYPES = ("bf16", "fp16", "fp8")
LIMIT_S = 120.0


def command(plan: str) -> dict[str, object]:
    """One plan's words as the engine's command."""
    words = plan.split()
    return {
        "do": "plan",
        "shape": words[0],
        "causal": "causal" in words,
        "dtype": next((word for word in words if word in DTYPES), "bf16"),
        "knobs": dict(word.split("=") for word in words if "=" in word),
    }


def main() -> int:
    """Run the plans, one after another, and pack the log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("plans", nargs="+")
    parser.add_argument("--target", default="fa4")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=4.0)
    options = parser.parse_args()
    from dataclasses import replace

    order = replace(
        make_order(Config(), RunOptions(target=options.target), idle_limit_s=30.0), rounds_per_s=options.rate,
        argv=["fa4top", "--target", options.target],
    )  # fmt: skip
    process = start_engine(order)
    control = connect(order.session_id, process)
    log = pathlib.Path(order.folder) / LOG_NAME
    follower = Follower(log)

    def until_numbers(plan_id: int) -> None:
        """Wait for the first number of a plan."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            for record in follower.poll():
                if isinstance(record.body, (Fault, Notice)):
                    print(record.body, file=sys.stderr)
                if isinstance(record.body, TraceSample) and record.body.plan_id == plan_id:
                    return
            if process.poll() is not None:
                raise SystemExit("the engine ended")
            time.sleep(0.05)
        raise SystemExit("no numbers")

    for plan in options.plans:
        answer = control.ask(command(plan))
        print(plan, answer, file=sys.stderr)
        if answer["ok"]:
            until_numbers(int(str(answer["plan_id"])))
            time.sleep(options.seconds)
    control.ask({"do": "stop"})
    process.wait(30)
    packed = gzip.compress(log.read_bytes(), 9, mtime=0)
    options.out.write_bytes(packed)
    print(f"{options.out}: {len(packed)} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
