"""The real program on a terminal: however it ends, the terminal is put back as it was, and its exit code says how.

The rule: whoever puts the terminal into another state takes it in `system.terminal`, whose `put_back` knows each of
these states; a signal ends with 128 and its number, and an error of the program's own with 1, after its report on the
first screen.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.on_a_terminal import Seated, seated
from vmlab.tui.driver import SUSPENDED

FOREIGN = {1000, 1002, 1003, 1004, 1006, 1015, 1016, 1049, 2004, 2026, 2048}
"""Private modes that a shell does not have on; `_HIDDEN` is one that it has."""
_HIDDEN = 25
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)
WORDS = {
    signal.SIGTERM: b"vmlab: terminated",
    signal.SIGHUP: b"vmlab: the terminal was closed",
    signal.SIGQUIT: b"vmlab: quit",
    signal.SIGINT: b"vmlab: interrupted",
}
CRASHES = """
import sys
from vmlab.tui.app import Console
def help(self):
    raise RuntimeError("nobody expected this")
Console.action_help = help
sys.argv = ["vmlab"]
from vmlab.__main__ import main
main()
"""


def modes(told: bytes) -> set[int]:
    """The private modes that are on after all of this."""
    on = {_HIDDEN}
    for numbers, switch in re.findall(rb"\x1b\[\?([\d;]+)([hl])", told):
        changed = set(map(int, numbers.split(b";")))
        on = on | changed if switch == b"h" else on - changed
    return on


def keyboards(told: bytes) -> int:
    """How many times kitty's keyboard protocol was switched on and not off again."""
    return len(re.findall(rb"\x1b\[>\d+u", told)) - len(re.findall(rb"\x1b\[<u", told))


def assert_put_back(place: Seated) -> None:
    on = modes(place.told)
    assert on & FOREIGN == set() and _HIDDEN in on
    assert keyboards(place.told) <= 0
    assert place.settings() == place.before


@pytest.fixture(autouse=True)
def xterm(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


def open_at(place: Seated, *words: str) -> None:
    """Wait for a picture with these words."""
    place.until(lambda told: all(word.encode() in told for word in words), f"{words} on the screen")


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("arguments", "keys", "shown"),
    [
        ([], b"", "Quit"),
        pytest.param([], b"?", "Esc closes", marks=pytest.mark.exhaustive),
        pytest.param(["demo"], b"", "RECORDING", marks=pytest.mark.exhaustive),
        (["top"], b"", "Ctrl-C ends."),
    ],
    ids=["first screen", "help", "demo", "top"],
)
def test_a_signal_puts_the_terminal_back(
    number: signal.Signals, arguments: Sequence[str], keys: bytes, shown: str
) -> None:
    with seated([sys.executable, "-m", "vmlab", *arguments]) as place:
        if keys:
            open_at(place, "Quit")
            place.type(keys)
        open_at(place, shown)
        assert modes(place.told) & FOREIGN
        place.process.send_signal(number)
        code = place.ended()
        assert (code, WORDS[number] in place.told, b"Traceback" in place.told) == (128 + number, True, False)
        assert_put_back(place)


def test_two_signals_at_once_end_it_once() -> None:
    with seated([sys.executable, "-m", "vmlab"]) as place:
        open_at(place, "Quit")
        for _ in range(3):
            place.process.send_signal(signal.SIGTERM)
        assert place.ended() == 128 + signal.SIGTERM
        assert place.told.count(b"vmlab: terminated") == 1
        assert_put_back(place)


def test_a_signal_before_the_first_picture_puts_the_terminal_back() -> None:
    with seated([sys.executable, "-m", "vmlab"]) as place:
        place.until(lambda told: b"\x1b[?1049h" in told, "it has the other screen")
        place.process.send_signal(signal.SIGTERM)
        assert place.ended() == 128 + signal.SIGTERM
        assert_put_back(place)


