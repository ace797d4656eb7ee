"""The real program on a real terminal, which tmux keeps: keys go in, and what stands on the screen is waited for."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 240.0
_POLL_SECONDS = 0.05
_PIECE = re.compile(r"\x1b\[([0-9;]*)m|([^\x1b])")
_NAMES = {
    "space": "Space",
    "enter": "Enter",
    "escape": "Escape",
    "tab": "Tab",
    "shift+tab": "BTab",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "shift+left": "S-Left",
    "shift+right": "S-Right",
    "home": "Home",
    "end": "End",
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "dollar_sign": "$",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "ctrl+c": "C-c",
    "ctrl+q": "C-q",
    "ctrl+s": "C-s",
    "ctrl+z": "C-z",
}
"""Textual's names of keys, and those of tmux; others are the same."""


class Tmux:
    """A terminal in a tmux server of its own; each program that is opened has a new one, as the last may be ending."""

    def __init__(self, folder: Path, size: tuple[int, int] = (80, 24)) -> None:
        self._folder = folder
        self._size = size
        self._opened = 0

    def tell(self, *words: str) -> str:
        return subprocess.run(self._command(*words), check=True, capture_output=True, text=True).stdout

    def _command(self, *words: str) -> list[str]:
        return ["tmux", "-S", str(self._folder / f"tmux-{self._opened}"), "-f", "/dev/null", *words]

    def open(self, *arguments: str) -> None:
        """Start the program with `arguments`; the terminal is there as long as it."""
        columns, rows = map(str, self._size)
        self._opened += 1
        console = " ".join(["env -u COLUMNS -u LINES", sys.executable, "-m", "vmlab", *arguments])
        self.tell("new-session", "-d", "-s", "console", "-x", columns, "-y", rows, console)

    def is_open(self) -> bool:
        """Whether the program is there."""
        command = self._command("has-session", "-t", "console")
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def press(self, *keys: str) -> None:
        """Press keys one after the other, by Textual's names or tmux's."""
        for key in keys:
            self.send(key)
            time.sleep(0.3)

    def send(self, key: str) -> None:
        self.tell("send-keys", "-t", "console", _NAMES.get(key, key))

    def type(self, text: str) -> None:
        self.tell("send-keys", "-t", "console", "-l", text)

    def text(self, *, styled: bool = False) -> str:
        """What stands on the screen, with light edges alone; `styled` as it is, with the sequences of its colours."""
        if styled:
            return self.tell("capture-pane", "-p", "-e", "-N", "-t", "console")
        return self._plain().replace("━", "─")

    def focused(self) -> list[str]:
        """The titles of the panes with a heavy edge, which is that of the focus; one, or none."""
        return re.findall("^━([A-Z][a-z ]*[a-z])", self._plain(), re.MULTILINE)

    def _plain(self) -> str:
        return self.tell("capture-pane", "-p", "-t", "console")

    def grounds(self, columns: int) -> list[set[str]]:
        """For each line the colours behind the signs in its first `columns`, as tmux writes them."""
        found, ground = [], ""
        for line in self.text(styled=True).splitlines():
            seen: list[str] = []
            for codes, sign in _PIECE.findall(line):
                if sign:
                    seen.append(ground)
                else:
                    ground = _ground(codes, ground)
            found.append(set(seen[:columns]))
        return found

    def until(self, holds: Callable[[str], object], what: str, deadline: float = PATIENCE_SECONDS) -> str:
        """Wait until the screen is so. Raises AssertionError with the screen."""
        end = time.monotonic() + deadline
        while True:
            text = self.text()
            if holds(text):
                return text
            assert time.monotonic() < end, f"never happened: {what}\n{text}"
            time.sleep(_POLL_SECONDS)

    def shows(self, *words: str, gone: str = "", deadline: float = PATIENCE_SECONDS) -> str:
        """Wait until all `words` stand on the screen, and `gone` does not. Raises AssertionError with the screen."""
        return self.until(
            lambda text: all(word in text for word in words) and not (gone and gone in text),
            f"{words} on the screen" + (f", {gone!r} not" if gone else ""),
            deadline,
        )

    def gone(self) -> None:
        """Wait until the program has ended."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self.is_open():
            assert time.monotonic() < end, f"the program is still there:\n{self.text()}"
            time.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        subprocess.run(self._command("kill-server"), check=False, capture_output=True)


def _ground(codes: str, before: str) -> str:
    """The colour behind what follows a sequence, where `before` was it until then."""
    numbers = codes.split(";")
    place = 0
    while place < len(numbers):
        number = int(numbers[place] or 0)
        if number in (38, 48):
            taken = 5 if numbers[place + 1] == "2" else 3
            if number == 48:
                before = ";".join(numbers[place : place + taken])
            place += taken
            continue
        if number in (0, 49):
            before = ""
        elif 40 <= number <= 47 or 100 <= number <= 107:
            before = str(number)
        place += 1
    return before
