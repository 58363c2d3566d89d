"""The arithmetic of the P handoff, and the contract that keeps the MMA role from reading P that nobody wrote.

P is stored in chunks and consumed in K-tiles. The producer signals after its first ``producer`` of ``chunks`` chunks;
the consumer issues ``consumer`` of ``tiles`` K-tiles before it waits for the second signal. Safe exactly when
producer / chunks >= consumer / tiles.
"""

from __future__ import annotations

from fractions import Fraction

from fa4top.targets.handoff import Handoff

K_TILES = {"bf16": 8, "fp8": 4}  # 128 keys in K-tiles of 16 (bf16) or 32 (fp8)
# within 1% of the best on an H200, with probes that cost the least (docs/measurements.md)
AUTO = {"bf16": "1/2", "fp8": "3/4"}


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
