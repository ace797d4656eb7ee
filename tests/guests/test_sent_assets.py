"""A suite that comes as an archive: kept when every byte of it came, while a run uses it, and not otherwise."""

from __future__ import annotations

import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.suites import unixbench_at
from vmlab.guests import sent_assets
from vmlab.guests.sent_assets import SENT, clear_unused, drop, find, held, id_of, take
from vmlab.lab.process.dead_runs import clean
from vmlab.model.asset import Asset
from vmlab.model.errors import RefusedError, UsageError
from vmlab.workloads.assets import packed, read_assets

NOWHERE = Path("/nowhere")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This host's own folders."""
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "VMLAB_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))


@pytest.fixture
def asset(tmp_path: Path) -> Asset:
    """The controller's copy."""
    return read_assets([f"unixbench={unixbench_at(tmp_path)}"])["unixbench"]


def _taken(asset: Asset, data: bytes | None = None) -> str:
    archive = packed(asset) if data is None else data
    return take(id_of(asset.name, asset.sha256), io.BytesIO(archive), lambda _line: None)


def _found(asset: Asset) -> Asset | None:
    return find(asset.name, NOWHERE, asset.sha256)


def _kept() -> list[str]:
    """What is in the folder, locks not counted."""
    return [path.name for path in SENT.folder().iterdir() if path.name != ".locks"] if SENT.folder().is_dir() else []


def test_a_whole_copy_is_kept_as_it_was(asset: Asset) -> None:
    """With the same digest, files and modes, so that guests get the same archive of it."""
    assert _found(asset) is None
    assert _taken(asset) == id_of("unixbench", asset.sha256)
    found = _found(asset)
    assert found is not None
    assert (found.sha256, found.size) == (asset.sha256, asset.size)
    assert packed(found) == packed(asset)
    assert SENT.folder().stat().st_mode & 0o777 <= 0o755
    assert (SENT.folder() / _kept()[0]).stat().st_mode & 0o777 == 0o700


def test_a_suite_that_is_one_archive_is_given_as_one(tmp_path: Path) -> None:
    """The setup of SPECjvm2008 is installed in guests, and its folder is not."""
    with zipfile.ZipFile(tmp_path / "setup.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "")
    setup = read_assets([f"specjvm2008={tmp_path / 'setup.jar'}"])["specjvm2008"]
    _taken(setup)
    found = _found(setup)
    assert found is not None and found.path.endswith("/setup.jar")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8])
def test_a_cut_leaves_nothing(asset: Asset, share: float) -> None:
    """And the copy can be sent again."""
    data = packed(asset)
    with pytest.raises(RefusedError) as refused:
        _taken(asset, data[: int(share * len(data))])
    assert len(refused.value.lines()) == 1
    assert _kept() == []
    assert _found(asset) is None
    _taken(asset)
    assert _found(asset) is not None


@pytest.mark.parametrize("place", [b"Run\n", b"unixbench/Run", b"0000644\0", b"ustar"])
def test_a_changed_byte_is_refused(asset: Asset, place: bytes) -> None:
    """In what a file has, in its name, in its mode, and where nothing can be read any more."""
    data = bytearray(packed(asset))
    data[data.index(place) + 2] ^= 1
    with pytest.raises(RefusedError, match="asset unixbench"):
        _taken(asset, bytes(data))
    assert _kept() == []


def _archive(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, "/etc/shadow"
        archive.addfile(entry)
    return content.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        _archive("unixbench/../../../../etc/cron.d/x"),
        _archive("/etc/cron.d/x"),
        _archive("other/Run"),
        _archive("unixbench"),
        _archive("unixbench/Run", tarfile.SYMTYPE),
        _archive("unixbench/Run", tarfile.LNKTYPE),
        _archive("unixbench/Run", tarfile.CHRTYPE),
    ],
)
def test_an_archive_has_plain_files_in_its_own_folder_alone(asset: Asset, data: bytes) -> None:
    """Nothing is written anywhere else."""
    with pytest.raises(RefusedError, match="which no copy has"):
        _taken(asset, data)
    assert _kept() == []


def test_an_archive_that_is_too_large_is_refused(asset: Asset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_assets, "MOST_BYTES", 10)
    with pytest.raises(RefusedError, match="which no copy has"):
        _taken(asset)


@pytest.mark.parametrize("id", ["", "bonnie-00", "../unixbench-00", "unixbench/..-00"])
def test_an_id_of_no_asset_is_refused(id: str) -> None:
    with pytest.raises(UsageError, match="is no asset"):
        take(id, io.BytesIO(), lambda _line: None)


def test_a_host_with_a_copy_of_its_own_needs_none(asset: Asset) -> None:
    """It is found where it was asked for, unless it is another one."""
    own = find("unixbench", Path(asset.path), asset.sha256)
    assert own is not None and own.path == asset.path
    assert find("unixbench", Path(asset.path), "0" * 64) is None
    assert drop([own]) == []
    assert (Path(asset.path) / "Run").exists()


def test_a_copy_that_was_changed_is_none_and_is_replaced(asset: Asset) -> None:
    _taken(asset)
    (SENT.folder() / _kept()[0] / "unixbench/Run").write_text("quicker")
    assert _found(asset) is None
    _taken(asset)
    assert _found(asset) is not None


def test_a_copy_goes_with_the_last_run_that_uses_it(asset: Asset) -> None:
    """A run drops what it used; while another one holds it, it stays, and `clean` leaves it alone."""
    _taken(asset)
    found = _found(asset)
    assert found is not None
    with held([found]):
        assert drop([found]) == []
        assert clean() == []
        with pytest.raises(RefusedError, match="is in use by a run"):
            _taken(asset)
        assert _found(asset) is not None
    assert drop([found]) == []
    assert _kept() == []
    with pytest.raises(RefusedError, match="was removed just now"), held([found]):
        pass


def test_what_a_killed_run_used_is_cleared(asset: Asset, tmp_path: Path) -> None:
    """A folder that the lab did not make stays."""
    _taken(asset)
    foreign = SENT.folder() / "unixbench-mine"
    foreign.mkdir()
    (swept,) = clean()
    assert [Path(path).name for path in swept.removed] == [id_of("unixbench", asset.sha256)]
    assert swept.left == ()
    assert _kept() == ["unixbench-mine"]
    assert clear_unused().removed == ()


def test_assets_of_a_users_own_are_not_held(asset: Asset) -> None:
    """Their folders have no lock in them afterwards."""
    before = sorted(Path(asset.path).rglob("*"))
    with held([asset, replace(asset, path="/nowhere")]):
        pass
    assert sorted(Path(asset.path).rglob("*")) == before
