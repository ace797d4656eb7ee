"""Commands that read, copy or pack large files: signals at any step end them with their code, and nothing is left."""

from __future__ import annotations

import io
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh
import pytest

from tests.guests.test_image_moving import built
from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.cli.progress import MovingLine, ShownWork
from vmlab.guests.image import catalog
from vmlab.integrity.long_work import LongWork
from vmlab.model.places import runs_folder
from vmlab.system.removal import remove_tree

RUN = "20261121-143000-tile-7f3a"
MiB = 2**20


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Folders of this test's own, and the handlers of signals as they were."""
    for name, variable in (("state", "XDG_STATE_HOME"), ("cache", "XDG_CACHE_HOME"), ("run", "VMLAB_RUNTIME_DIR")):
        monkeypatch.setenv(variable, str(tmp_path / name))
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _run() -> None:
    story = Story(runs_folder() / RUN / "run.sqlite").begin({"cache": ["none", "writeback"]})
    for cache in ("none", "writeback"):
        story.start_cell({"cache": cache})
        story.execute(20.0, [{"cpu_user_percent": float(tick)} for tick in range(20)])
        story.measure("web", 10.0)
        story.end_cell(wall=20.0)
    story.end()


def _adding(folder: Path) -> list[str]:
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(folder / "id")
    (folder / "disk.img").write_bytes(bytes(510) + b"\x55\xaa" + b"x" * 3 * MiB)
    return ["image", "add", "own", "--disk", str(folder / "disk.img"), "--user", "root", "--key", str(folder / "id")]


def _adding_qcow2(folder: Path) -> list[str]:
    words = _adding(folder)
    convert = ["qemu-img", "convert", "-O", "qcow2", str(folder / "disk.img"), str(folder / "disk.qcow2")]
    subprocess.run(convert, check=True)
    return [one.replace("disk.img", "disk.qcow2") for one in words]


def _exporting_image(folder: Path) -> list[str]:
    built()
    return ["image", "export", "-o", str(folder / "i")]


def _importing_image(folder: Path) -> list[str]:
    words = _exporting_image(folder)
    assert command_line(words) == 0
    remove_tree(catalog.images_folder())
    return ["image", "import", str(folder / "i")]


def _importing(folder: Path) -> list[str]:
    _run()
    assert command_line(["export", RUN, "-o", str(folder / "x.vmlab")]) == 0
    remove_tree(runs_folder() / RUN)
    return ["import", str(folder / "x.vmlab")]


def _of_a_run(*words: str) -> Callable[[Path], list[str]]:
    def made(folder: Path) -> list[str]:
        _run()
        return [words[0], RUN, *words[2:], "-o", str(folder / words[1])]

    return made


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "image add": _adding,
    "image add of qcow2": _adding_qcow2,
    "image export": _exporting_image,
    "image import": _importing_image,
    "export": _of_a_run("export", "x.vmlab"),
    "export of samples": _of_a_run("export", "x.csv", "--samples"),
    "import": _importing,
    "report": _of_a_run("report", "x.html"),
    "report as Markdown": _of_a_run("report", "x.md"),
}
_STAY = {".locks", ".gate", "gate", "own", "scratch", "added-images", "images", "vmlab", "cache", "state", "matplotlib"}
"""Names of folders and locks that stay, whatever came of a command."""


def _files(folder: Path) -> set[str]:
    kept = {one for one in folder.rglob("*") if one.name not in _STAY and "matplotlib" not in one.parts}
    return {str(one.relative_to(folder)) for one in kept}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_at_any_step_ends_the_command_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """At the first step, one in the middle and the last one, each signal, really sent."""
    words = COMMANDS[name](tmp_path)
    before = _files(tmp_path)
    steps = 0
    strike: tuple[int, signal.Signals] | None = None
    original = LongWork.step

    def step(self: LongWork, count: float = 0.0) -> None:
        nonlocal steps
        steps += 1
        if strike is not None and steps == strike[0]:
            signal.raise_signal(strike[1])
        original(self, count)

    monkeypatch.setattr(LongWork, "step", step)
    signals = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}
    for moment, (number, code) in ((moment, one) for moment in (1, 3, 5) for one in signals.items()):
        steps, strike = 0, (moment, number)
        assert command_line(words) == code, (moment, number)
        assert _files(tmp_path) == before, (moment, number)
    steps, strike = 0, None
    assert command_line(words) == 0
    assert steps >= 5 and _files(tmp_path) > before


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is written of a stage of 100 steps of 4 MiB, one a second."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setenv("COLUMNS", "80")
    work = ShownWork(MovingLine(stream))
    work.begin("copying disk\x1b.img", 400.0 * MiB)
    for _ in range(100):
        now += 1.0
        work.step(4 * MiB)
    work.over()
    return stream.getvalue()


def test_a_terminal_has_one_line_that_says_how_far_it_is_and_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    written = _shown(_Terminal(), monkeypatch).split("\r\x1b[2K")
    assert written[25] == "[####------------]  25 %, 4 MiB/s, 1 min 15 s left  copying disk\\x1b.img"
    assert written[-1] == "" and len(written) == 102 and not any("\n" in one for one in written)


def test_elsewhere_it_has_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = _shown(io.StringIO(), monkeypatch).splitlines()
    assert len(lines) == 10 and lines[0] == "10 %, 4 MiB/s, 1 min 30 s left  copying disk\\x1b.img"


def test_what_is_over_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    work = ShownWork(MovingLine(stream := _Terminal()))
    work.begin("copying", 10.0)
    work.step(10.0)
    work.over()
    assert stream.getvalue() == ""
