"""`fa4top fork-trace FILE`: a buffer of flash-attention-fp4's own profiler, read without a GPU."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from fa4top.cli.fail import fail
from fa4top.orders import exits
from fa4top.targets.fork.trace_buffer import ForkTrace, UnknownTrace, choose_block, decode_block, recorded_blocks
from fa4top.targets.fork.trace_metrics import ForkMetrics, fork_metrics, summarise

EPILOG = """\b
How to get FILE, in a process of its own:
  FA4_PROFILE_PIPELINE=1 python - <<'EOF'
  import numpy as np
  from flash_attn.cute import profiler
  ...                                  # call the kernel once: it compiles and runs
  profiler.LAST_BUFFER.zero_()         # nobody else clears it
  ...                                  # call it again, synchronise
  np.save("trace.npy", profiler.LAST_BUFFER.cpu().numpy())
  EOF

\b
Examples:
  fa4top fork-trace trace.npy
  fa4top fork-trace trace.npy --block 17 --json
"""
METRICS: tuple[tuple[str, str], ...] = (
    ("softmax_period", "softmax period: median gap between begins of wait S"),
    ("softmax_busy", "softmax busy: all spans but its waits, a step"),
    ("softmax_stage", "softmax stage: exp, quantise and row max a step, the larger warpgroup"),
    ("mma_qk_pv", "mma QK + PV: means, the wait for P's second part included"),
    ("mma_wait_p", "mma wait P: mean"),
    ("p2_wait", "mma wait P 2nd: mean"),
)


@click.command("fork-trace", epilog=EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--block", default=-1, help="Which block (CTA); default: the first that did not run on SM 0.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def command(file: Path, block: int, as_json: bool) -> None:
    """Read a buffer that flash-attention-fp4's profiler filled: its figures by its own definitions, cycles.

    Recording there inflates the kernel's time by 40 to 140% (FA4_PROF_SMEM=0), so these are proportions: the kernel's
    speed is the clean kernel's.
    """
    words = load(file)
    try:
        chosen = block if block >= 0 else choose_block(words)
        trace = decode_block(words, chosen)
        blocks = recorded_blocks(words)
    except UnknownTrace as error:
        fail(f"{file}: {error}", exits.USAGE)
    metrics = fork_metrics(trace)
    if as_json:
        rows = [asdict(row) for row in summarise(trace)]
        about = {"block": trace.block, "sm": trace.sm, "detail": trace.detail, "notes": trace.notes}
        click.echo(json.dumps({**about, "metrics": asdict(metrics), "events": rows, "blocks": len(blocks)}))
        return
    for line in lines(trace, metrics, len(blocks)):
        click.echo(line)


def load(file: Path) -> npt.NDArray[np.uint32]:
    """The words of a .npy file, or of a file that is nothing but the words."""
    try:
        found = np.load(file, allow_pickle=False) if file.suffix == ".npy" else np.fromfile(file, dtype=np.uint32)
    except (OSError, ValueError, EOFError) as error:
        fail(f"{file} can not be read: {error}", exits.USAGE)
    words: npt.NDArray[np.uint32] = np.ascontiguousarray(found).reshape(-1)
    if words.dtype == np.int32:
        words = words.view(np.uint32)
    if words.dtype != np.uint32:
        fail(
            f"{file} holds {words.dtype}: expected int32 words. 64-bit entries are those of the profiler's first "
            "version, which fa4top does not read",
            exits.USAGE,
        )
    return words


def lines(trace: ForkTrace, metrics: ForkMetrics, recorded: int) -> list[str]:
    """What a person reads."""
    kind = "detailed (proportions only)" if trace.detail else "coarse"
    out = [f"block {trace.block} of {trace.blocks} ({recorded} recorded) on SM {trace.sm}, {kind} trace", ""]
    for name, text in METRICS:
        value = getattr(metrics, name)
        out.append(f"  {f'{value:.0f}' if value is not None else '?':>8}  {text}")
    out += ["", f"  {'role':10} {'event':12} {'count':>6} {'mean':>8} {'total':>10} {'of window':>9}"]
    for row in summarise(trace):
        out.append(
            f"  {row.role:10} {row.name:12} {row.count:6} {row.mean_cycles:8.0f} {row.total_cycles:10} "
            f"{row.window_share:9.1%}"
        )
    out += ["", *(f"! {note}" for note in trace.notes)]
    return out
