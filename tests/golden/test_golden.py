"""What every medium tells of recorded stores, byte by byte; ``VMLAB_GOLDEN=write`` writes it anew."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.golden import media, screens
from tests.golden.stores import ALONE, SIDES, unpacked
from tests.tui.screens.test_screens import ROOMY
from vmlab.model.places import runs_folder

_WRITE = os.environ.get("VMLAB_GOLDEN") == "write"
_TOLD = Path(__file__).parent / "told"
_MOST_PLAIN = 2**15
"""Longer texts, which nobody reads as a whole, are kept compressed."""


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> media.Told:
    """Commands, which find no image and no snapshot."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return media.Told(tmp_path, capsys)


def check(name: str, medium: str, text: str) -> None:
    """Hold `text` against its file."""
    if _WRITE:
        _write(name, medium, text.encode())
    kept = _kept(name, medium)
    lines = (kept.splitlines(keepends=True), text.splitlines(keepends=True))
    assert kept == text, "".join(unified_diff(*lines, f"{name}/{medium}", "now", n=1))


def _files(name: str, medium: str) -> tuple[Path, Path]:
    """The file of a text, and the one in its place that is compressed."""
    return _TOLD / name / f"{medium}.txt", _TOLD / name / f"{medium}.txt.gz"


def _kept(name: str, medium: str) -> str:
    plain, packed = _files(name, medium)
    return (gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()).decode()


def _write(name: str, medium: str, body: bytes) -> None:
    """Write what differs, and nothing else: compressed bytes depend on the version of zlib."""
    plain, packed = _files(name, medium)
    plain.parent.mkdir(exist_ok=True)
    if len(body) <= _MOST_PLAIN:
        packed.unlink(missing_ok=True)
        plain.write_bytes(body)
    elif not packed.exists() or gzip.decompress(packed.read_bytes()) != body:
        plain.unlink(missing_ok=True)
        packed.write_bytes(gzip.compress(body, mtime=0))


def _cases(of_one: Iterable[str], of_several: Iterable[str]) -> list[tuple[str, str]]:
    """Each store, and each that is compared, with each medium that can tell of it."""
    cases = [(name, medium) for name in ALONE for medium in of_one]
    return cases + [(name, medium) for name in (*ALONE, *SIDES) for medium in of_several]


@pytest.mark.parametrize(("name", "medium"), _cases(media.OF_ONE, media.OF_SEVERAL))
def test_what_a_command_says(name: str, medium: str, told: media.Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", media.without_drawing)
    monkeypatch.setattr("vmlab.report.page.drawing._lay_out", lambda _figure: None)
    check(name, medium, told(*(media.OF_ONE | media.OF_SEVERAL)[medium], *unpacked(name)))


@pytest.mark.parametrize("medium", media.OF_SCENARIO)
@pytest.mark.parametrize("name", ["cache-modes", "disk-matrix", "network-classic", "tile"])
def test_what_is_planned(name: str, medium: str, told: media.Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda _folder: ROOMY)
    check(f"scenario-{name}", medium, told(*media.OF_SCENARIO[medium], name))


@pytest.mark.parametrize(("name", "screen"), _cases(screens.OF_ONE, screens.OF_SEVERAL))
async def test_what_a_screen_shows(name: str, screen: str) -> None:
    stores = [runs_folder() / run / "run.sqlite" for side in unpacked(name) for run in side.split(",")]
    medium = f"screen-{screen}"
    check(name, medium, await screens.pictures(screen, stores, None if _WRITE else _kept(name, medium)))
