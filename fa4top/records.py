"""Typed records of the session log.

One line of the log is one JSON object, the envelope: ``kind``, ``seq``, ``wall_ns`` (Unix time), ``mono_ns``
(CLOCK_MONOTONIC of the node), ``source`` (``engine`` or a worker's id) and ``body``, one of the frozen dataclasses
below; ``simulated`` stands in every line of a simulated session. The same lines are the worker protocol, the
recording, the replay input, the test fixture and the export input.

This module needs the standard library alone, because workers run under foreign interpreters (Python >= 3.10).
Reading with validation is ``fa4top.session.reading``. Unknown kinds and newer minor versions are skipped with a
notice on reading; a newer major version is refused. What a minor version added is filled in for older logs by
``fa4top.session.upgrade``.
"""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

SCHEMA_MAJOR = 1
SCHEMA_MINOR = 4

KINDS: dict[str, type[Body]] = {}


class Body:
    """Base of all record bodies; ``kind`` is the tag in the envelope.

    ``scene``: what a jump in a replay must take in, however long ago it was recorded: all that is not one of many
    samples of the last minute. ``numbers``: figures that a person waits for while things compile.
    """

    kind: ClassVar[str] = ""
    scene: ClassVar[bool] = True
    numbers: ClassVar[bool] = False

    def __init_subclass__(cls, kind: str = "", scene: bool = True, numbers: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if kind:
            cls.kind, cls.scene, cls.numbers = kind, scene, numbers
            KINDS[kind] = cls


@dataclass(frozen=True, kw_only=True)
class Header(Body, kind="header"):
    """First record of every log."""

    session_id: str
    schema_major: int
    schema_minor: int
    fa4top_version: str
    argv: list[str]
    python: str
    platform: str
    simulated: bool


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One attention problem. Lengths in tokens; ``dtype`` is bf16, fp16 or fp8."""

    batch: int
    seqlen_q: int
    seqlen_k: int
    heads: int
    kv_heads: int
    head_dim: int
    head_dim_v: int
    causal: bool = False
    dtype: str = "bf16"


@dataclass(frozen=True, kw_only=True)
class Published:
    """What others published for this chip, shape and setting."""

    tflops: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Plan(Body, kind="plan"):
    """What is measured from here on: one (target, shape, setting) on one GPU. ``quiet`` are knobs at a default that
    says nothing (auto, 0, off): screens leave them out."""

    plan_id: int
    target: str
    device: str
    gpu_uuid: str
    arch: str
    shape: Shape
    knobs: dict[str, str]
    seed: int
    simulated: bool
    unsafe: bool = False
    quiet: list[str] = field(default_factory=list)
    published: Published | None = None


@dataclass(frozen=True, kw_only=True)
class RoleMap:
    """A target's roles as viewers need them: ``names`` in drawing order; ``lead``, whose period is the kernel's;
    ``mma``, those whose waits say what the tensor cores wait for, the one that is shown first."""

    names: list[str]
    lead: str
    mma: list[str]


@dataclass(frozen=True, kw_only=True)
class StepWork:
    """What one element of S asks of the chip's units: formats of the operands of QK and PV (bf16, fp8, nvfp4, ...), and
    exponentials that MUFU computes for it; None where that is not known."""

    qk_format: str
    pv_format: str
    exp2_per_element: float | None = None


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """How the kernel is laid out on the chip; what the derived metrics need.

    ``steps_longest`` counts KV iterations of one role along the busiest SM, so that
    kernel cycles / steps_longest is the clean period. ``flops`` counts one launch.
    Every ``cta_stride``-th CTA has all roles (with 2-CTA instructions only the leader has the MMA role).
    """

    grid_ctas: int
    sm_count: int
    ctas_per_sm: int
    tiles: int
    steps_per_tile: int
    steps_longest: int
    persistent: bool
    flops: float
    cta_stride: int = 1
    work: StepWork | None = None


@dataclass(frozen=True, kw_only=True)
class WorkerState(Body, kind="worker"):
    """A worker's life: starting, importing, compiling, compiled, checking, ready, stopped, dead."""

    worker: str
    plan_id: int
    twin: str
    state: str
    pid: int
    text: str = ""
    progress: float | None = None
    versions: dict[str, str] = field(default_factory=dict)
    geometry: Geometry | None = None
    probe_sets: list[str] = field(default_factory=list)
    roles: RoleMap | None = None


@dataclass(frozen=True, kw_only=True)
class Check(Body, kind="check"):
    """Output of a worker against an FP32 reference on sampled rows; errors are relative to the reference's RMS."""

    worker: str
    plan_id: int
    twin: str
    passed: bool
    rows: int
    max_error: float
    rms_error: float
    limit: float
    output_hash: str
    text: str


@dataclass(frozen=True, kw_only=True)
class SassReport(Body, kind="sass"):
    """One setting's compiled code: counts by name (analysis/sass_compare.py), a sentence, and how it differs from the
    first of the same run. ``error``: why it could not be read."""

    run_id: int
    target: str
    arch: str
    setting: str
    versions: dict[str, str]
    figures: dict[str, float]
    headline: str
    difference: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class TriageFinding:
    """One thing that a rule saw. ``confidence``: high, medium or low; ``falsify``: what would show that it is not so;
    ``job``: the next experiment (orders/jobs.py), {} where there is none; ``command``: the same as a command line."""

    key: str
    text: str
    confidence: str
    falsify: str
    job: dict[str, Any] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class TriageStep(Body, kind="triage_step"):
    """One of the method's six steps. ``state``: found (something to act on), clear (a class of fix is ruled out) or
    unknown (not looked at, and why). ``said``: keys of the findings whose text is the conclusion's."""

    run_id: int
    number: int
    title: str
    state: str
    evidence: list[str]
    conclusion: str
    rules_out: str
    findings: list[TriageFinding] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class TriageRun(Body, kind="triage"):
    """A triage's plan and course: running (``text`` says what), done (``text`` is the answer), failed or stopped.
    ``best`` is the part of the answer to act on, ``rest`` what else is so."""

    run_id: int
    target: str
    device: str
    arch: str
    shape: Shape
    knobs: dict[str, str]
    state: str
    text: str = ""
    unsafe: bool = False
    best: str = ""
    rest: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckRun(Body, kind="check_run"):
    """A check's plan and course: running, done or failed. ``bisect``: find the knob that changes the output.
    ``passed`` is None until it is done."""

    run_id: int
    target: str
    device: str
    arch: str
    shape: Shape
    a: dict[str, str]
    b: dict[str, str]
    times: int
    bisect: bool
    state: str
    text: str = ""
    passed: bool | None = None
    unsafe: bool = False


@dataclass(frozen=True, kw_only=True)
class Repeats(Body, kind="repeats"):
    """One setting launched many times in one fresh process, into buffers full of NaN.

    ``flaky_launches`` differ from the first, bit for bit, in at most ``flaky_elements`` of ``elements``; ``where`` says
    in which rows, heads and tiles. ``inputs`` is a hash of the input tensors' bytes. ``against`` the kept baseline
    output: '' (this is the baseline), bitwise, or differs; differences are over the RMS of the baseline, errors (FP32,
    sampled rows) over that of the reference.
    """

    worker: str
    plan_id: int
    setting: str
    times: int
    flaky_launches: int
    flaky_elements: int
    elements: int
    where: str
    against: str = ""
    differing_elements: int = 0
    max_difference: float = 0.0
    differs_where: str = ""
    rms_error: float | None = None
    baseline_rms_error: float | None = None
    verdict: str = ""
    passed: bool = True
    inputs: str = ""


@dataclass(frozen=True, kw_only=True)
class CleanBurst(Body, kind="clean", scene=False):
    """One burst of the clean twin: time of every launch, the SM clock during the burst where it is known, and the L2
    before each launch: warm (as the launch before left it) or cold (overwritten). ``host_us``: what the host needs to
    queue one launch."""

    worker: str
    plan_id: int
    launch: int
    times_us: list[float]
    sm_clock_mhz: float | None = None
    l2: str = "warm"
    host_us: float | None = None


@dataclass(frozen=True, kw_only=True)
class RoleSample:
    """One role of one traced launch. Cycles of the SM clock; ``waits_cycles`` are means per step by cause;
    a cause missing there was not measured in this probe set."""

    role: str
    steps: int
    tiles: int
    period_median_cycles: float | None
    period_p5_cycles: float | None
    period_p95_cycles: float | None
    busy_cycles: float | None
    waits_cycles: dict[str, float]
    tile_overhead_cycles: float | None
    role_cycles: float | None
    periods_cycles: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Losses:
    """What did not become a number in one launch. Counts of events."""

    recorded: int
    dropped: int
    unmatched: int
    stale: int


@dataclass(frozen=True)
class Span:
    """One bar of the timeline: cycles from the timeline's start. ``wait``: nothing is done in it but waiting."""

    name: str
    begin_cycles: int
    end_cycles: int
    wait: bool = False


@dataclass(frozen=True)
class TimelineRow:
    """The spans of one role over a few steps."""

    role: str
    spans: list[Span]


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """A few steps of one launch as a Gantt chart. Same SM for all rows, so one clock."""

    first_step: int
    last_step: int
    steps_of_tile: int
    cycles: int
    rows: list[TimelineRow]


@dataclass(frozen=True, kw_only=True)
class TraceSample(Body, kind="trace", scene=False, numbers=True):
    """One launch of the traced twin, decoded. ``own``: the target's figures by its own definitions, cycles."""

    worker: str
    plan_id: int
    launch: int
    generation: int
    probe_set: str
    detail: bool
    time_us: float
    cta: int
    sm: int
    sm_clock_mhz: float | None
    cta_us: float | None
    losses: Losses
    roles: list[RoleSample]
    timeline: Timeline | None = None
    own: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GpuSample(Body, kind="gpu", scene=False):
    """What NVML (or the simulated device) says between bursts. None: not available here.

    ``held_back`` are NVML's running counters by reason: one that moves tells of a clock held back between two readings.
    """

    gpu_uuid: str
    name: str
    sm_clock_mhz: float | None
    mem_clock_mhz: float | None
    power_w: float | None
    power_limit_w: float | None
    temperature_c: float | None
    memory_used_mib: float | None
    memory_total_mib: float | None
    throttle: list[str]
    foreign_pids: list[int]
    cost_ms: float | None = None
    held_back: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BenchResult(Body, kind="bench", numbers=True):
    """One microbenchmark on one chip.

    ``status``: measured; compiled (SASS checked, not run); refused (``text`` says why: what SASS held, or a figure
    above the unit's limit); lacking (this architecture has no such instruction); failed. ``value`` and its p5 and p95
    over repeats are in ``unit``; ``curve`` is (threads, value). ``perfect`` is what a mix would reach if its units
    overlapped perfectly.
    """

    worker: str
    plan_id: int
    arch: str
    device: str
    name: str
    group: str
    unit: str
    status: str
    index: int
    total: int
    value: float | None = None
    p5: float | None = None
    p95: float | None = None
    limit: float | None = None
    limit_share: float | None = None
    perfect: float | None = None
    published: float | None = None
    results: int = 1
    threads: int = 0
    curve: list[tuple[int, float]] = field(default_factory=list)
    text: str = ""
    compiler: str = ""


@dataclass(frozen=True, kw_only=True)
class SweepState(Body, kind="sweep"):
    """A sweep's plan and course: running, done, or stopped (cut short).

    ``knob`` takes ``values``; ``series_knob`` (may be '') takes ``series`` around it. ``refused`` maps ``series/value``
    to the sentence that says why it is not launched. ``margin`` is relative and set before the run; ``baselines`` maps
    a series to the value that the others are compared with; ``comparisons`` share ``alpha``. ``contaminated``: why
    nothing of it may be believed.
    """

    sweep_id: int
    target: str
    device: str
    arch: str
    shape: Shape
    knobs: dict[str, str]
    knob: str
    values: list[str]
    series_knob: str
    series: list[str]
    state: str
    refused: dict[str, str] = field(default_factory=dict)
    text: str = ""
    margin: float | None = None
    alpha: float | None = None
    comparisons: int = 0
    baselines: dict[str, str] = field(default_factory=dict)
    contaminated: str = ""
    unsafe: bool = False


@dataclass(frozen=True, kw_only=True)
class SweepBlock(Body, kind="sweep_block", scene=False):
    """One block of a sweep: all live settings (by value) in random order, then in reverse. Times of every launch.

    ``phase``: measure, or fresh (the best again, in fresh processes and on fresh data). The pilot blocks set the scale
    of the evidence and are discarded; rejected blocks are whole.
    """

    sweep_id: int
    series: str
    phase: str
    number: int
    order: list[str]
    slices_us: list[list[float]]
    clocks_mhz: list[float | None]
    pilot: bool
    accepted: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class SweepPoint(Body, kind="sweep_point", numbers=True):
    """One setting of a sweep: medians with p5 and p95, from fresh workers. A later point of the same place replaces it.

    ``tflops`` and ``time_us`` are the clean twin's, over bursts; ``period_cycles`` is the traced period of the lead
    role; waits are means a step of the MMA role, as a share of its step. ``status``: measured, refused,
    failed, or null (the baseline again, which must not differ from it).

    ``word`` and ``verdict`` are against the series' baseline, its change of time in percent with the interval;
    ``log_e`` the evidence for any difference. ``plateau``: in, out or open; ``dropped``: it lost for certain and was
    not measured to the end. The ``fresh`` figures are those of new processes on new data: the ones to quote.
    """

    sweep_id: int
    plan_id: int
    series: str
    value: str
    status: str
    text: str = ""
    time_us: float | None = None
    tflops: float | None = None
    tflops_p5: float | None = None
    tflops_p95: float | None = None
    clean_period_cycles: float | None = None
    period_cycles: float | None = None
    period_p5_cycles: float | None = None
    period_p95_cycles: float | None = None
    wait_p_share: float | None = None
    wait_p_rest_share: float | None = None
    probe_effect: float | None = None
    sm_clock_mhz: float | None = None
    bursts: int = 0
    traces: int = 0
    output: str = ""
    word: str = ""
    verdict: str = ""
    change_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    log_e: float | None = None
    blocks: int = 0
    plateau: str = ""
    dropped: bool = False
    fresh_percent: float | None = None
    fresh_low_percent: float | None = None
    fresh_high_percent: float | None = None
    fresh_word: str = ""


@dataclass(frozen=True, kw_only=True)
class AbState(Body, kind="ab"):
    """An A/B's plan and course: starting, running, done, stopped (cut short), failed, or cleared by a viewer.

    ``word`` is the strongest of the verdict; ``equivalent`` may hold beside faster or slower.

    ``margin`` is relative and set before the run. ``rho`` is the scale of the evidence, from the pilot; ``mode`` is
    burst or sustained; ``tier`` 1: this pair of processes, 2: replicated over fresh pairs. ``l2`` is its state before
    each timed launch, ``l2_gap_percent`` how much slower cold is than warm, by arm.
    """

    ab_id: int
    target: str
    device: str
    arch: str
    shape: Shape
    a: dict[str, str]
    b: dict[str, str]
    margin: float
    alpha: float
    mode: str
    tier: int
    seed: int
    state: str
    text: str = ""
    rho: float | None = None
    word: str = ""
    l2: str = "warm"
    l2_gap_percent: dict[str, float] = field(default_factory=dict)
    unsafe: bool = False
    equivalent: bool = False


@dataclass(frozen=True, kw_only=True)
class AbBlock(Body, kind="ab_block", numbers=True):
    """One block of four slices in the order that a fair coin chose (ABBA or BAAB), and what is known after it.

    ``slices_us`` are the times of every launch, ``clocks_mhz`` the SM clock of each slice where it is known.
    ``log_ratio`` is mean log time of B less that of A. Rejected blocks are whole, and say why. ``low`` and ``high`` are
    the running confidence sequence, log ratios.
    """

    ab_id: int
    number: int
    order: str
    slices_us: list[list[float]]
    clocks_mhz: list[float | None]
    log_ratio: float
    log_ratio_cycles: float | None
    pilot: bool
    accepted: bool
    reason: str = ""
    tripped: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    log_e: float | None = None
    word: str = ""
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class AbPair(Body, kind="ab_pair"):
    """One fresh pair of processes of a replicated (tier 2) A/B: mean log ratio of its ``blocks``, and what is known
    after it. Pairs are the unit there, as blocks are in tier 1."""

    ab_id: int
    number: int
    log_ratio: float
    blocks: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    log_e: float | None = None
    word: str = ""
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class AbArm(Body, kind="ab_arm"):
    """One arm so far: medians of its clean slices and of its traced launches (periods and waits in cycles).
    ``power_w``: in sustained mode, NVML's reading at the end of its slices; bursts are too short for it."""

    ab_id: int
    arm: str
    knobs: dict[str, str]
    time_us: float | None
    tflops: float | None
    period_cycles: float | None
    period_p95_cycles: float | None
    waits_cycles: dict[str, float]
    step_cycles: float | None
    sm_clock_mhz: float | None
    probe_effect: float | None
    output: str
    output_text: str
    rejected: int
    power_w: float | None = None


@dataclass(frozen=True, kw_only=True)
class HangReport(Body, kind="hang"):
    """A launch that did not end in time, as read from the buffer while it hung: ``roles`` a sentence each, ``text``
    which signal is missing. ``state`` is what the worker was doing."""

    worker: str
    plan_id: int
    deadline_s: float
    state: str
    text: str
    roles: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Fault(Body, kind="fault"):
    """Something went wrong with a worker: why, the last of its stderr, and what to try. ``permanent``: a fresh process
    would only repeat it."""

    worker: str
    plan_id: int
    reason: str
    text: str
    hint: str
    stderr_tail: list[str] = field(default_factory=list)
    permanent: bool = False


@dataclass(frozen=True)
class Notice(Body, kind="notice"):
    """A sentence for the person. Levels: info, warning, error."""

    level: str
    text: str


@dataclass(frozen=True)
class Output(Body, kind="output"):
    """A line that a worker or its libraries printed."""

    worker: str
    text: str


@dataclass(frozen=True, kw_only=True)
class EngineState(Body, kind="engine"):
    """running, paused, waiting (for the GPU), failed (waits for another plan), stopped; then ``code`` is the exit
    code."""

    state: str
    pid: int
    viewers: int
    text: str = ""
    code: int | None = None


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """One line of the log."""

    kind: str
    seq: int
    wall_ns: int
    mono_ns: int
    source: str
    body: Body
    simulated: bool = False


DIGITS = 10  # significant ones of a float: an error of 5e-10 at most


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if value == value and abs(value) != float("inf") else None
    return value


def stamp(body: Body, source: str, seq: int = 0) -> Envelope:
    """Put a body into an envelope with the present wall and monotonic time."""
    return Envelope(
        kind=body.kind, seq=seq, wall_ns=time.time_ns(), mono_ns=time.monotonic_ns(), source=source, body=body
    )


def to_line(envelope: Envelope) -> bytes:
    """One line of the log, with its newline. Non-finite floats become null."""
    payload: dict[str, Any] = {
        "kind": envelope.kind,
        "seq": envelope.seq,
        "wall_ns": envelope.wall_ns,
        "mono_ns": envelope.mono_ns,
        "source": envelope.source,
        "body": _plain(envelope.body),
    }
    if envelope.simulated:
        payload["simulated"] = True
    return json.dumps(payload, separators=(",", ":"), allow_nan=False).encode() + b"\n"
