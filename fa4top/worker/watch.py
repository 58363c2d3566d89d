"""Notices that a launch does not end, while the main thread is stuck in it, and tells what can be read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Watch:
    """One thread; ``tell`` is called in it when a guarded section takes longer than its deadline, once a section."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell
        self._changed = threading.Condition()
        self._deadline_s: float | None = None
        self._section = 0
        threading.Thread(target=self._run, daemon=True).start()

    @contextmanager
    def guard(self, deadline_s: float) -> Iterator[None]:
        """Run the body; after so many seconds ``tell`` is called, and the body goes on."""
        with self._changed:
            self._section += 1
            self._deadline_s = deadline_s
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadline_s = None
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._deadline_s is None:
                    self._changed.wait()
                section, deadline_s = self._section, self._deadline_s
                over = self._changed.wait_for(
                    lambda section=section: self._deadline_s is None or self._section != section,  # type: ignore[misc]
                    deadline_s,
                )
                if over:
                    continue
                self._deadline_s = None  # once a section
            self._tell(deadline_s)
