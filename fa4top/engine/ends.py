"""How a worker ended, as a fault that says what to try. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from fa4top.records import Fault, HangReport


@dataclass(frozen=True)
class Who:
    """A worker, and the last of what it said."""

    name: str
    plan_id: int
    tail: tuple[str, ...] = ()

    def fault(self, reason: str, text: str, hint: str, permanent: bool = False) -> Fault:
        """A fault of this worker."""
        return Fault(
            worker=self.name,
            plan_id=self.plan_id,
            reason=reason,
            text=text,
            hint=hint,
            stderr_tail=list(self.tail),
            permanent=permanent,
        )


def no_interpreter(who: Who, python: str, error: OSError) -> Fault:
    """It could not be started."""
    text = f"{python}: {error.strerror}"
    return who.fault("no interpreter", text, "give a Python >= 3.10 with --python PATH", permanent=True)


def silent(who: Who, doing: str, deadline_s: float) -> Fault:
    """It did not answer, and was killed."""
    text = f"no answer for {deadline_s:.1f} s while {doing}; the worker was killed"
    if doing == "ready":
        hint = "a lost signal hangs the kernel: check knobs that changed last, run with --inflight"
        return who.fault("hang", text, hint)
    return who.fault("timeout", text, "the compile may need longer, or the machine is busy")


def hung(who: Who, report: HangReport) -> Fault:
    """A launch did not end, and the worker could still tell."""
    text = (
        f"a launch did not end within {report.deadline_s:.1f} s while {report.state}; the worker was killed. "
        + report.text
    )
    return who.fault("hang", text, "a signal that nobody sends hangs the kernel: look at the knobs that changed last")


def ended(who: Who, code: int | None, said: Fault | None) -> Fault:
    """It ended by itself, or was killed by somebody else."""
    if said is not None:
        return replace(said, stderr_tail=list(who.tail))
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        hint = "dmesg may tell of the OOM killer" if name == "SIGKILL" else "the worker's log may say more"
        return who.fault("killed", f"the worker was ended by {name}", hint)
    hint = "the worker's log may say more; fa4top doctor checks its interpreter"
    return who.fault("ended", f"the worker ended with code {code} and no word", hint)
