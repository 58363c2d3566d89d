"""The lines under the panes: kernel account, GPU, losses and checks."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.ui.glyphs import Row, length, number
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines

WITH_COST = 110
# the fork's figures, as short as a row of 80 columns wants them
OWN = {
    "softmax_period": "period",
    "softmax_busy": "busy",
    "softmax_stage": "stage",
    "mma_qk_pv": "QK+PV",
    "mma_wait_p": "wait P",
    "p2_wait": "P 2nd",
}


class Facts(Lines):
    """Three rows of facts; a field that is not known says so."""

    HELP = (
        "kernel: clean time, TFLOP/s, and where the time goes (steps, tile ends, idle SMs of the last wave). "
        "gpu: SM clock by NVML and, in brackets, by the kernel's own anchors; power; temperature; throttling. "
        "own: figures by the target's own definitions, where it has a trace of its own. published: of this chip, mode "
        "and shape. lost: events that had no room. unmatched: a begin or end without its partner, or time going "
        "backward. stale: slots of an older launch. checked: RMS error against FP32. "
        "twins: launches of the clean and the traced twin."
    )

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """Kernel, GPU, health."""
        own = [self._own(snapshot, width)] if snapshot.own else []
        return [self._kernel(snapshot), *own, self._gpu(snapshot), self._health(snapshot)]

    def _own(self, snapshot: Snapshot, width: int) -> Row:
        words = "  ".join(f"{OWN.get(name, name)} {number(value)}" for name, value in snapshot.own)
        whose = "  cycles, by the target's definitions"
        row: Row = [(" own    ", "dim"), (words, "text")]
        return [*row, (whose, "dim")] if length(row) + len(whose) <= width else row

    def _kernel(self, snapshot: Snapshot) -> Row:
        row: Row = [(" kernel ", "dim")]
        if snapshot.clean_us is None:
            return [*row, ("no clean launch yet", "dim")]
        row += [(f"{snapshot.clean_us / 1000:.4f} ms", "strong"), (f"  {number(snapshot.tflops)} TFLOP/s", "strong")]
        plan = snapshot.plan
        if plan is not None and plan.published is not None:
            row.append((f"  (published {number(plan.published.tflops)})", "dim"))
        account = snapshot.account
        if account is not None:
            row.append(
                (f"   steps {account.steps:.0%}  tile ends {account.tile_ends:.0%}  tail {account.tail:.0%}", "text")
            )
        return row

    def _gpu(self, snapshot: Snapshot) -> Row:
        gpu = snapshot.gpu
        row: Row = [(" gpu    ", "dim")]
        by_kernel = f" ({number(snapshot.sm_clock_mhz)} by kernel)" if snapshot.sm_clock_mhz else ""
        if gpu is None:
            return [*row, (f"SM ? MHz{by_kernel}   no readings", "dim")]
        row.append((f"SM {number(gpu.sm_clock_mhz)} MHz{by_kernel}", "text"))
        if gpu.power_w is not None:
            row.append((f"  {gpu.power_w:.0f} W", "text"))
        if gpu.temperature_c is not None:
            row.append(
                (
                    f"  {gpu.temperature_c:.0f} °C" if not self._view.ascii_only else f"  {gpu.temperature_c:.0f} C",
                    "text",
                )
            )
        if gpu.memory_used_mib is not None and gpu.memory_total_mib:
            row.append((f"  {gpu.memory_used_mib / 1024:.1f}/{gpu.memory_total_mib / 1024:.0f} GiB", "dim"))
        if gpu.throttle:
            row.append((f"  throttled: {', '.join(gpu.throttle)}", "warn"))
        else:
            row.append(("  no throttling", "dim"))
        if gpu.cost_ms is not None and self.size.width >= WITH_COST:
            row.append((f"  reading took {gpu.cost_ms:.1f} ms", "dim"))
        if gpu.foreign_pids:
            row.append((f"  other processes: {len(gpu.foreign_pids)}", "bad"))
        return row

    def _health(self, snapshot: Snapshot) -> Row:
        losses = snapshot.losses
        row: Row = []
        for name, count in (("lost", losses.dropped), ("unmatched", losses.unmatched), ("stale", losses.stale)):
            row += [(f" {name} ", "dim"), (number(count), "bad" if count else "text"), (" ", "text")]
        row.append(("   ", "text"))
        if snapshot.checks:
            worst = max(snapshot.checks, key=lambda check: check.rms_error)
            mark = self.g.tick if worst.passed else self.g.cross
            row.append((f"checked {mark} {worst.rms_error:.1e}", "good" if worst.passed else "bad"))
        else:
            row.append(("not checked yet", "dim"))
        if (run := snapshot.check_run) is not None and run.passed is not None:
            text = f" {run.times} launches {self.g.tick if run.passed else self.g.cross + ' (7)'}"
            row.append((text, "good" if run.passed else "bad"))
        row += [("   twins ", "dim"), (f"{snapshot.clean_launches}/{losses.launches}", "text")]
        if snapshot.faults:
            row.append((f"   faults {len(snapshot.faults)} (8)", "bad"))
        return row
