"""Put probes into flash-attn-4's kernels while the DSL traces them. Nothing on disk changes. Workers only.

What is common to all kernels is here; what a kernel has beside it is in ``inject_sm90`` and ``inject_sm100``.

The kernel class's role methods are wrapped before the first compile. Inside a wrapper the named pipeline arguments are
replaced by copies whose barriers record, and a *current recorder* serves the functions that a role calls (GEMMs, the
scheduler, the turn barrier): tracing is sequential Python, so one variable is enough.
"""

from __future__ import annotations

import copy
import importlib
import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any

from fa4top.analysis.trace.events import WIDE_TILE, event_id
from fa4top.targets.fa4.probes import BarrierProbe, KernelProbes, NamedBarrierProbe, ProbeSet, RoleProbes
from fa4top.targets.references import load

LAYOUT_ID = 1

_STEP_REGISTERS = ("turn begin", "turn end", "wait K", "wait V", "tile begin", "epilogue", "GEMMs issued")


class InjectionError(RuntimeError):
    """The installed package does not look as the probes expect; says what was expected and what was found."""


class Injection:
    """What was installed, and after a compile what it emitted."""

    def __init__(self, probes: KernelProbes, probe_set: ProbeSet, buffer: int, config: int) -> None:
        self.probes = probes
        self.probe_set = probe_set
        self.buffer = buffer
        self.config = config
        self.current: Any = None
        self.counts: dict[str, Counter[str]] = {}
        self.notes: list[str] = []

    def has(self, point: str) -> bool:
        """Is this point in the compiled set?"""
        return point in self.probe_set.points

    def probe_counts(self) -> dict[str, int]:
        """Probes emitted per role method since installation."""
        return {role: sum(counter.values()) for role, counter in self.counts.items()}


def verify_package(probes: KernelProbes) -> list[str]:
    """What the installed package lacks of what the probes need; empty when all is there."""
    try:
        module = importlib.import_module(probes.module)
    except ImportError as error:
        return [f"module {probes.module}: {error}"]
    kernel = getattr(module, probes.class_name, None)
    if kernel is None:
        return [f"class {probes.class_name} in {probes.module}"]
    missing = [f"method {probes.class_name}.{name}" for name in probes.required_methods if not hasattr(kernel, name)]
    for role in probes.roles:
        method = getattr(kernel, role.method, None)
        if method is None:
            continue
        arguments = set(inspect.signature(method).parameters)
        wanted = {p.argument for p in role.barriers} | {p.argument for p in role.named}
        if role.index_argument:
            wanted.add(role.index_argument)
        missing += [f"argument {name} of {role.method}" for name in sorted(wanted - arguments)]
    return missing


def install(probes: KernelProbes, probe_set: ProbeSet, buffer: int, config: int) -> Injection:
    """Wrap the kernel class for all compiles that follow in this process.

    Args:
        buffer: device address of the first header (host-mapped memory is fine).
        config: device address of the config words; keep it in device memory, it is read at role start.

    Raises:
        InjectionError: the package lacks a method or argument that the probes name.
    """
    missing = verify_package(probes)
    if missing:
        raise InjectionError(
            f"flash-attn-4 does not look as the {probes.family.name} probes expect; missing: " + "; ".join(missing)
        )
    injection = Injection(probes, probe_set, buffer, config)
    kernel = getattr(importlib.import_module(probes.module), probes.class_name)
    for role in probes.roles:
        _wrap_role(kernel, role, injection)
    load(probes.wrapper)(kernel, injection)
    _wrap_schedulers(injection)
    return injection


