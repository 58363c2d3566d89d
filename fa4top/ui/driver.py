"""The terminal's input, whatever bytes come: one that is not UTF-8 must not end the viewer."""

from __future__ import annotations

import os
import re
import selectors
from codecs import getincrementaldecoder

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

# old terminals report the mouse with raw bytes, beyond ASCII past column 95: we asked for the other kind
_RAW_MOUSE = re.compile(rb"\x1b\[M[\x20-\xff]{3}")
POLL_S = 0.1
CHUNK = 4096


class ForgivingDriver(LinuxDriver):
    """Bytes that can not be decoded become U+FFFD, which no binding knows."""

    def run_input_thread(self) -> None:
        """Read, decode, parse, hand on; until the driver ends."""
        parser = XTermParser(self._debug)
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(POLL_S):
                    data = os.read(self.fileno, CHUNK)
                    if not data:
                        self.exit_event.wait(POLL_S)  # a closed input is readable for ever
                    if text := decoder.decode(_RAW_MOUSE.sub(b"", data)):
                        for message in parser.feed(text):
                            self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)
