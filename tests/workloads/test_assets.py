"""Users' own copies of suites: what they must be, what is said of others, and that they stay what they were."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.fakes.shell import FakeShell
from tests.fakes.suites import unixbench_at
from vmlab.model.errors import ExitCode, RefusedError, UsageError, WorkloadError
from vmlab.workloads import assets
from vmlab.workloads.assets import asset_folder, asset_forms, packed, read_assets


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder that passes for UnixBench's source."""
    return unixbench_at(tmp_path)


def _sha256(path: Path) -> str:
    return read_assets([f"unixbench={path}"])["unixbench"].sha256


def test_a_copy_is_known_by_what_is_in_it(suite: Path) -> None:
    before = _sha256(suite)
    assert before == _sha256(suite.parent) and len(before) == 64
    (suite / "results").mkdir()
    (suite / "results/host-2026-11-22-01").write_text("an earlier report")
    os.utime(suite / "Run", (1, 1))
    assert _sha256(suite) == before
    (suite / "src/whets.c").chmod(0o755)
    assert _sha256(suite) != before
    (suite / "src/whets.c").chmod(0o644)
    (suite / "src/whets.c").write_text("another")
    assert _sha256(suite) != before


def test_an_archive_has_all_files_and_no_owner(suite: Path) -> None:
    asset = read_assets([f"unixbench={suite}"])["unixbench"]
    with tarfile.open(fileobj=io.BytesIO(packed(asset))) as found:
        members = found.getmembers()
    assert [one.name for one in members] == sorted(f"unixbench/{name}" for name in asset_forms()["unixbench"].files)
    assert {one.name: one.mode for one in members}["unixbench/Run"] == 0o755
    assert {(one.uid, one.mtime, one.uname) for one in members} == {(0, 0, "")}
    assert asset.size == len(packed(asset))


def test_a_copy_that_changed_is_not_used(suite: Path) -> None:
    asset = read_assets([f"unixbench={suite}"])["unixbench"]
    (suite / "src/dhry_1.c").write_text("quicker")
    with pytest.raises(WorkloadError, match="is not what it was when the run began"):
        packed(asset)
    (suite / "src/dhry_1.c").unlink()
    (suite / "src/dhry_1.c").symlink_to("/etc/shadow")
    with pytest.raises(WorkloadError, match=r"cannot be read any more: .* is not a plain file"):
        packed(asset)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("unixbench", "--asset 'unixbench' is not NAME=PATH; names are specjvm2008, unixbench"),
        ("unixbench=", "--asset 'unixbench=' is not NAME=PATH"),
        ("bonnie=/tmp", "--asset 'bonnie=/tmp' is not NAME=PATH; names are"),
    ],
)
def test_words_that_name_no_asset(words: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_assets([words])
    assert str(caught.value).startswith(reason)


def test_an_asset_is_given_once(suite: Path) -> None:
    with pytest.raises(UsageError, match="--asset unixbench is given twice"):
        read_assets([f"unixbench={suite}"] * 2)


def test_what_is_not_the_suite_is_refused(suite: Path, tmp_path: Path) -> None:
    (suite / "src/fstime.c").unlink()
    plain, java = tmp_path / "setup.jar", tmp_path / "java"
    plain.write_text("no archive")
    java.mkdir()
    for given, reason in [
        (f"unixbench={suite}", "has no src/fstime.c; it should be the folder of UnixBench's source"),
        (f"unixbench={tmp_path / 'none'}", "there is no"),
        (f"unixbench={plain}", "has no Run"),
        (f"specjvm2008={plain}", "is not a .jar file; it should be the folder where SPECjvm2008 is installed"),
        (f"specjvm2008={java}", "has no SPECjvm2008.jar"),
    ]:
        with pytest.raises(RefusedError) as caught:
            read_assets([given])
        assert reason in str(caught.value) and caught.value.exit_code == ExitCode.REFUSED
        assert len(caught.value.lines()) == 1


def test_a_setup_of_specjvm_is_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "setup.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "")
    assert read_assets([f"specjvm2008={tmp_path / 'setup.jar'}"])["specjvm2008"].path.endswith("/setup.jar")


def test_a_copy_that_is_too_large_is_refused(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "MOST_BYTES", 10)
    with pytest.raises(RefusedError, match="has more than"):
        _sha256(suite)


def test_a_copy_lies_outside_of_a_guests_data_disk() -> None:
    assert not asset_folder(FakeShell("vm", "198.18.1.10"), "ub").startswith("/data")
    assert asset_folder(FakeShell("host", "198.18.0.1"), "ub") == "/data/vmlab-ub-asset"
