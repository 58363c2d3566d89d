"""Orders changed by a person or a job, and why the result can not be launched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fa4top.orders.command_line import Setting
from fa4top.orders.order import Order
from fa4top.records import Plan, Shape
from fa4top.targets.base import QUIET
from fa4top.targets.catalog import describe


def problems_of(
    target: str, shape: Shape, arch: str, chosen: Mapping[str, str], unsafe: bool
) -> tuple[dict[str, str], list[str]]:
    """(full setting, what is wrong with it): the first kind of reason only, since the later ones need the earlier."""
    description = describe(target)
    knobs, problems = description.setting(dict(chosen))
    if not problems and (message := description.shape_problem(shape, arch, knobs)):
        problems = [message]
    if not problems and not unsafe and (message := description.danger(shape, arch, knobs)):
        problems = [f"{message}; --unsafe runs it all the same"]
    return knobs, problems


def changed_order(order: Order, changes: Mapping[str, str], shape: Shape | None = None) -> tuple[Order, list[str]]:
    """The order with some knobs (and the shape) changed, and why it can not be launched, if so."""
    shape = shape or order.shape
    knobs, problems = problems_of(order.target, shape, order.arch, {**order.knobs, **changes}, order.unsafe)
    return replace(order, knobs=knobs, shape=shape), problems


def setting_of(order: Order) -> Setting:
    """What a command line has to say to launch this order's setting."""
    chosen = describe(order.target).chosen(order.knobs)
    if describe(order.target).device is None:
        return Setting(order.target, order.shape, order.arch, chosen)
    return Setting(order.target, order.shape, "", chosen)


def bitwise_knobs(a: Order, b: Order) -> str | None:
    """Names of the knobs that differ when all of them claim to be bitwise; None when one may change numerics."""
    differing = [knob for knob in describe(a.target).knobs if a.knobs[knob.name] != b.knobs[knob.name]]
    if all(knob.numerics == "bitwise" for knob in differing):
        return ", ".join(knob.name for knob in differing) or "the same setting"
    return None


def plan_record(order: Order, plan_id: int) -> Plan:
    """The record that says what is measured from here on."""
    description = describe(order.target)
    defaults = description.defaults()
    published = description.published
    return Plan(
        plan_id=plan_id,
        target=order.target,
        device=order.gpu_name,
        gpu_uuid=order.gpu_uuid,
        arch=order.arch,
        shape=order.shape,
        knobs=order.knobs,
        seed=order.seed,
        simulated=order.simulated,
        unsafe=order.unsafe,
        quiet=[name for name, value in order.knobs.items() if value in QUIET and value == defaults.get(name, value)],
        published=published(order.gpu_name, order.shape, order.knobs) if published is not None else None,
    )
