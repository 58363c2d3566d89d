"""What an engine is asked to do, as the viewer that starts it writes it down."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from fa4top.records import Shape


@dataclass(frozen=True, kw_only=True)
class Order:
    """One engine's job. ``idle_limit_s``: how long it goes on with nobody watching. ``rounds_per_s``: how often a clean
    and a traced burst are made; the rest of the time the GPU rests. ``stay``: after a plan that can not go on, wait for
    another one instead of ending. ``source_path``: folder with the target's sources, '' for the
    interpreter's own. ``lock_mhz``: the SM clock asked for, 0: none. ``job`` is done first
    (orders/jobs.py); without ``stay`` the engine then ends."""

    session_id: str
    folder: str
    record: bool
    target: str
    why_target: str
    shape: Shape
    knobs: dict[str, str]
    seed: int
    python: str
    gpu_uuid: str
    gpu_name: str
    arch: str
    simulated: bool
    argv: list[str]
    unsafe: bool = False
    detail: bool = False
    inflight: bool = False
    probe_set: str = ""
    sim_fault: str = ""
    idle_limit_s: float = 900.0
    wait_gpu_s: float = 0.0
    lock_mhz: int = 0
    source_path: str = ""
    rounds_per_s: float = 8.0
    stay: bool = False
    notices: list[str] = field(default_factory=list)
    job: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """For the engine's command line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Order:
        """Read what ``to_json`` wrote."""
        data: dict[str, Any] = json.loads(text)
        return Order(shape=Shape(**data.pop("shape")), **data)
