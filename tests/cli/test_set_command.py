"""`vmlab set`: what a run is asked for, what is refused before it is asked, and the exit codes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.lab.control import ControlServer
from vmlab.lab.folder import RunFolder
from vmlab.model.errors import CommandFailed, RefusedError, UsageError, VmlabError
from vmlab.model.places import runs_folder
from vmlab.store.life import LOCK

RUN = "20261121-143000-tile-aaaa"
SWITCHED = {
    "cell": 3,
    "before": "writeback",
    "after": "none",
    "pauses_ms": {"t1-web": 4.0, "t1-db": 6.25},
    "drained_seconds": 1.5,
    "drained_bytes": 40 * 2**20,
}
COMING = {"cells": [{"index": 2, "axes": {"tiles": 1, "cache": "none"}, "repeat": 1}] * 2}


class Answering:
    """A living run that gives `answer`, or refuses with it; `asked` is what it was sent."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | VmlabError = SWITCHED
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def obey(self, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((command, arguments))
        if isinstance(self.answer, VmlabError):
            raise self.answer
        return self.answer


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answering]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "r"))
    Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none", "writeback"]}).close()
    folder, answering = RunFolder.of(RUN), Answering()
    lock = os.open(folder.path / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    served, over = threading.Event(), threading.Event()

    async def serve() -> None:
        server = ControlServer(folder.control, answering.obey)
        await server.open()
        served.set()
        await asyncio.to_thread(over.wait)
        await server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert served.wait(60)
    yield answering
    over.set()
    thread.join(60)
    os.close(lock)


Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def say(*arguments: str) -> tuple[int, str, str]:
        code = command_line(["set", *arguments])
        words = capsys.readouterr()
        return code, words.out, words.err

    return say


def test_now_is_asked_of_the_running_guests_and_told_with_its_pause(run: Answering, said: Said) -> None:
    assert said("last", "cache=none", "--now") == (
        0,
        "cell 3: cache writeback to none; guests stood still for at most 6.25 ms; dirty pages written before in 1.5 s "
        "(40 MiB); the cell counts for nothing\n",
        "",
    )
    assert run.asked == [("set", {"cache": "none", "now": True, "origin": "vmlab set"})]


def test_without_now_it_is_the_cells_to_come(run: Answering, said: Said) -> None:
    run.answer = COMING
    code, out, _ = said(RUN, "cache=none", "tiles=3")
    words = "2 cells to come, the next with tiles 1, cache none; the running cell stays as it is\n"
    assert (code, out) == (0, words)
    assert run.asked == [("set", {"cache": "none", "tiles": 3, "origin": "vmlab set"})]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tiles=2", "--now"], "tiles cannot be changed while guests run"),
        (["ksm=on", "--now"], "ksm cannot be changed while guests run"),
        (["cache=none", "tiles=2", "--now"], "tiles cannot be changed while guests run"),
        (["ksm=on"], "cannot be given another ksm; cache and tiles can"),
        (["cache"], "'cache' is no change"),
        (["cache="], "'cache=' is no change"),
    ],
)
def test_what_no_run_can_do_is_refused_before_it_is_asked(
    arguments: list[str], words: str, run: Answering, said: Said
) -> None:
    code, out, err = said("last", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err and run.asked == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (UsageError("cache unsafe promises other flushes"), 2),
        (RefusedError("cache=none needs O_DIRECT"), 3),
        (CommandFailed("cell 3 was not switched: dirty pages; the cells to come can have it"), 1),
    ],
)
def test_a_refusal_of_the_run_is_one_line_with_its_exit_code(
    answer: VmlabError, code: int, run: Answering, said: Said
) -> None:
    run.answer = answer
    found = said("last", "cache=none", "--now")
    assert found == (code, "", f"vmlab: {answer}\n")


def test_a_run_that_is_over_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none"]}).end()
    assert said("last", "cache=none", "--now") == (2, "", f"vmlab: run {RUN} is not running\n")
