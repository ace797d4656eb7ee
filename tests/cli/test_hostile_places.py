"""Every command in places that do not want it: no traceback, one line, a promised exit code, nothing left behind."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests import forked
from tests.store.stories import Story
from vmlab.model.errors import ExitCode
from vmlab.system.removal import make_marked

CHECKOUT = Path(__file__).resolve().parents[2]
PROMISED = {*map(int, ExitCode)}
RUN = "20261121-143000-tile-7f3a"
LONG = "x" * 5000
NOBODY = 65534

READING = (
    ("ls",),
    ("ls", "--scenarios", "--json"),
    ("show", "--json"),
    ("show", f"{RUN}:1"),
    ("compare", f"{RUN}:1", f"{RUN}:2"),
    ("compare", f"{RUN}:1", f"{RUN}:2", "--fail-if", "web > +5 %"),
    ("tag",),
    ("tag", RUN, "baseline"),
    ("note", RUN),
    ("note", RUN, "after the update"),
    ("attach", RUN),
    ("stop",),
    ("replay",),
    ("plan", "tile"),
    ("validate", "tile"),
    ("image", "ls"),
    ("image", "rm", "debian-12"),
    ("snapshot", "ls", "--json"),
    ("snapshot", "rm", "web"),
    ("snapshot", "rm", "--all"),
    ("clean",),
    ("doctor",),
    ("top", "--count", "1", "--interval", "20 ms"),
    (),
)
RUNNING = (("run", "tile", "--size", "smoke"), ("run", "tile", "--size", "smoke", "--detach", "--json"))
WRITING = (
    ("ls", "--json"),
    ("show",),
    ("show", "--raw"),
    ("compare", f"{RUN}:1", f"{RUN}:2"),
    ("compare", f"{RUN}:1", f"{RUN}:2", "--fail-if", "web > +5 %", "--strict", "--json"),
    ("attach", "--json"),
    ("plan", "tile"),
    ("schema",),
    ("clean", "--json"),
    ("doctor",),
    ("top", "--count", "1", "--interval", "20 ms", "--json"),
    ("--help",),
    ("nonsense",),
)
NAMED = (
    ("show", LONG),
    ("show", f"a/{LONG}"),
    ("show", f"last:{'9' * 5000}"),
    ("show", f"{LONG}.sqlite"),
    ("show", "--cell", "9" * 5000),
    ("compare", LONG, f"/{LONG}"),
    ("tag", RUN, LONG),
    ("tag", LONG, "baseline"),
    ("tag", "--rm", LONG),
    ("attach", LONG),
    ("stop", f"./{LONG}"),
    ("replay", LONG),
    ("plan", LONG),
    ("plan", f"./{LONG}"),
    ("run", LONG),
    ("validate", f"{LONG}.yaml"),
    ("plan", "tile", "--set", f"{LONG}={LONG}"),
    ("plan", "tile", "--cache", LONG),
    ("plan", "tile", "--seed", "9" * 5000),
    ("image", "rm", LONG),
    ("snapshot", "rm", LONG),
    (LONG,),
)


@dataclass(frozen=True)
class Place:
    """An environment: what surrounds the program, and what its standard streams are."""

    name: str
    environment: Callable[[Path], dict[str, str]] = lambda folder: {}
    redirection: str = ""
    nobody: bool = False
    output_lost: bool = False


def _states(place: str) -> Callable[[Path], dict[str, str]]:
    return lambda folder: {"XDG_STATE_HOME": place, "XDG_CACHE_HOME": place}


BROKEN = (
    Place("folders on /dev/null", _states("/dev/null")),
    Place("folders on /sys", _states("/sys")),
    Place("folders on /proc/nowhere", _states("/proc/nowhere")),
    Place("runtime folder on /dev/null", lambda folder: {"VMLAB_RUNTIME_DIR": "/dev/null/x"}),
    Place("runtime folder too long", lambda folder: {"VMLAB_RUNTIME_DIR": str(folder / ("r" * 80))}),
    Place("somebody else's folders", nobody=True),
)
STREAMS = (
    Place("output full", redirection=">/dev/full", output_lost=True),
    Place("output closed", redirection=">&-", output_lost=True),
    Place("errors closed", redirection="2>&-"),
    Place("errors full", redirection="2>/dev/full"),
    Place("input closed", redirection="<&-"),
    Place("all closed", redirection="<&- >&- 2>&-", output_lost=True),
    Place("output in ASCII", lambda folder: {"PYTHONIOENCODING": "ascii"}),
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """State with one run, cache with a snapshot, all of it root's alone."""
    story = Story(tmp_path / "state/vmlab/runs" / RUN / "run.sqlite", run=RUN).begin({"cache": ["none", "writeback"]})
    story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
    story.cell({"cache": "writeback"}, {"web": 4.0}, wall=5.0)
    story.end()
    for kept in ("snapshots/web", "images/debian-12"):
        make_marked(tmp_path / "cache/vmlab" / kept, Path(kept).name)
    (tmp_path / "run").mkdir()
    for private in ("state", "cache", "run"):
        (tmp_path / private).chmod(0o700)
    before = _listed(tmp_path)
    yield tmp_path
    assert _listed(tmp_path) == before


