"""A shell in memory: commands are answered by a script of the test's own, and all of them are remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from vmlab.model.errors import GuestError
from vmlab.workloads.shell import RUN_DEADLINE, Completed

Answer = Completed | Callable[[Sequence[str]], Completed]


def says(stdout: str, *, status: int = 0, stderr: str = "") -> Completed:
    """A command's end."""
    return Completed(status, stdout, stderr)


@dataclass
class FakeShell:
    """Answers a command by the first key of `answers` that is part of its words joined by blanks, else with nothing."""

    name: str
    address: str
    answers: dict[str, Answer] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        """Answer from the script; raises GuestError for a status other than 0 where `check` holds.

        ``cat`` shows a file that was written before.
        """
        words = " ".join(argv)
        self.commands.append(words)
        if argv[0] == "cat" and argv[1] in self.files:
            return says(self.files[argv[1]].decode())
        answer = next((found for part, found in self.answers.items() if part in words), says(""))
        completed = answer if isinstance(answer, Completed) else answer(argv)
        if check and completed.status != 0:
            raise GuestError(f"{self.name}: {words} exited with {completed.status}: {completed.stderr}")
        return completed

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Remember a file."""
        self.files[path] = content