@pytest.mark.parametrize("ignores", [False, True], ids=["", "nohup"])
def test_a_terminal_that_is_closed_ends_it(ignores: bool) -> None:
    program = [sys.executable, "-m", "vmlab"]
    with seated([*(["env", "--ignore-signal=HUP"] if ignores else []), *program]) as place:
        open_at(place, "Quit")
        assert place.hang_up() == 128 + signal.SIGHUP


@pytest.mark.parametrize("keys", [b"?", b"?q"], ids=["", "and q"])
def test_an_error_is_reported_on_the_first_screen_and_is_no_success(keys: bytes) -> None:
    with seated([sys.executable, "-c", CRASHES]) as place:
        open_at(place, "Quit")
        place.type(keys)
        assert place.ended() == 1
        assert_put_back(place)
        first = place.told.rpartition(b"\x1b[?1049l")[2]
        assert b"nobody expected this" in first


@pytest.mark.parametrize(
    "keys", [b"q", b"sq", *(pytest.param(keys, marks=pytest.mark.exhaustive) for keys in (b"2q", b"3q", b"?qq", b"dq"))]
)
def test_whoever_leaves_has_the_terminal_back(keys: bytes) -> None:
    with seated([sys.executable, "-m", "vmlab"]) as place:
        open_at(place, "Quit")
        place.type(keys)
        code = place.ended()
        assert (code, b"Traceback" in place.told) == (0, False), place.told[-2000:]
        assert_put_back(place)


@pytest.mark.parametrize(("keys", "shown"), [(b"", "Quit"), (b"?", "Esc closes")], ids=["first screen", "help"])
def test_ctrl_z_gives_the_shell_its_terminal_and_fg_comes_back(keys: bytes, shown: str) -> None:
    with seated(["bash", "--norc", "--noprofile", "--noediting", "-i"], env={**os.environ, "PS1": "$ "}) as place:
        place.type(f"{sys.executable} -m vmlab\n".encode())
        open_at(place, "Quit")
        place.type(keys)
        open_at(place, shown)
        place.type(b"\x1a")
        open_at(place, SUSPENDED, "Stopped")
        assert_put_back(place)
        place.type(b"echo $((40 + 2)) is typed\n")
        open_at(place, "echo $((40 + 2)) is typed", "\n42 is typed")
        before = len(place.told)
        place.type(b"fg\n")
        place.until(lambda told: shown.encode() in told[before:], "it is drawn again")
        assert modes(place.told) & FOREIGN and place.settings() != place.before
        place.type(b"\x11")
        place.until(lambda told: not modes(told) & FOREIGN, "it has ended")
        place.type(b"exit $((40 + $?))\n")
        assert place.ended() == 40


def test_ctrl_z_without_a_shell_stops_nothing() -> None:
    with seated([sys.executable, "-m", "vmlab"]) as place:
        open_at(place, "Quit")
        place.type(b"\x1a")
        open_at(place, "no shell is behind the console")
        place.process.send_signal(signal.SIGTSTP)
        # What was typed before it is drawn again is forgotten, as at every change of the terminal.
        place.until(lambda told: told.count(b"\x1b[?2004h") == 2, "it goes on at once")
        place.type(b"?")
        open_at(place, "Esc closes")
        place.type(b"\x11")
        assert place.ended() == 0
        assert_put_back(place)


def test_top_gives_the_shell_its_screen_while_it_is_stopped() -> None:
    with seated(["bash", "--norc", "--noprofile", "--noediting", "-i"], env={**os.environ, "PS1": "$ "}) as place:
        place.type(f"{sys.executable} -m vmlab top\n".encode())
        open_at(place, "Ctrl-C ends.")
        place.type(b"\x1a")
        open_at(place, "Stopped")
        assert_put_back(place)
        before = len(place.told)
        place.type(b"fg\n")
        place.until(lambda told: b"Ctrl-C ends." in told[before:], "it is drawn again")
        assert 1049 in modes(place.told)
        place.type(b"\x03")
        place.until(lambda told: b"vmlab: interrupted" in told, "it has ended")
        assert_put_back(place)
