"""The console of a page of `vmlab serve`: packets of Textual's protocol on its streams, in place of a terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from textual.drivers.web_driver import WebDriver
from textual.messages import ExitApp

from vmlab.model.errors import ExitCode
from vmlab.system.terminal import say
from vmlab.tui.app import main as open_on
from vmlab.tui.console_options import console_options

CONTROL = "--control"


class ServedDriver(WebDriver):
    """Textual's driver for pages, except that the console leaves when its server is gone."""

    def run_input_thread(self) -> None:
        """Read packets until there is nobody who sends them."""
        super().run_input_thread()
        self._app.post_message(ExitApp())


def main(arguments: Sequence[str]) -> int:
    """Open the console that `arguments` ask for, as those of `vmlab` do; without ``--control`` it only watches."""
    options = console_options([word for word in arguments if word != CONTROL])
    if options is None:
        say("vmlab: no console is opened so")
        return int(ExitCode.USAGE)
    # What is drawn has no reader when the server is gone.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return open_on(options._replace(control=CONTROL in arguments), ServedDriver)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
