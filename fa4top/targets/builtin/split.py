"""The arithmetic of the P handoff, and the contract that keeps the MMA role from reading P that nobody wrote.

P is stored in chunks and consumed in K-tiles. The producer signals after its first ``producer`` of ``chunks`` chunks;
the consumer issues ``consumer`` of ``tiles`` K-tiles before it waits for the second signal. Safe exactly when
producer / chunks >= consumer / tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

K_TILES = {"bf16": 8, "fp8": 4}  # 128 keys in K-tiles of 16 (bf16) or 32 (fp8)
# within 1% of the best on an H200, with probes that cost the least (docs/measurements.md)
AUTO = {"bf16": "1/2", "fp8": "3/4"}


@dataclass(frozen=True)
class Handoff:
    """One setting of the handoff, in whole chunks and K-tiles."""

    chunks: int
    producer: int
    tiles: int
    consumer: int

    @property
    def safe(self) -> bool:
        """Is everything that is read before the second signal written before the first?"""
        return self.producer * self.tiles >= self.consumer * self.chunks

    def text(self) -> str:
        """What it is, for the log."""
        return (
            f"first signal after {self.producer} of {self.chunks} chunks of P; {self.consumer} of {self.tiles} K-tiles "
            "before the second"
        )

    def sentence(self) -> str:
        """Why it is not safe."""
        return (
            f"P is signalled after {self.producer} of {self.chunks} chunks, but {self.consumer} of {self.tiles} "
            "K-tiles are read before the second signal: the MMA role would read P that is not written yet"
        )


def whole_part(parts: int, fraction: Fraction) -> int:
    """How many of ``parts`` a fraction means: rounded down, at least one, and at least one left for later."""
    if parts == 1:
        return 1
    return max(1, min(parts - 1, parts * fraction.numerator // fraction.denominator))


def handoff(knobs: dict[str, str]) -> Handoff:
    """The handoff that these knobs mean. The consumer follows the producer unless it is set apart."""
    tiles = K_TILES[knobs["pv_mode"]]
    chunks = tiles if knobs["p_chunks"] == "auto" else int(knobs["p_chunks"])
    split = Fraction(AUTO[knobs["pv_mode"]] if knobs["p_split"] == "auto" else knobs["p_split"])
    if knobs["consumer_split"] != "auto":
        return Handoff(chunks, whole_part(chunks, split), tiles, whole_part(tiles, Fraction(knobs["consumer_split"])))
    producer = whole_part(chunks, split)
    consumer = min(whole_part(tiles, split), max(1, producer * tiles // chunks))
    return Handoff(chunks, producer, tiles, consumer)
