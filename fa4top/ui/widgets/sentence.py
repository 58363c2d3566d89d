"""The bottom line of screens other than the live one, and their head."""

from __future__ import annotations

from fa4top.analysis.view.snapshot import Snapshot
from fa4top.analysis.view.tables import bench_title, bench_verdict, clock_text
from fa4top.analysis.view.words import device_name
from fa4top.orders.typed import setting_words
from fa4top.ui.glyphs import Row
from fa4top.ui.view import View
from fa4top.ui.widgets.lines import Lines
from fa4top.ui.widgets.verdict_line import VerdictLine


class BenchSentence(VerdictLine):
    """What the table says about a softmax step, or how far the run is."""

    HELP = "Progress while it runs; then what the figures mean for a softmax step."

    def text(self, snapshot: Snapshot) -> str:
        """The sentence."""
        state = snapshot.bench_state
        if state is not None and state.state == "dead":
            return f"no numbers: {state.text}"
        if state is not None and state.state != "stopped":
            share = f" {state.progress:.0%}" if state.progress is not None else ""
            return f"measuring{share}: {state.text or state.state}"
        if not snapshot.bench:
            return "r measures the instructions of this chip (without a GPU: compiles them and checks their SASS)"
        return bench_verdict(snapshot.bench)

    def bad(self, snapshot: Snapshot) -> bool:
        """Is the worker dead, or a figure refused?"""
        dead = snapshot.bench_state is not None and snapshot.bench_state.state == "dead"
        return dead or any(result.status in ("refused", "failed") for result in snapshot.bench)


class SweepSentence(VerdictLine):
    """Best value and plateau, or what runs now."""

    HELP = "Which value is best, for how much, and which are within the margin of it; or what is being done."

    def text(self, snapshot: Snapshot) -> str:
        """The sentence."""
        state = snapshot.sweep
        if state is None:
            return "s sweeps a knob: all its values against the present one"
        if state.state == "running":
            points = [point for point in snapshot.sweep_points if point.status != "null"]
            settled = [p for p in points if p.word not in ("", "undecided") or p.status != "measured"]
            total = len(state.values) * max(1, len(state.series)) - len(state.baselines)
            return (
                f"{state.text or 'starting'}: {snapshot.sweep_blocks} blocks, {snapshot.sweep_rejected} rejected; "
                f"{len(settled)} of {total} settings decided"
            )
        return state.text or state.state

    def bad(self, snapshot: Snapshot) -> bool:
        """Is there something that forbids to believe it?"""
        state = snapshot.sweep
        return state is not None and (state.state == "failed" or bool(state.contaminated))


class AbSentence(VerdictLine):
    """The verdict in words, and how far it reaches."""

    HELP = "The verdict. Its chance of ever being wrong is at most 5%, however often one looks; it holds for this pair."

    def text(self, snapshot: Snapshot) -> str:
        """The sentence."""
        state = snapshot.ab
        if state is None:
            return "b compares: A is the present setting"
        if state.state in ("starting", "failed", "stopped"):
            busy = [w for w in snapshot.workers if w.state in ("importing", "compiling", "checking")]
            doing = ", ".join(f"{w.twin} {w.text or w.state}" for w in busy)
            return f"{state.state}: {state.text}" + (f" ({doing})" if doing and state.state == "starting" else "")
        if state.state == "done":
            reach = (
                "replicated over fresh pairs (tier 2)" if state.tier == 2 else "this pair of processes only (tier 1)"
            )
            return f"{state.text} · {reach}{self._keys()}"
        if state.tier == 2:
            pairs = snapshot.ab_pairs
            return f"{pairs[-1].text if pairs else 'first pair'} · {len(pairs)} pairs of processes"
        blocks = snapshot.ab_blocks
        if not blocks or blocks[-1].pilot:
            return f"pilot: {sum(block.pilot for block in blocks)} of 4 blocks"
        last = next((block for block in reversed(blocks) if block.text), None)
        rejected = sum(not block.accepted for block in blocks)
        return f"{last.text if last else 'measuring'} · {len(blocks)} blocks, {rejected} rejected{self._keys()}"

    def bad(self, snapshot: Snapshot) -> bool:
        """Did it fail?"""
        return snapshot.ab is not None and snapshot.ab.state == "failed"

    def _keys(self) -> str:
        """What can be done with it, where something can."""
        view = self._view
        return "" if view.replay or view.ended else "; r replicates it, x makes B the plan, c clears"


class AbHead(Lines):
    """What is compared, on what."""

    HELP = "Target, mode, state of the L2 and tier of the comparison; the ratio in cycles."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        state = snapshot.ab
        if state is None:
            return [[(" A/B", "strong")]]
        parts = [state.target, device_name(state.device), f"{state.mode}, L2 {state.l2}, tier {state.tier}"]
        row: Row = [(" A/B  ", "strong"), (f" {self.g.dot} ".join(parts), "text")]
        if state.tier == 1 and (clock := clock_text(snapshot.ab_blocks)):
            row.append((f"  {clock}", "dim"))
        return [row]


class BenchHead(Lines):
    """Chip, architecture, counts, compiler."""

    HELP = "What was measured, on what, and with which compiler."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        return [[(" bench  ", "strong"), (bench_title(snapshot.bench).replace("·", self.g.dot), "text")]]


class SweepHead(Lines):
    """What is swept, on what."""

    HELP = "The swept knob, the target, the device, the other knobs."

    def rows(self, snapshot: Snapshot, view: View, width: int, height: int) -> list[Row]:
        """One row."""
        state = snapshot.sweep
        if state is None:
            return [[(" sweep", "strong")]]
        parts = [f"{state.knob} of {state.target}", device_name(state.device)]
        plan = snapshot.plan
        quiet = plan.quiet if plan is not None else []
        but = (state.knob, state.series_knob, *quiet)
        shown = setting_words({name: value for name, value in state.knobs.items() if name not in but})
        return [[(" sweep  ", "strong"), (f" {self.g.dot} ".join(parts), "text"), (f"  {shown}", "dim")]]
