"""What a target says of itself without CUDA: knobs, shapes, availability. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fa4top.records import Published, Shape, StepWork


@dataclass(frozen=True)
class Knob:
    """One named setting of a target.

    ``values`` are the legal values as text (empty: any integer in ``low``..``high``). ``when`` says when it is read:
    ``process`` knobs need a fresh worker. ``numerics``: ``bitwise`` (outputs equal), ``changes`` or ``unknown``. With a
    ``check`` the values are those that a form offers, and any that it lets pass may be typed. ``tries``: the values
    that a sweep should try, where not all are worth it.
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
    tries: tuple[str, ...] = ()

    @property
    def worth_trying(self) -> tuple[str, ...]:
        """Values for a sweep."""
        return self.tries or tuple(value for value in self.values if value != "auto")

    @property
    def legal(self) -> str:
        """Its values in a few words."""
        return ", ".join(self.values) or f"{self.low}..{self.high}"

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


QUIET = ("auto", "0", "off")  # values that say nothing, where they are the default


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


OK, MISSING, NOTE = "ok", "missing", "note"


@dataclass(frozen=True)
class Finding:
    """One thing that doctor looked at: ok, missing (with what fixes it) or a note."""

    what: str
    state: str
    found: str
    fix: str = ""


@dataclass(frozen=True)
class Described:
    """What stands in for a GPU where there is none: a chip that is simulated."""

    arch: str
    name: str
    uuid: str


@dataclass(frozen=True, kw_only=True)
class Located:
    """Where the sources of a target are that is more than a package of its interpreter.

    ``path`` goes to the workers ('' when it is installed there); ``stand_in`` takes a GPU's place where the sources are
    a model for tests; ``requires`` are modules beside the description's; ``problems`` judges a setting against these
    sources.
    """

    path: str
    sentence: str
    stand_in: Described | None = None
    requires: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    problems: Callable[[dict[str, str]], list[str]] = lambda knobs: []


@dataclass(frozen=True, kw_only=True)
class Description:
    """A target as the engine, the screens and the CLI see it; nothing here imports CUDA.

    Attributes:
        launcher: ``module:function``, imported in workers only; the function takes a LaunchRequest and returns a
            Launcher.
        requires: modules that the worker's interpreter must have.
        extra: the extras of fa4top that bring them.
        shape_problem: why a shape and setting can not run on an architecture at all.
        hazard: settings that only ``--unsafe`` may launch.
        notes: what is worth knowing of a setting that may run.
        work: what a step asks of the chip's units (floors).
        prepare: ``module:function(knobs)``: imports that take long, done ahead by a worker that stands by; it may serve
            a setting whose ``fixed_at_import`` knobs are those of ``knobs``.
        compile_only: ``module:function(shape, arch, knobs, probe_set)`` -> Compiled: what compiles without a GPU; ''
            where nothing does.
        default_arch: what is compiled for when nobody says.
        tries: knobs to try for a cause that triage names: ``handoff`` (where P is handed over), ``load`` (K and V come
            late). The first of them is what the sweep's form offers.
        device: of a setting that runs on no GPU of this node: what stands in for it.
        path_variable: environment variable that tells a worker where the target's sources are; '' for none.
        locate: ``module:function(folder, here, installed)`` -> Located: finds a target that has sources of its own; ''
            for one that is a package of the interpreter. ``installed`` is what the interpreter has of ``module``.
        faults: faults that can be planted, by name.
        published: what others published for a device, shape and setting.
        distributions: packages whose versions matter, beside those that are required.
        doctor: ``module:function(modules, versions)`` -> [Finding]: what the target says of an interpreter, by where
            its modules lie (None: not there) and the versions of its packages.
        about: more lines for ``fa4top knobs``.
    """

    name: str
    summary: str
    launcher: str
    knobs: tuple[Knob, ...]
    default_shape: Shape
    requires: tuple[str, ...]
    simulated: bool
    shape_problem: Callable[[Shape, str, dict[str, str]], str | None]
    extra: str = ""
    hazard: Callable[[Shape, str, dict[str, str]], str | None] | None = None
    notes: Callable[[Shape, str, dict[str, str]], list[str]] | None = None
    work: Callable[[Shape, str, dict[str, str]], StepWork] | None = None
    prepare: str = ""
    fixed_at_import: tuple[str, ...] = ()
    compile_only: str = ""
    default_arch: str = ""
    tries: Mapping[str, str] = field(default_factory=dict)
    device: Callable[[dict[str, str]], Described] | None = None
    path_variable: str = ""
    locate: str = ""
    faults: Mapping[str, str] = field(default_factory=dict)
    about: Callable[[], list[str]] | None = None
    published: Callable[[str, Shape, dict[str, str]], Published | None] | None = None
    distributions: tuple[str, ...] = ()
    doctor: str = ""

    def knob(self, name: str) -> Knob | None:
        """A knob by name."""
        return next((knob for knob in self.knobs if knob.name == name), None)

    def defaults(self) -> dict[str, str]:
        """Every knob at its default."""
        return {knob.name: knob.default for knob in self.knobs}

    def chosen(self, knobs: Mapping[str, str]) -> dict[str, str]:
        """Those knobs of a setting that are not at their default."""
        defaults = self.defaults()
        return {name: value for name, value in knobs.items() if value != defaults.get(name)}

    def to_try(self, cause: str, arch: str) -> tuple[str, list[str]]:
        """(knob, values) to sweep for a cause on this chip; ('', []) where there is none."""
        knob = self.knob(self.tries.get(cause, ""))
        if knob is None or (knob.architectures and arch not in knob.architectures):
            return "", []
        return knob.name, list(knob.worth_trying)

    def offered(self) -> Knob:
        """The knob that a person most likely wants to sweep."""
        return next((knob for name in self.tries.values() if (knob := self.knob(name))), self.knobs[0])

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
