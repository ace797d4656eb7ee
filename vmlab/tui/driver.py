"""Textual's driver for Linux, except that it sleeps until keys come.

Textual's own looks for them ten times a second, which took a sixth of all CPU time that the console needs.
"""

from __future__ import annotations

import os
import select
import sys
from codecs import getincrementaldecoder
from typing import Any

from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver

_MOST_BYTES = 4096
_PATIENCE_SECONDS = 1.1 * ESCAPE_DELAY
"""A little more than the parser waits for the rest of a sequence."""


class WaitingDriver(LinuxDriver):
    """Reads the terminal when there is something to read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Textual draws on standard error, which users redirect: then there would be a console on no terminal.
        assert sys.__stdout__ is not None
        self._file = sys.__stdout__
        self._ending, self._end = os.pipe()
        """A byte in the pipe ends the thread that reads."""

    def disable_input(self) -> None:
        """Textual's own, which waits for the thread."""
        if self._key_thread is not None and self._key_thread.is_alive():
            os.write(self._end, b"\0")
        super().disable_input()

    def wait(self, patience: float | None) -> list[int]:
        """What can be read: keys, or that the reading ends; nothing after `patience` seconds."""
        return select.select([self.fileno, self._ending], [], [], patience)[0]

    def _sigcont_application(self, *arguments: Any) -> None:
        """Go on after a stop. Where nothing was suspended before it (SIGSTOP), a reader is left, and ends first."""
        if self._key_thread is not None and self._key_thread.is_alive():
            self.disable_input()
        super()._sigcont_application(*arguments)

    def run_input_thread(self) -> None:
        """Read keys and hand them on, until the program or the terminal ends."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        patience: float | None = None
        while True:
            ready = self.wait(patience)
            # The parser tells Escape from the start of a sequence by what has not come a moment later.
            patience = _PATIENCE_SECONDS if ready else None
            if self._ending in ready:
                os.read(self._ending, 1)
                return
            if ready:
                read = os.read(self.fileno, _MOST_BYTES)
                if not read:
                    return
                # A part of a letter is no text yet, which the parser would take for the end.
                for event in parser.feed(text) if (text := decode(read)) else ():
                    self.process_message(event)
            for event in parser.tick():
                self.process_message(event)
