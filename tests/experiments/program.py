"""The command line as a user of its own calls it, each command with a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vmlab.lab.commands.stopping import STOP_SECONDS

VMLAB = (sys.executable, "-m", "vmlab")
_ENDED = 60.0


class TookTooLong(Exception):
    """A command was stopped at its deadline."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended by itself."""

    code: int
    stdout: str
    stderr: str

    @property
    def last_word(self) -> str:
        """The last line of its messages, which says why it failed."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it ended without a word"


@dataclass(frozen=True, slots=True)
class Program:
    """Calls the program with a state folder of its own; whatever it prints is appended to `output`."""

    state: Path
    output: Path
    command: Sequence[str]

    def call(self, *arguments: str, deadline: float) -> Ended:
        """Run one command. Raises TookTooLong after `deadline` seconds, when the command has ended."""
        process = subprocess.Popen(
            [*self.command, *arguments],
            env={**os.environ, "XDG_STATE_HOME": str(self.state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is for this program, which then stops the command once: twice would kill the run.
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=deadline)
        except subprocess.TimeoutExpired:
            self._keep(arguments, *_stopped(process))
            raise TookTooLong(f"it took longer than {deadline:.0f} s") from None
        except BaseException:
            self._keep(arguments, *_stopped(process))
            raise
        self._keep(arguments, stdout, stderr)
        return Ended(process.returncode, stdout, stderr)

    def _keep(self, arguments: Sequence[str], stdout: str, stderr: str) -> None:
        with self.output.open("a", encoding="utf-8") as file:
            file.write(f"$ vmlab {' '.join(arguments)}\n{stderr}{stdout}\n")


def _stopped(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Stop a command as Ctrl-C does, then as a second one does, which kills the run, and at last the command."""
    for patience in (STOP_SECONDS + _ENDED, _ENDED):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    return process.communicate()
