"""Textual's driver for Linux, which sleeps until keys come, with one owner of the terminal; and its style sheet.

Textual's own driver looks for keys ten times a second, which took a sixth of all CPU time that the console needs. The
terminal is taken from `system.terminal`, which puts it back where Textual cannot: when a signal ends the program. What
Ctrl-Z does to the screen is done in the console's loop: a signal's handler could wait for a queue that it has
interrupted.
"""

from __future__ import annotations

import os
import select
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from textual._xterm_parser import XTermParser
from textual.app import ScreenStackError
from textual.constants import ESCAPE_DELAY
from textual.css.stylesheet import Stylesheet
from textual.drivers.linux_driver import LinuxDriver

from vmlab.model.errors import ExitCode
from vmlab.system.processes import stop_job
from vmlab.system.terminal import is_back, say_at_once, take_terminal

SUSPENDED = "vmlab is suspended: `fg` continues it; runs go on meanwhile"
_MOST_BYTES = 4096
_PATIENCE_SECONDS = 1.1 * ESCAPE_DELAY
"""A little more than the parser waits for the rest of a sequence."""


class WaitingDriver(LinuxDriver):
    """Reads the terminal when there is something to read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._suspended = False
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

    def start_application_mode(self) -> None:
        """Textual's own, on a terminal that is taken first."""
        # Textual draws on standard error, which users redirect: then there would be a console on no terminal.
        assert sys.__stdout__ is not None
        self._file = cast(Any, take_terminal(sys.__stdout__, keys=True))
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Textual's own, after which all is written that puts the terminal back."""
        super().close()
        is_back()

    def _in_loop(self, do: Callable[[], None]) -> None:
        loop = self._app._loop
        if loop is None:
            do()
        else:
            loop.call_soon_threadsafe(do)

    def _sigtstp_application(self, *arguments: Any) -> None:
        """Ctrl-Z in the console, or SIGTSTP from outside."""
        self._in_loop(self._suspend)

    def _suspend(self) -> None:
        """Put the terminal back, and stop, with all of the job, until the shell has it go on."""
        if self._auto_restart and not self._suspended:
            self._suspended = self._must_signal_resume = True
            self.suspend_application_mode()
            # Textual has standard error in its hands.
            say_at_once(SUSPENDED)
            stop_job()
            # With the handler of SIGCONT, which is still to come, or here where nothing was stopped.
            self._in_loop(self._resume)

    def _sigcont_application(self, *arguments: Any) -> None:
        """The shell has the job go on."""
        self._in_loop(self._go_on)

    def _go_on(self) -> None:
        """Go on after a stop. Where nothing was suspended before it (SIGSTOP), a reader is left, and ends first."""
        if self._suspended:
            self._resume()
        elif self._auto_restart:
            if self._key_thread is not None and self._key_thread.is_alive():
                self.disable_input()
            self.resume_application_mode()

    def _resume(self) -> None:
        if self._suspended:
            self._suspended = False
            self.resume_application_mode()

    def resume_application_mode(self) -> None:
        """Textual's own, after which all of the screen is drawn, as the terminal has forgotten it."""
        super().resume_application_mode()
        with suppress(ScreenStackError):
            self._app.screen.refresh()

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
                try:
                    read = os.read(self.fileno, _MOST_BYTES)
                except OSError:
                    read = b""
                if not read:
                    # Without this a console that ignores SIGHUP would go on with nobody to see it.
                    self._app.call_later(self._app.exit, None, ExitCode.TERMINAL_CLOSED)
                    return
                # A part of a letter is no text yet, which the parser would take for the end.
                for event in parser.feed(text) if (text := decode(read)) else ():
                    self.process_message(event)
            for event in parser.tick():
                self.process_message(event)


class ParsedOnce(Stylesheet):
    """Textual parses all sources anew when a screen is opened for the first time, and a second time where it brings its
    own; most of the time to such a screen went there.
    """

    def __init__(self, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._known = variables

    def set_variables(self, variables: dict[str, str]) -> None:
        """Forget what is parsed only where the variables are others, as after a change of the theme."""
        if variables != self._known:
            self._known = variables
            super().set_variables(variables)

    def reparse(self) -> None:
        """Parse what was not parsed with these variables yet."""
        self.parse()
