"""A run that lives for those who look at it, and answers commands with what a test has said."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vmlab.lab.commands.command_server import ControlServer
from vmlab.lab.commands.verbs import Verb
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import VmlabError
from vmlab.store.life import LOCK


class Answering:
    """Gives `answer`, or refuses with it; `asked` is what it was sent."""

    def __init__(self, answer: dict[str, Any] | VmlabError) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def obey(self, verb: Verb) -> dict[str, Any]:
        """Answer a command."""
        self.asked.append((verb.command, verb.said()))
        if isinstance(self.answer, VmlabError):
            raise self.answer
        return self.answer


def say(name: str, **arguments: Any) -> Verb:
    """A command by its name with these arguments, right or wrong."""

    class Said(Verb):
        command = name

        def said(self) -> dict[str, Any]:
            return arguments

    return Said()


@contextmanager
def answering(run: str, answer: dict[str, Any]) -> Iterator[Answering]:
    """Have the run of this id, whose store is there, live and answer."""
    folder, found = RunFolder.of(run), Answering(answer)
    lock = os.open(folder.path / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    served, over = threading.Event(), threading.Event()

    async def serve() -> None:
        server = ControlServer(folder.control, found.obey)
        await server.open()
        served.set()
        await asyncio.to_thread(over.wait)
        await server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert served.wait(60)
        yield found
    finally:
        over.set()
        thread.join(60)
        os.close(lock)