def _listed(folder: Path) -> set[Path]:
    return set((folder / "state/vmlab/runs").iterdir())


AS_NOBODY = f"""
import email.parser, encodings.utf_8_sig, importlib.metadata, os, pkgutil
import vmlab.__main__, vmlab.cli, vmlab.tui.app, vmlab.workloads.registry
# Python itself may lie where only root can read it, so that all is loaded before root is given up.
for module in pkgutil.walk_packages(vmlab.cli.__path__, "vmlab.cli."):
    importlib.import_module(module.name)
vmlab.workloads.registry.kinds()
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
vmlab.__main__.main()
"""


@cache
def _for_everybody() -> Path:
    """A copy of the program where everybody can read it: the checkout may lie where only root can."""
    folder = Path(tempfile.mkdtemp(prefix="vmt-"))
    atexit.register(shutil.rmtree, folder)
    folder.chmod(0o755)
    for part in ("vmlab", "scenarios"):
        shutil.copytree(CHECKOUT / part, folder / part)
    return folder


def _ended(place: Place, folder: Path, command: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "VMLAB_RUNTIME_DIR": str(folder / "run"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **place.environment(folder),
    }
    # The others say nothing of how the program starts and ends; the console asks for a terminal as it starts.
    if command and not place.redirection and not place.nobody:
        return forked.ended(*command, env=environment, cwd=CHECKOUT)
    program = ["-c", AS_NOBODY] if place.nobody else ["-m", "vmlab"]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {place.redirection}', "sh", sys.executable, *program, *command],
        cwd=_for_everybody() if place.nobody else CHECKOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=240,
    )


def _check(done: subprocess.CompletedProcess[bytes], command: tuple[str, ...]) -> None:
    said = done.stderr.decode()
    assert b"Traceback" not in done.stderr + done.stdout, said
    assert b"Exception ignored" not in done.stderr, said
    assert done.returncode in PROMISED, said
    # Progress and lists of what was done are lines of their own; an error is one.
    if done.returncode not in (0, 5) and command[:1] not in (("attach",), ("top",)):
        assert len(said.splitlines()) <= 1, said
    assert max(map(len, said.splitlines()), default=0) < 600


def _named(command: tuple[str, ...]) -> str:
    return " ".join(command)[:40] or "(console)"


def _pairs(places: Sequence[Place], commands: Sequence[tuple[str, ...]], often: int) -> list[ParameterSet]:
    """Each place with each command; all but `often` places of each command, by turns, are for the night."""
    return [
        pytest.param(
            place,
            command,
            id=f"{_named(command)}-{place.name}",
            # How a command usually ends is asked once by each process.
            marks=[pytest.mark.xdist_group(_named(command))] * (places is STREAMS)
            + [pytest.mark.nightly] * ((number - turn * often) % len(places) >= often),
        )
        for turn, command in enumerate(commands)
        for number, place in enumerate(places)
    ]


def test_each_place_and_each_command_is_among_those_that_are_always_tried() -> None:
    for places, commands, often in CHOSEN:
        pairs = _pairs(places, commands, often)
        chosen = [tuple(one.values) for one in pairs if "nightly" not in {mark.name for mark in one.marks}]
        assert len(chosen) == len(set(chosen)) == often * len(commands)
        assert {command for _, command in chosen} == {*commands}
        assert {place for place, _ in chosen} == {*places}


CHOSEN = ((BROKEN, READING, 2), (BROKEN, RUNNING, 3), (STREAMS, WRITING, 3))


@pytest.mark.parametrize(("place", "command"), _pairs(*CHOSEN[0]) + _pairs(*CHOSEN[1]))
def test_folders_that_are_not_to_be_had(place: Place, command: tuple[str, ...], folder: Path) -> None:
    if place.nobody and os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    done = _ended(place, folder, command)
    _check(done, command)
    if command[:1] == ("run",):
        assert done.returncode == ExitCode.REFUSED, done.stderr
        assert done.stderr.count(b"\n") == 1
    if command[:1] == ("run",) and place.nobody:
        assert b"run vmlab as root" in done.stderr


USUAL: dict[tuple[str, ...], subprocess.CompletedProcess[bytes]] = {}


def _usual(folder: Path, command: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    """How the command ends where nothing is wrong."""
    if command not in USUAL:
        USUAL[command] = _ended(Place("as it should be"), folder, command)
    return USUAL[command]


@pytest.mark.parametrize(("place", "command"), _pairs(*CHOSEN[2]))
def test_streams_that_are_closed_or_full(place: Place, command: tuple[str, ...], folder: Path) -> None:
    usual = _usual(folder, command)
    done = _ended(place, folder, command)
    _check(done, command)
    if place.output_lost and usual.stdout:
        assert done.returncode == (usual.returncode or ExitCode.FAILED)
    else:
        assert done.returncode == usual.returncode


@pytest.mark.parametrize("command", NAMED, ids=_named)
def test_names_of_any_length(command: tuple[str, ...], folder: Path) -> None:
    done = _ended(Place("as it should be"), folder, command)
    _check(done, command)
    assert (done.returncode in (ExitCode.USAGE, ExitCode.REFUSED), done.stdout) == (True, b""), done.stderr
