"""What a target says of itself without CUDA: knobs, shapes, availability. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from fa4top.records import Shape
from fa4top.targets.presets import PRESETS


@dataclass(frozen=True)
class Knob:
    """One named setting of a target.

    ``values`` are the legal values as text (empty: any integer in ``low``..``high``). ``when`` says when it is read:
    ``process`` knobs need a fresh worker. ``numerics``: ``bitwise`` (outputs equal), ``changes`` or ``unknown``. With a
    ``check`` the values are those that a form offers, and any that it lets pass may be typed.
    """

    name: str
    default: str
    text: str
    values: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    when: str = "process"
    numerics: str = "bitwise"
    architectures: tuple[str, ...] = ()
    check: Callable[[str], str | None] | None = None

    def problem(self, value: str) -> str | None:
        """Why ``value`` is not legal, in one sentence; None when it is."""
        if self.check is not None:
            return self.check(value)
        if self.values:
            if value in self.values:
                return None
            return f"{self.name}={value} is not legal; choose one of {', '.join(self.values)}"
        try:
            number = int(value)
        except ValueError:
            return f"{self.name}={value} is not a whole number"
        if (self.low is not None and number < self.low) or (self.high is not None and number > self.high):
            return f"{self.name}={value} is outside {self.low}..{self.high}"
        return None


# the positive control of an A/B: the same on every GPU target, so that any of them can be tested for it
HANDICAP = Knob(
    "handicap",
    "off",
    "percent of a launch's time by which a delay kernel lengthens it; 0: the delay kernel for no time, arm A of a test "
    "whether an A/B finds a known difference",
    ("off", "0", "0.25", "1", "3"),
)


def handicap_percent(knobs: dict[str, str]) -> float | None:
    """What the delay kernel adds, percent of a launch; None where there is none."""
    value = knobs.get(HANDICAP.name, HANDICAP.default)
    return None if value == HANDICAP.default else float(value)


@dataclass(frozen=True)
class Description:
    """A target as the engine and the CLI see it.

    ``launcher`` is ``module:function``, imported in workers only; the function takes a LaunchRequest and returns a
    Launcher. ``requires`` are modules that the worker's interpreter must have. ``hazard`` names settings that only
    ``--unsafe`` may launch. ``prepare`` is ``module:function(knobs)``: imports that take long, done ahead by a worker
    that stands by; it may serve a setting whose ``fixed_at_import`` knobs are those of ``knobs``. ``notes`` says what
    is worth knowing of a setting that may run.
    """

    name: str
    summary: str
    launcher: str
    knobs: tuple[Knob, ...]
    default_shape: Shape
    requires: tuple[str, ...]
    simulated: bool
    shape_problem: Callable[[Shape, str, dict[str, str]], str | None]
    hazard: Callable[[Shape, str, dict[str, str]], str | None] | None = None
    prepare: str = ""
    fixed_at_import: tuple[str, ...] = ()
    notes: Callable[[Shape, str, dict[str, str]], list[str]] | None = None

    def danger(self, shape: Shape, arch: str, knobs: dict[str, str]) -> str | None:
        """Why only ``--unsafe`` may launch this setting; None when anybody may."""
        return self.hazard(shape, arch, knobs) if self.hazard else None

    def setting(self, chosen: dict[str, str]) -> tuple[dict[str, str], list[str]]:
        """The full assignment of knobs, and what is wrong with the chosen values."""
        known = {knob.name: knob for knob in self.knobs}
        problems = []
        for name, value in chosen.items():
            if name not in known:
                near = ", ".join(sorted(known)) or "none"
                problems.append(f"{self.name} has no knob {name}; it has: {near}")
            elif message := known[name].problem(value):
                problems.append(message)
        return {name: chosen.get(name, knob.default) for name, knob in known.items()}, problems


_FIELD = {
    "b": "batch",
    "s": "seqlen",
    "sq": "seqlen_q",
    "sk": "seqlen_k",
    "h": "heads",
    "hk": "kv_heads",
    "d": "head_dim",
    "dv": "head_dim_v",
}
_PART = re.compile(r"(sq|sk|hk|dv|b|s|h|d)=?(\d+)$")


class ShapeError(ValueError):
    """A shape that can not be read; the text says why."""


def parse_shape(text: str, default: Shape) -> Shape:
    """Read ``b1,s8192,h24,d128``; parts left out keep the default's values, ``s`` sets both lengths. Or a preset.

    Raises:
        ShapeError: with one sentence.
    """
    if (preset := PRESETS.get(text.strip())) is not None:
        batch, length, heads, dim = preset
        text = f"b{batch},s{length},h{heads},d{dim}"
    values: dict[str, int] = {}
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        match = _PART.fullmatch(part)
        if match is None:
            raise ShapeError(
                f"shape part '{part}' is not understood; write b1,s8192,h24,d128 "
                "(also sq, sk for lengths apart, hk for kv heads, dv for V's head dim), or a published shape: "
                + ", ".join(PRESETS)
            )
        values[_FIELD[match[1]]] = int(match[2])
    if any(number < 1 for number in values.values()):
        raise ShapeError("every number in a shape must be at least 1")
    if "seqlen" in values:
        length = values.pop("seqlen")
        values.setdefault("seqlen_q", length)
        values.setdefault("seqlen_k", length)
    if "heads" in values:
        values.setdefault("kv_heads", values["heads"])
    if "head_dim" in values:
        values.setdefault("head_dim_v", values["head_dim"])
    return replace(default, **values)  # type: ignore[arg-type]


def format_shape(shape: Shape) -> str:
    """The short form that ``parse_shape`` reads."""
    lengths = f"s{shape.seqlen_q}" if shape.seqlen_q == shape.seqlen_k else f"sq{shape.seqlen_q},sk{shape.seqlen_k}"
    kv = "" if shape.kv_heads == shape.heads else f",hk{shape.kv_heads}"
    dv = "" if shape.head_dim_v == shape.head_dim else f",dv{shape.head_dim_v}"
    return f"b{shape.batch},{lengths},h{shape.heads}{kv},d{shape.head_dim}{dv}"


def attention_flops(shape: Shape) -> float:
    """Floating-point operations of one forward pass: 2 b h sq (d + dv) x the mean number of keys a row sees.

    For causal attention the mean is (max(0, sk - sq) + sk) / 2, the convention of the FA benchmarks.
    """
    keys = shape.seqlen_k
    mean_keys = (max(0, keys - shape.seqlen_q) + keys) / 2 if shape.causal else keys
    return 2.0 * shape.batch * shape.heads * shape.seqlen_q * mean_keys * (shape.head_dim + shape.head_dim_v)


def common_shape_problem(shape: Shape) -> str | None:
    """What no target can run."""
    if shape.heads % shape.kv_heads:
        return f"{shape.heads} heads can not share {shape.kv_heads} kv heads; kv heads must divide heads"
    if shape.causal and shape.seqlen_q > shape.seqlen_k:
        return "causal with more queries than keys leaves rows without keys; make sk at least sq"
    return None
