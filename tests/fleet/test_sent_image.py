"""An image that a controller sends to a host: kept when every byte of it came, and not otherwise."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.guests.test_image_moving import built, on
from vmlab.fleet.serving import take_image
from vmlab.guests.image.catalog import find, pack
from vmlab.model.errors import ImageError, UsageError


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, bytes]:
    """The controller's image, by its id and as a file; this host has none of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    image = built()
    pack(image, tmp_path / "image")
    on(monkeypatch, ID="fedora", PRETTY_NAME="Fedora")
    return image.id, (tmp_path / "image").read_bytes()


def _taken(monkeypatch: pytest.MonkeyPatch, id: str, data: bytes) -> str:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    return take_image(id)


def _places() -> list[str]:
    from vmlab.guests.image import catalog

    return [entry.name for entry in catalog.images_folder().parent.iterdir() if entry.name.startswith("vmlab-image-")]


def test_a_whole_image_is_kept(sent: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs start from it, and nothing of the way that it came is left."""
    id, data = sent
    assert _taken(monkeypatch, id, data) == id
    found = find()
    assert found is not None
    assert found.id == id
    assert not _places()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_cut_leaves_nothing(sent: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """And the image can be sent again."""
    id, data = sent
    with pytest.raises(ImageError):
        _taken(monkeypatch, id, data[: int(share * len(data))])
    assert not _places()
    assert _taken(monkeypatch, id, data) == id


def test_another_image_is_refused(sent: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a name of its own, so it stands in the place of none."""
    id, data = sent
    with pytest.raises(UsageError, match=f"image {id} came instead of 0000"):
        _taken(monkeypatch, "0000", data)


def test_a_changed_byte_is_refused(sent: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is right in itself; what its manifest says of the contents is not."""
    import gzip

    id, data = sent
    plain = bytearray(gzip.decompress(data))
    plain[-1] ^= 1
    with pytest.raises(ImageError, match="is damaged"):
        _taken(monkeypatch, id, gzip.compress(bytes(plain)))
    assert not _places()
