"""The licences of an image's packages: what copyright files name, and what `vmlab image licences` says of it."""

import json
from pathlib import Path

import pytest

from tests.cli.called import ended
from vmlab.guests.image.catalog import FILES, IMAGES, images_folder, licences, named, own_recipe
from vmlab.integrity.digests import describe

Captured = pytest.CaptureFixture[str]
FIELDS = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: 2001 Somebody
License: GPL-2+ or   Artistic

Files: debian/*
License: GPL-2+
 On Debian systems, see /usr/share/common-licenses/GPL-2.

License: GPL-2+ or Artistic
License:
 no name
"""
PROSE = """\
This is free software under the terms in /usr/share/common-licenses/LGPL-2.1.
License: as above; see `/usr/share/common-licenses/GPL-3', too, and /usr/share/common-licenses/GPL-3.
"""


def test_names_are_those_of_the_fields_or_the_common_licences() -> None:
    assert named(FIELDS) == ["GPL-2+", "GPL-2+ or Artistic"]
    assert named(PROSE) == ["GPL-3", "LGPL-2.1"]
    assert named(FIELDS[: FIELDS.index("Files")] + "see /usr/share/common-licenses/BSD") == ["BSD"]
    assert named("do what you like") == [] == named("")


def test_a_package_may_have_the_folder_of_another_one_and_none_outside(tmp_path: Path) -> None:
    docs = tmp_path / "tree/usr/share/doc"
    (docs / "one").mkdir(parents=True)
    (docs / "one/copyright").write_text(PROSE)
    (docs / "two").symlink_to("one")
    (docs / "three").symlink_to("/usr/share/doc/two")
    (docs / "round").symlink_to("round")
    outside = tmp_path / "secret"
    outside.mkdir()
    (outside / "copyright").write_text(PROSE)
    (docs / "out").symlink_to("../../../../secret")
    (docs / "far").symlink_to(outside)
    (docs / "file").mkdir()
    (docs / "file/copyright").symlink_to(outside / "copyright")
    found = licences(tmp_path / "tree", ["one", "two", "three", "round", "out", "far", "file", "none"])
    known = ["GPL-3", "LGPL-2.1"]
    assert found == {
        **dict.fromkeys(("one", "two", "three"), known),
        "round": [],
        "out": [],
        "far": [],
        "file": [],
        "none": [],
    }


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the manifest of the current image has of its packages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return {"packages": {"bash": "5.2", "odd\x1b[2J": "1"}, "licences": {"bash": ["GPL-3+"]}}


def _image(values: dict[str, object]) -> str:
    recipe = own_recipe()
    folder = images_folder() / recipe.address()
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_text(name)
    files = {name: describe(folder / name) for name in FILES}
    IMAGES.seal(folder, folder.name, files, {"command_line": "", "recipe": recipe.described(), **values})
    return folder.name


def test_the_command_lists_packages_with_their_licences(kept: dict[str, object], capsys: Captured) -> None:
    id = _image(kept)
    assert ended("image", "licences") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["bash", "5.2", "GPL-3+"]
    assert "not named" in out.splitlines()[1] and "\x1b" not in out
    assert "2 packages; the licences of 1 have no name" in err
    assert ended("image", "licences", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["image"]) == ("vmlab.image-licences/1", id)
    assert document["packages"][0] == {"name": "bash", "version": "5.2", "licences": ["GPL-3+"]}


def test_an_image_without_them_and_no_image_are_one_line(kept: dict[str, object], capsys: Captured) -> None:
    assert ended("image", "licences") == 3
    assert "no image was built yet" in capsys.readouterr().err
    del kept["licences"]
    _image(kept)
    assert ended("image", "licences") == 3
    assert "kept no licences (vmlab image build --force)" in capsys.readouterr().err
