"""What stands in for a worker's interpreter: it has every package, and stops where a real kernel would start.

With PAPER_RUNS in the environment the simulated device answers in the place of every target's kernel.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

STOPPED = "paper: a kernel would start here"


def answer_question() -> None:
    question = json.loads(sys.argv[2])
    found = {
        "python": "3.12.0",
        "executable": "/paper/python",
        "modules": {name: f"/paper/{name.replace('.', '/')}.py" for name in question["modules"]},
        "versions": dict.fromkeys(question["distributions"], "1.0"),
    }
    print(json.dumps(found))


def on_the_simulated_device(request: Any) -> Any:
    from fa4top.targets.sim.description import DESCRIPTION as SIM
    from fa4top.targets.sim.launch import make_launcher

    shape = replace(SIM.default_shape, causal=request.shape.causal)
    return make_launcher(replace(request, target="sim", shape=shape, knobs=SIM.defaults()))


def stop_at_kernels() -> None:
    """From here on this process stops where a real kernel would start."""
    from fa4top.targets import references
    from fa4top.targets.launcher import TargetError

    def stop(*_: Any, **__: Any) -> Any:
        raise TargetError("compile error", STOPPED, "use a real machine")

    def load(reference: str) -> Any:
        return on_the_simulated_device if os.environ.get("PAPER_RUNS") else stop

    real = references.load
    for module in [each for name, each in sys.modules.items() if name.startswith("fa4top.")]:
        if vars(module).get("load") is real:
            vars(module)["load"] = load
    # imported only where it is asked for: most workers here have another errand
    stand_in = ModuleType("fa4top.targets.bench.run")
    vars(stand_in).update(Suite=stop, choose=lambda names: list(names))
    sys.modules[stand_in.__name__] = stand_in


def run_worker(bootstrap: str) -> None:
    script = runpy.run_path(bootstrap)
    sys.path.insert(0, str(Path(bootstrap).resolve().parents[2]))
    stop_at_kernels()
    sys.exit(script["main"]())


if __name__ == "__main__":
    if Path(sys.argv[1]).name == "probe_interpreter.py":
        answer_question()
    else:
        run_worker(sys.argv[1])