def wrap(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a wrapper in a method's place."""
    setattr(owner, name, make(getattr(owner, name)))


def _wrap_role(kernel: Any, role: RoleProbes, injection: Injection) -> None:
    original = getattr(kernel, role.method)
    signature = inspect.signature(original)

    def traced(self: Any, *args: Any, **kwargs: Any) -> Any:
        from fa4top.targets.fa4.record_ops import Place, Recorder

        bound = signature.bind(self, *args, **kwargs)
        arguments = bound.arguments
        layout = injection.probes.layout
        first = layout.roles.index(role.roles[0])
        index: Any = 0
        if role.index_argument is not None:
            index = arguments[role.index_argument]
            if role.index_divisor > 1:
                index = index // role.index_divisor
        # the thread whose index has none of these bits records
        elected = 31 if role.elected == "warp" else 127
        place = Place(layout, injection.buffer, injection.config, LAYOUT_ID, first)
        recorder = Recorder(place, role.method, index, elected)
        injection.counts[role.method] = recorder.counts
        if layout.stride == 16:
            for name in _STEP_REGISTERS:  # here, so that they dominate every loop of the role
                recorder.register(name)
        if injection.has("waits"):
            for probe in role.barriers:
                if probe.operation == "wait" or injection.has("handover"):
                    arguments[probe.argument] = _traced_pipeline(arguments[probe.argument], recorder, probe, injection)
        if injection.has("correction"):
            for named in role.named:
                arguments[named.argument] = _traced_named(arguments[named.argument], recorder, named)
        outer, injection.current = injection.current, recorder
        try:
            result = original(*bound.args, **bound.kwargs)
            recorder.finish()
        finally:
            injection.current = outer
        return result

    setattr(kernel, role.method, traced)


def _with_class(instance: Any, name: str, methods: dict[str, Any]) -> Any:
    """A shallow copy whose class is a subclass with some methods replaced (the DSL's dataclasses are frozen)."""
    clone = copy.copy(instance)
    object.__setattr__(clone, "__class__", type(name, (type(instance),), methods))
    return clone


def _traced_pipeline(pipeline: Any, recorder: Any, probe: BarrierProbe, injection: Injection) -> Any:
    attribute = f"sync_object_{probe.side}"
    barrier = getattr(pipeline, attribute)
    base = type(barrier)
    methods: dict[str, Any] = {}
    event = event_id(probe.event)

    if probe.operation == "arrive":

        def arrive(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = base.arrive(self, *args, **kwargs)
            recorder.mark(event)
            return result

        methods["arrive"] = arrive
    elif injection.probes.layout.stride == 16:
        methods |= _packed_wait(base, recorder, probe)
    else:
        methods |= _event_wait(base, recorder, probe, event)
    clone = copy.copy(pipeline)
    object.__setattr__(clone, attribute, _with_class(barrier, f"Traced{base.__name__}", methods))
    return clone


def _packed_wait(base: Any, recorder: Any, probe: BarrierProbe) -> dict[str, Any]:
    """The wait's duration goes into a register that the step's record picks up."""
    register = recorder.register(probe.event)

    def try_wait(self: Any, index: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> Any:
        from cutlass import cute

        # try_wait may block for a while unseen; test_wait never does
        return cute.arch.mbarrier_test_wait(self.get_barrier(index, loc=loc, ip=ip), phase, loc=loc, ip=ip)

    def wait(self: Any, index: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> None:
        begin = recorder.clock(f"{probe.event} begin")
        base.wait(self, index, phase, loc=loc, ip=ip)
        register[0] = recorder.clock(f"{probe.event} end") - begin

    return {"try_wait": try_wait, "wait": wait}


def _event_wait(base: Any, recorder: Any, probe: BarrierProbe, event: int) -> dict[str, Any]:
    def wait(self: Any, index: Any, phase: Any, *, loc: Any = None, ip: Any = None) -> None:
        from cutlass import cute
        from cutlass.cutlass_dsl import if_generate

        if probe.also_mark is not None and recorder.scratch.get("in step"):
            recorder.mark(event_id(probe.also_mark))
        ready = cute.arch.mbarrier_test_wait(self.get_barrier(index, loc=loc, ip=ip), phase, loc=loc, ip=ip)

        def blocked() -> None:
            recorder.begin(event)
            base.wait(self, index, phase, loc=loc, ip=ip)
            recorder.end(event)

        if_generate(ready == 0, blocked, loc=loc, ip=ip)

    return {"wait": wait}


def _traced_named(barrier: Any, recorder: Any, probe: NamedBarrierProbe) -> Any:
    base = type(barrier)
    event = event_id(probe.event)

    def blocking(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.begin(event)
        result = getattr(base, probe.method)(self, *args, **kwargs)
        recorder.end(event)
        return result

    return _with_class(barrier, f"Traced{base.__name__}", {probe.method: blocking})


def _wrap_schedulers(injection: Injection) -> None:
    """A tile ends where its role asks for the next one."""
    module = importlib.import_module("flash_attn.cute.tile_scheduler")
    wide = injection.probes.layout.stride == 16

    def advance(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = injection.current
            if recorder is None or not injection.has("tile"):
                return original(self, *args, **kwargs)
            if wide:
                now = recorder.clock("tile end")
                begin, epilogue = recorder.register("tile begin"), recorder.register("epilogue")
                recorder.wide(WIDE_TILE, (begin[0], epilogue[0], now))
            else:
                recorder.mark(event_id("tile"))
            result = original(self, *args, **kwargs)
            if wide:
                recorder.register("tile begin")[0] = recorder.clock("tile begin")
            return result

        return wrapped

    def initial(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            recorder = injection.current
            if recorder is not None and wide and injection.has("tile"):
                recorder.register("tile begin")[0] = recorder.clock("tile begin")
            return result

        return wrapped

    for _, scheduler in inspect.getmembers(module, inspect.isclass):
        for name, make in (("advance_to_next_work", advance), ("initial_work_tile_info", initial)):
            if name in vars(scheduler):
                wrap(scheduler, name, make)
