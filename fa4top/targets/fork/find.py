"""Which flash-attention-fp4 a session drives: a folder that was named, the present folder, or what is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fa4top.targets.base import Described, Located
from fa4top.targets.fork.checkout import INTERFACE, KERNEL, PACKAGE, Checkout, NoCheckout, inspect_checkout
from fa4top.targets.fork.environment import chosen_knobs, strangers
from fa4top.targets.fork.modes import SM103

STAND_IN = "fa4top_stand_in.py"  # our tests' package carries it: no GPU, arithmetic on the CPU


@dataclass(frozen=True)
class Found:
    """A checkout, and the words that say how it was found. ``path`` goes to the workers: '' when the package is
    installed in their interpreter."""

    checkout: Checkout
    path: str
    why: str

    @property
    def stand_in(self) -> bool:
        """Is it our tests' stand-in? What it says is simulated."""
        return (self.checkout.package / STAND_IN).is_file()

    def sentence(self) -> str:
        """Which package owns flash_attn.cute."""
        commit = f" at {self.checkout.commit}" if self.checkout.commit else ""
        return f"{self.checkout.package}{commit} ({self.why}), profiler {self.checkout.profiler}"


def find_fork(fa4_path: str, here: Path, installed: str) -> Found:
    """Look in this order: ``fa4_path``, the present folder, the interpreter's own package.

    Args:
        installed: path of the interpreter's flash_attn/cute/interface.py, '' when it has none.

    Raises:
        NoCheckout: none of them is the fork; the text says what was looked for.
    """
    if fa4_path:
        folder = Path(fa4_path).expanduser().absolute()
        return _found(folder, "--fa4-path")
    if (here / PACKAGE / KERNEL).is_file():
        return _found(here, "the present folder")
    if not installed:
        raise NoCheckout(
            "no flash-attention-fp4: give --fa4-path DIR of a checkout, or --python of an environment that has it"
        )
    package = Path(installed).parent
    if not (package / KERNEL).is_file():
        raise NoCheckout(
            f"the flash_attn.cute of this interpreter is not the fork: {package} has no {KERNEL}. "
            "Give --fa4-path DIR of a checkout"
        )
    return Found(inspect_checkout(package), "", "installed in the workers' interpreter")


def _found(folder: Path, why: str) -> Found:
    checkout = inspect_checkout(folder)
    # the folder that has to be on the import path holds flash_attn/
    top = checkout.package.parent.parent
    if checkout.package != (top / PACKAGE).resolve() or not (checkout.package / INTERFACE).is_file():
        raise NoCheckout(f"{folder}: the package must lie in flash_attn/cute to be imported")
    return Found(checkout, str(top), why)


def refusal(checkout: Checkout) -> str | None:
    """Why a checkout can not be driven: what was expected and what was found; None when all holds."""
    bad = [row for row in checkout.rows if not row.holds]
    if not bad:
        return None
    told = "; ".join(f"{row.what}: expected {row.expected}, found {row.found}" for row in bad)
    return f"this checkout is not laid out as fa4top knows it: {told}. fa4top doctor --target fa4-fork says more"


def locate(folder: str, here: Path, installed: str) -> Located:
    """Where the fork is, as every target that has sources of its own says it (``targets.base.Located``).

    Raises:
        ValueError: it is nowhere, or not laid out as fa4top knows it; the text says what was looked for.
    """
    found = find_fork(folder, here, installed)
    if message := refusal(found.checkout):
        raise NoCheckout(message)
    notices = []
    if found.checkout.split_default not in ("", "3"):
        notices.append("this checkout hands over 1/2 of fp8's P by default; 3/4 was 24% faster on a GB300")
    if exported := strangers():
        words = " ".join(f"--set {name}={value}" for name, value in exported.items())
        notices.append(f"FA4_* variables of your shell are not taken over; to use them: {words}")
    return Located(
        path=found.path,
        sentence=found.sentence(),
        stand_in=Described(SM103, "stand-in", "SIM-stand-in") if found.stand_in else None,
        # its kernels are timed on a CuPy stream; the stand-in has a device of its own
        requires=() if found.stand_in else ("cupy",),
        notices=tuple(notices),
        problems=lambda knobs: unread_knobs(found.checkout, knobs),
    )


def unread_knobs(checkout: Checkout, knobs: Mapping[str, str]) -> list[str]:
    """Knobs that are set and that this checkout does not read: they would do nothing, without a word."""
    unread = [name for name in chosen_knobs(knobs) if name in checkout.absent_knobs]
    return [f"this checkout does not read {', '.join(unread)}"] if unread else []
