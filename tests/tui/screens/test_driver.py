"""Keys reach the console from a terminal at which nobody looks while none come."""

from __future__ import annotations

import os
import pty
import threading
import tty
from collections.abc import Iterator

import pytest
from textual import constants, events
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tests.waiting import until
from vmlab.tui.app import Console
from vmlab.tui.driver import WaitingDriver


class Reading(WaitingDriver):
    """The driver at a terminal of its own, with what it reads."""

    def __init__(self, terminal: int) -> None:
        super().__init__(App())
        self.fileno = terminal
        self.messages: list[Message] = []
        self.waits: list[float | None] = []
        self.thread = self._key_thread = threading.Thread(target=self.run_input_thread)
        self.thread.start()

    def process_message(self, message: Message) -> None:
        self.messages.append(message)

    def wait(self, patience: float | None) -> list[int]:
        self.waits.append(patience)
        return super().wait(patience)

    def ends(self) -> bool:
        """Whether it ends when input is no longer wanted."""
        self.disable_input()
        self.thread.join(60)
        return not self.thread.is_alive()

    @property
    def keys(self) -> list[str]:
        return [one.key for one in self.messages if isinstance(one, events.Key)]


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Where keys are written, and where they are read."""
    ends = pty.openpty()
    tty.setraw(ends[1])
    yield ends
    for end in ends:
        os.close(end)


async def test_keys_and_escape_alone_are_read(terminal: tuple[int, int]) -> None:
    keyboard, screen = terminal
    driver = Reading(screen)
    for sent, key in ((b"a", "a"), (b"\x1b", "escape"), (b"\x1b[A", "up"), ("ä".encode(), "ä")):
        driver.messages.clear()
        os.write(keyboard, sent)
        await until(lambda: driver.keys == [key], f"{key} is read")  # noqa: B023
    assert driver.ends()


async def test_letters_and_sequences_that_come_in_pieces_are_one_key(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "ESCAPE_DELAY", 600.0)
    keyboard, screen = terminal
    driver = Reading(screen)
    reads = len(driver.waits)
    for pieces, key in (((b"\x1b", b"[", b"B"), "down"), ((b"\xc3", b"\xa4"), "ä")):
        driver.messages.clear()
        for piece in pieces:
            reads = len(driver.waits)
            os.write(keyboard, piece)
            await until(lambda: len(driver.waits) > reads, "the piece was read")  # noqa: B023
        await until(lambda: driver.keys == [key], f"{key} is read")  # noqa: B023
    assert driver.ends()


async def test_what_goes_on_without_having_been_suspended_has_one_reader(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Reading(terminal[1])
    alive: list[bool] = []

    def resumed(self: LinuxDriver) -> None:
        driver.thread.join(60)
        alive.append(driver.thread.is_alive())

    monkeypatch.setattr(LinuxDriver, "resume_application_mode", resumed)
    driver._auto_restart = True
    driver._sigcont_application()
    assert alive == [False]


async def test_the_terminal_is_not_looked_at_while_no_key_comes(terminal: tuple[int, int]) -> None:
    keyboard, screen = terminal
    driver = Reading(screen)
    await until(lambda: driver.waits == [None], "it waits for keys as long as none come")
    os.write(keyboard, b"a")
    await until(lambda: len(driver.waits) == 3, "it has waited for the rest of a sequence, which did not come")
    assert driver.waits[1] is not None and driver.waits[2] is None
    assert driver.ends()


async def test_a_terminal_that_is_gone_ends_the_reading(terminal: tuple[int, int]) -> None:
    reading, writing = os.pipe()
    driver = Reading(reading)
    os.close(writing)
    driver.thread.join(60)
    assert not driver.thread.is_alive()
    assert driver.ends()
    os.close(reading)


def test_the_console_has_this_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Console().driver_class is WaitingDriver
    monkeypatch.setattr("textual.constants.DRIVER", "textual.drivers.headless_driver:HeadlessDriver")
    assert Console().driver_class.__name__ == "HeadlessDriver"
