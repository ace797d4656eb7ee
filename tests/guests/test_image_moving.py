"""An image that one host built serves another: exported to a file, checked byte by byte, and used."""

from __future__ import annotations

import gzip
import os
import platform
from pathlib import Path
from typing import Any

import pytest

from vmlab.guests.image import catalog
from vmlab.guests.image.catalog import Image, find, list_images, pack, unpack
from vmlab.guests.image.recipe import current
from vmlab.integrity.digests import describe, seal, unseal
from vmlab.model.errors import ImageError, UsageError
from vmlab.system.removal import make_marked


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def on(monkeypatch: pytest.MonkeyPatch, **release: str) -> None:
    """A host of this distribution from now on, with an empty cache."""
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ["XDG_CACHE_HOME"] + "-" + release["ID"])


def built() -> Image:
    """The image of this host; its disk has a hole."""
    recipe = catalog.own_recipe()
    folder = catalog.images_folder() / recipe.address()
    make_marked(folder, folder.name)
    for name in catalog.FILES:
        (folder / name).write_bytes(name.encode() * 1000 + bytes(3 * 2**20) + b"end")
    files = {name: describe(folder / name).as_json() for name in catalog.FILES}
    said = {"schema": catalog.SCHEMA, "id": folder.name, "created": 1.0, "command_line": "root=/dev/vda"}
    (folder / "manifest.json").write_text(seal({**said, "recipe": recipe.described(), "files": files}))
    found = find()
    assert found is not None
    return found


def told(line: str) -> None:
    """Takes a line for people."""


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """The file of this host's image."""
    file = tmp_path / "image.vmi"
    pack(built(), file)
    return file


def test_a_host_without_debian_uses_what_it_was_given(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = find()
    on(monkeypatch, ID="fedora", PRETTY_NAME="Fedora")
    with pytest.raises(ImageError, match="vmlab image import FILE"):
        find()
    image = unpack(exported, told)
    assert before is not None and image.id == before.id
    for name in catalog.FILES:
        assert (image.folder / name).read_bytes() == (before.folder / name).read_bytes()
    assert image.disk.stat().st_blocks * 512 < image.disk.stat().st_size / 2, "holes stay holes"
    image.require_whole()
    assert find() == image
    assert [(one.id, one.current) for one in list_images()] == [(image.id, True)]
    assert unpack(exported, told) == image, "a second time it is there already"


def test_a_host_of_another_release_uses_it_until_it_has_its_own(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(monkeypatch, ID="debian", VERSION_CODENAME="trixie")
    assert find() is None
    image = unpack(exported, told)
    assert find() == image
    assert catalog.own_recipe().codename == "trixie"
    own = catalog.images_folder() / current("trixie").address()
    own.mkdir()
    assert catalog.current_recipe().codename == "trixie"


def test_the_same_image_makes_the_same_file(exported: Path, tmp_path: Path) -> None:
    image = find()
    assert image is not None
    pack(image, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == exported.read_bytes()


@pytest.mark.parametrize("place", [20, 2000, -30])
def test_a_byte_that_changed_is_found_and_nothing_is_kept(
    place: int, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(gzip.decompress(exported.read_bytes()))
    data[place] ^= 1
    exported.write_bytes(gzip.compress(bytes(data)))
    on(monkeypatch, ID="fedora", PRETTY_NAME="Fedora")
    with pytest.raises(ImageError, match="is damaged"):
        unpack(exported, told)
    assert list_folders() == []


def list_folders() -> list[str]:
    folder = catalog.images_folder()
    return [path.name for path in folder.iterdir() if not path.name.startswith(".locks")] if folder.is_dir() else []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b""),
        gzip.compress(b"VMI1\xff\xff\xff\xff"),
        gzip.compress(b"VMI1\x00\x00\x00\x02{}"),
        gzip.compress(b"VMI1\x00\x00\x00\x05\x00\x00\x00\x00\x00"),
        gzip.compress(bytes(2**20)),
    ],
    ids=("empty", "no gzip", "nothing in it", "size beyond", "head with nothing", "head of zeros", "another file"),
)
def test_what_is_no_image_is_one_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    with pytest.raises(ImageError, match=str(file)):
        unpack(file, told)
    assert list_folders() == []


@pytest.mark.parametrize(
    "changed",
    [
        {"id": None},
        {"id": 7},
        {"command_line": None},
        {"packages": ["systemd"]},
        {"licences": {"systemd": "GPL"}},
        {"files": {}},
        {"recipe": None},
        {"recipe": "bookworm"},
    ],
    ids=str,
)
def test_a_sealed_manifest_of_another_form_is_one_line(changed: dict[str, Any], exported: Path) -> None:
    image = find()
    assert image is not None
    values = {**unseal(image.manifest.read_bytes()), **changed}
    refused(exported, {name: value for name, value in values.items() if value is not None})


@pytest.mark.parametrize("size", [-1, True])
def test_a_size_that_is_none_is_one_line(size: int, exported: Path) -> None:
    image = find()
    assert image is not None
    values = unseal(image.manifest.read_bytes())
    values["files"]["root.raw"] |= {"size": size, "chunks": values["files"]["root.raw"]["chunks"][: max(0, size)]}
    refused(exported, values)


def refused(file: Path, values: dict[str, Any]) -> None:
    """A file with this manifest is."""
    text = seal(values).encode()
    file.write_bytes(gzip.compress(b"VMI1" + len(text).to_bytes(4) + text))
    with pytest.raises(ImageError, match=r"^\S+ is damaged: its manifest is not what was written$"):
        unpack(file, told)


def test_an_incomplete_file_leaves_nothing(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported.write_bytes(exported.read_bytes()[:-200])
    on(monkeypatch, ID="fedora", PRETTY_NAME="Fedora")
    with pytest.raises(ImageError, match="not complete"):
        unpack(exported, told)
    assert list_folders() == []


def test_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="named pipe"):
        unpack(tmp_path / "pipe", told)
