"""Messages between the feed's thread and the app."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from fa4top.analysis.view.snapshot import Snapshot


@dataclass
class SnapshotReady(Message):
    """A new snapshot; an older one that nobody has looked at yet may be dropped."""

    snapshot: Snapshot
    replay: str = ""
    blocked: str = ""
    ended: str = ""
    number: int = 0  # counts up; the feed looks which one was shown

    bubble = False

    def can_replace(self, message: Message) -> bool:
        """Latest wins."""
        return isinstance(message, SnapshotReady)


@dataclass
class FeedFailed(Message):
    """The feed can not go on."""

    text: str

    bubble = False
