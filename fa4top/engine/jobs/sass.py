"""The SASS job: compile the present setting, or both arms of a comparison, once more; record what the code holds."""

from __future__ import annotations

import asyncio

from fa4top.analysis.sass.compare import compare, figures, headline
from fa4top.engine.host import Host
from fa4top.engine.sass_reading import Read, SassError, Wanted, read_settings
from fa4top.orders.jobs import SassJob
from fa4top.orders.order import Order
from fa4top.orders.typed import setting_words
from fa4top.records import SassReport
from fa4top.targets.catalog import describe
from fa4top.targets.legal import changed_order


def wanted_of(order: Order) -> Wanted:
    """What to compile for an order.

    Raises:
        SassError: the target has no code that can be compiled without launching it.
    """
    if not describe(order.target).compile_only:
        raise SassError(f"target {order.target} has no SASS to read here")
    return Wanted(order.target, order.shape, order.arch, order.knobs, order.python)


def report(order: Order, run_id: int, setting: str, read: Read | SassError, difference: str = "") -> SassReport:
    """A kernel as a record; of one that could not be read, why."""
    if isinstance(read, SassError):
        text = f"{read.text}. {read.hint}".rstrip(". ")
        return SassReport(
            run_id=run_id,
            target=order.target,
            arch=order.arch,
            setting=setting,
            versions={},
            figures={},
            headline="",
            difference="",
            error=text,
        )
    kernel = read.kernel
    return SassReport(
        run_id=run_id,
        target=order.target,
        arch=order.arch,
        setting=setting,
        versions=read.versions,
        figures=figures(kernel),
        headline=headline(kernel),
        difference=difference,
    )


async def run_sass(host: Host, job: SassJob) -> None:
    """Compile, read, record; nothing is launched."""
    run_id = host.next_plan_id()
    orders = [changed_order(host.order, job.a)[0]]
    names = ["present setting" if not job.a else setting_words(job.a)]
    if job.b:
        orders.append(changed_order(host.order, job.b)[0])
        names.append(setting_words(job.b))
    try:
        found = await asyncio.to_thread(read_settings, [wanted_of(order) for order in orders])
    except SassError as error:
        found = [error for _ in orders]
    difference = ""
    if len(found) == 2 and isinstance(found[0], Read) and isinstance(found[1], Read):
        difference = compare(found[0].kernel, found[1].kernel).text
    for number, (order, name, read) in enumerate(zip(orders, names, found, strict=True)):
        host.append(report(order, run_id, name, read, difference if number else ""))
