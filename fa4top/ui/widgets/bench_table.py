"""Screen 4's table: what every instruction does on this chip, against its limit and the published figure."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.tables import BenchRow, bench_row
from fa4top.targets.bench.published import published
from fa4top.targets.bench.suite import SUITE, Kernel
from fa4top.ui.glyphs import Row
from fa4top.ui.view import View
from fa4top.ui.widgets.scrolled import Scrolled

UNITS = {"instructions/clk": "/clk", "B/clk": "B/clk", "cycles": "cyc", "cycles/tile": "cyc/tile"}
BAR = 20
WIDE = 110


class BenchTable(Scrolled):
    """Each row: the figure, its share of the unit's limit (of perfect overlap for mixes), what was published."""

    HELP = (
        "One SM, 8 chains a thread, best of the thread counts; instructions per clock and SM unless the unit says "
        "otherwise. share: of the unit's limit, for mixes of perfect overlap (every unit as fast as alone). Figures "
        "whose SASS is not what was meant, or that are above the limit, are refused. r runs it; arrows move."
    )

    def table(self, snapshot: Snapshot, view: View, width: int) -> tuple[list[Row], list[Row]]:
        """Head and one row a microbenchmark, by group."""
        results = {result.name: result for result in snapshot.bench}
        plan = snapshot.plan
        device = next(iter(results.values())).device if results else (plan.device if plan else "")
        name_width = max(30, min(46, width - 46))
        wide = width >= WIDE
        head = f" {'':{name_width}}{'figure':>8} {'unit':8}{'share':>7}{'publ.':>7}"
        if wide:
            head += f"  {'':{BAR}}{'spread':>7}{'threads':>8}"
        rows: list[Row] = []
        for group in dict.fromkeys(kernel.group for kernel in SUITE):
            rows.append([(f" {group}", "title")])
            for kernel in SUITE:
                if kernel.group != group:
                    continue
                result = results.get(kernel.name)
                row = bench_row(result) if result else _blank(kernel, device)
                rows.append(self._row(row, name_width, wide))
        return [[(head, "dim")]], rows

    def _row(self, row: BenchRow, name_width: int, wide: bool) -> Row:
        name = row.name if len(row.name) < name_width else row.name[: name_width - 2] + "…"
        if row.status != "measured":
            style = "bad" if row.status in ("refused", "failed") else "dim"
            # where the figure would be, so that it is seen at any width; a long reason takes the whole line
            note = f"   {row.note:<21}{row.published:>7}" if len(row.note) <= 21 else f"   {row.note}"
            return [(f"  {name:{name_width - 1}}", "dim"), (note, style)]
        share = f"{row.limit_share:.0%}" if row.limit_share is not None else ""
        cells: Row = [
            (f"  {name:{name_width - 1}}", "text"),
            (f"{row.value:>8}", "strong"),
            (f" {UNITS.get(row.unit, row.unit):8}", "dim"),
            (f"{share:>7}", "text"),
            (f"{row.published:>7}", "dim"),
        ]
        if wide:
            full = round(BAR * min(1.0, row.limit_share or 0.0))
            cells += [
                ("  " + self.g.full * full, "role-a"),
                (self.g.thin * (BAR - full) if row.limit_share is not None else " " * BAR, "frame"),
                (f"{row.spread:>7}{row.threads:>8}", "dim"),
            ]
        cells.append((f"  {row.note}", "dim"))
        return cells


def _blank(kernel: Kernel, device: str) -> BenchRow:
    figure = published(device, kernel.name)
    shown = f"{figure:g}" if figure is not None else ""
    return BenchRow(
        name=kernel.name,
        value="",
        unit=kernel.unit,
        limit_share=None,
        limit="",
        published=shown,
        spread="",
        threads="",
        note="not run",
        status="waiting",
    )
