"""The handoff of P by two signals, in whole chunks and K-tiles, and when it is safe: for every kernel that has one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Handoff:
    """``producer`` of ``chunks`` chunks of P are stored before the first signal; ``consumer`` of ``tiles`` K-tiles are
    issued before the MMA role waits for the second."""

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
