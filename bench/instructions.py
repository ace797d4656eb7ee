"""How much work a start of the program is: ``python -m bench.instructions`` prints a table; it needs valgrind.

Instructions do not depend on what else the machine does: the same start differs by less than a thousandth. They
compare two versions of the program where times do not.
"""

from __future__ import annotations

import compileall
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.console import environment
from bench.support.terminal import on_terminal

CONSOLE = """
import os
from vmlab.__main__ import main
from vmlab.tui.screens.live_screen import LiveScreen
LiveScreen.begin = lambda screen: os._exit(0)
main()
"""
"""Ends when its first picture has been drawn: the feeds begin then."""
BARE = """
import os
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("READY")
    def on_ready(self):
        self.call_after_refresh(os._exit, 0)
Bare().run()
"""
_COUNT = re.compile(r"I\s+refs:\s+([\d,]+)")
_SECONDS = 300


def counted(arguments: list[str], log: Path) -> list[str]:
    """The command that counts the instructions of Python with `arguments`."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log}"]
    return [*tool, sys.executable, *arguments]


def millions(log: Path) -> float:
    """The count in the tool's log. Raises ValueError where it has none."""
    found = _COUNT.search(log.read_text())
    if found is None:
        raise ValueError(f"no count: {log.read_text()[-300:]}")
    return int(found[1].replace(",", "")) / 1e6


def drawn(program: str) -> float:
    """Millions of instructions of a program on a terminal of its own, until it ends."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        env = {**environment(Path(folder)), "PYTHONHASHSEED": "0"}
        with on_terminal(counted(["-c", program], log), (80, 24), env) as terminal:
            terminal.drain_to_end(_SECONDS)
        return millions(log)


def printed(arguments: list[str]) -> float:
    """The same for a program that needs no terminal."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        subprocess.run(counted(arguments, log), check=True, stdout=subprocess.DEVNULL, env={"PYTHONHASHSEED": "0"})
        return millions(log)


if __name__ == "__main__":
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is missing: apt-get install valgrind")
    compileall.compile_dir("vmlab", quiet=1)
    print("| what | million instructions |\n| --- | ---: |")
    print(f"| console, start to first picture | {drawn(CONSOLE):.0f} |")
    print(f"| a bare Textual program that shows one word, the same way | {drawn(BARE):.0f} |")
    print(f"| `vmlab --help`, start to end | {printed(['-m', 'vmlab', '--help']):.0f} |")
