"""Images on this machine: found, verified, held, listed and removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrity.damage import flip
from vmlab.guests.cached.locks import USE_LOCK, Lock
from vmlab.guests.image import building, catalog
from vmlab.guests.image.catalog import IMAGES
from vmlab.integrity.digests import describe, seal
from vmlab.model.errors import ImageError
from vmlab.system.removal import Removals, make_marked


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def _put_image(id: str | None = None, created: float = 1.0) -> Path:
    folder = catalog.images_folder() / (id or catalog.current_recipe().address())
    make_marked(folder, folder.name)
    for name in catalog.FILES:
        (folder / name).write_bytes(b"x" * 8192)
    files = {name: describe(folder / name).as_json() for name in catalog.FILES}
    said = {"schema": catalog.SCHEMA, "files": files, "command_line": "root=/dev/vda", "created": created}
    (folder / "manifest.json").write_text(seal(said))
    return folder


def test_there_is_none_before_the_first_build() -> None:
    assert catalog.find() is None
    assert catalog.list_images() == []


def test_a_whole_image_is_found() -> None:
    folder = _put_image()
    found = catalog.find()
    assert found is not None
    assert (found.id, found.folder, found.disk) == (folder.name, folder, folder / "root.raw")
    assert found.command_line == "root=/dev/vda"


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda folder: os.truncate(folder / "root.raw", 100), "root.raw is 100 bytes long and not 8192"),
        (lambda folder: (folder / "vmlinuz").unlink(), "vmlinuz is missing"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "damaged"),
        (lambda folder: (folder / "manifest.json").write_text("[]"), "manifest.json is not what was written"),
        (lambda folder: (folder / "manifest.json").write_text(seal({"schema": "x/1"})), "manifest.json is not one"),
        (lambda folder: flip(folder / "manifest.json"), "manifest.json is not what was written"),
        (lambda folder: (folder / "manifest.json").unlink(), "damaged"),
    ],
)
def test_a_damaged_image_names_what_mends_it(damage: object, word: str) -> None:
    folder = _put_image()
    assert callable(damage)
    damage(folder)
    with pytest.raises(ImageError, match=word) as caught:
        catalog.find()
    assert caught.value.remedy == "vmlab image build --force"
    assert [listed.id for listed in catalog.list_images()] == [folder.name]


@pytest.mark.parametrize("name", catalog.FILES)
def test_one_flipped_bit_is_refused_with_what_mends_it(name: str) -> None:
    folder = _put_image()
    catalog.load(folder).require_whole()
    flip(folder / name)
    with pytest.raises(ImageError, match=f"{folder.name} is damaged: {name} is not what it was") as caught:
        catalog.load(folder).require_whole()
    assert caught.value.remedy == "vmlab image build --force" and caught.value.exit_code == 3


def test_every_byte_of_the_manifest_counts() -> None:
    manifest = _put_image() / "manifest.json"
    text = manifest.read_bytes()
    for offset in range(len(text)):
        flip(manifest, offset)
        with pytest.raises(ImageError, match="damaged"):
            catalog.find()
        manifest.write_bytes(text)
    assert catalog.find() is not None


def test_the_list_tells_use_size_and_which_is_current() -> None:
    current = _put_image(created=2.0)
    _put_image("vmlab-000000000000", created=1.0)
    found = catalog.find()
    assert found is not None
    with found.held():
        newer, older = catalog.list_images()
    assert (newer.id, newer.current, newer.in_use) == (current.name, True, True)
    assert (older.id, older.current, older.in_use) == ("vmlab-000000000000", False, False)
    assert newer.bytes >= 3 * 8192
    assert not catalog.list_images()[0].in_use


def test_an_image_in_use_by_two_runs_stays_until_both_let_go() -> None:
    folder = _put_image()
    found = catalog.load(folder)
    with found.held():
        with found.held(), pytest.raises(ImageError, match="in use"):
            IMAGES.remove(found.id)
        with pytest.raises(ImageError, match="in use"):
            IMAGES.remove(found.id)
    IMAGES.remove(found.id)
    assert list(catalog.images_folder().iterdir()) == []


def test_a_run_that_was_killed_no_longer_holds_its_image() -> None:
    found = catalog.load(_put_image())
    program = (
        "import os, sys; from pathlib import Path; "
        "from vmlab.guests.image import catalog\n"
        "with catalog.load(Path(sys.argv[1])).held(): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(found.folder)]).returncode == -9
    IMAGES.remove(found.id)


def test_holding_what_was_removed_is_refused() -> None:
    found = catalog.load(_put_image())
    IMAGES.remove(found.id)
    with pytest.raises(ImageError, match="was removed"), found.held():
        pass


@pytest.mark.parametrize("id", ["vmlab-ffffffffffff", "", ".", "../images", "/etc", ".building-x"])
def test_what_is_no_image_is_not_removed(id: str) -> None:
    _put_image()
    with pytest.raises(ImageError, match="there is no guest image"):
        IMAGES.remove(id)
    assert catalog.find() is not None


def test_a_lock_on_a_folder_that_moved_away_is_no_lock(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    lock = Lock.try_exclusive(folder / "lock")
    assert lock is not None
    folder.rename(tmp_path / "there")
    lock.release()
    assert Lock.shared(folder / "lock") is None
    assert Lock.try_exclusive(tmp_path / "there" / "lock") is not None


def test_leftovers_are_those_that_nobody_holds() -> None:
    folder = catalog.images_folder()
    for name in (".building-a-1", ".removing-a-1", ".removing-b-2"):
        make_marked(folder / name, name.split("-")[1])
    lock = Lock.try_exclusive(folder / ".removing-b-2" / USE_LOCK)
    assert lock is not None
    assert {path.name for path in building.clear_unfinished().removed} == {".building-a-1", ".removing-a-1"}
    lock.release()


@pytest.mark.parametrize("name", ["vmlab-notes", ".building-notes", ".removing-vmlab-notes-1"])
def test_a_folder_that_only_lies_among_images_is_somebodys_data(name: str) -> None:
    theirs = catalog.images_folder() / name
    theirs.mkdir(parents=True)
    (theirs / "thesis.txt").write_text("precious")
    assert catalog.list_images() == []
    assert building.clear_unfinished() == Removals()
    with pytest.raises(ImageError, match="there is no guest image"):
        IMAGES.remove(name)
    assert (theirs / "thesis.txt").read_text() == "precious"
