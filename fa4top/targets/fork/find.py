"""Which flash-attention-fp4 a session drives: a folder that was named, the present folder, or what is installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fa4top.targets.fork.checkout import INTERFACE, KERNEL, PACKAGE, Checkout, NoCheckout, inspect_checkout

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
