"""A build is all or nothing: failures, a full disk, signals, a kill, a second build. mmdebstrap has a stand-in here."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.guests.image_stubs import MAKES_A_TREE, path_with, put_stub
from vmlab.guests.cached import collection
from vmlab.guests.cached.locks import Lock
from vmlab.guests.image import building, catalog
from vmlab.guests.image.catalog import current_recipe
from vmlab.model.errors import ImageError, RefusedError
from vmlab.system.removal import Removals, make_marked

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a build needs root for its namespaces")

HANGS = ["sleep", f"54321.{os.getpid()}"]
"""A command that hangs, by whose words it is found among the processes of this host."""
BUILDS = """
    import sys
    from vmlab.guests.image import building
    from vmlab.model.errors import VmlabError
    building._NEEDED_BYTES, building._SPARE_BYTES = 0, 32 * 1024**2
    try:
        print(building.ensure(lambda line: print(line, flush=True)).id)
    except VmlabError as error:
        print("error:", error)
        sys.exit(int(error.exit_code))
"""


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of the search path; the cache is empty and on this test's own folder."""
    folder = tmp_path / "stubs"
    put_stub(folder, MAKES_A_TREE)
    monkeypatch.setenv("PATH", path_with(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "_NEEDED_BYTES", 0)
    monkeypatch.setattr(building, "_SPARE_BYTES", 32 * 1024**2)
    return folder


@pytest.fixture
def builder(stubs: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that builds, with a stand-in that hangs in a grandchild until it is killed."""
    put_stub(stubs, f'echo "I: extracting archives..."\n({" ".join(HANGS)})\n')
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(BUILDS)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    try:
        assert process.stdout is not None
        assert "installing Debian" in process.stdout.readline()
        _until(_hanging)
        yield process
    finally:
        process.kill()
        process.communicate()


def _hanging() -> bool:
    return any(process.info["cmdline"] == HANGS for process in psutil.process_iter(["cmdline"]))


def _until(condition: object, seconds: float = 120.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def _folders(tmp_path: Path) -> list[str]:
    found = (path.name for path in (tmp_path / "cache/vmlab/images").iterdir() if path.is_dir())
    return sorted(name for name in found if name != ".locks")


def test_an_image_is_built_once_and_then_found(stubs: Path, tmp_path: Path) -> None:
    said: list[str] = []
    built = building.ensure(said.append)
    assert _folders(tmp_path) == [built.id]
    assert built.kernel.read_text() == "kernel\n"
    assert subprocess.run(["e2fsck", "-fn", built.disk], capture_output=True).returncode == 0
    assert "preparing database" in said
    put_stub(stubs, "exit 1\n")
    assert building.ensure(said.append) == built == catalog.find()


def test_the_manifest_tells_what_is_in_it(stubs: Path) -> None:
    built = building.build(lambda _line: None)
    manifest = json.loads(built.manifest.read_text())
    assert manifest["packages"] == {"hello": "2.10-3"}
    assert manifest["licences"] == {"hello": ["GPL-3"]}
    docs = subprocess.run(["debugfs", "-R", "ls -p /usr/share/doc", built.disk], capture_output=True, text=True)
    assert "/./" in docs.stdout and "hello" not in docs.stdout, "manuals are left out"
    assert manifest["recipe"]["codename"] == "bookworm"
    assert manifest["files"]["vmlinuz"]["size"] == len("kernel\n")
    digest = subprocess.run(["sha256sum", built.disk], capture_output=True, text=True, check=True).stdout.split()[0]
    assert manifest["files"]["root.raw"]["sha256"] == digest
    assert "mirror" not in built.manifest.read_text()
    assert {path.name for path in built.folder.iterdir()} == {
        *("root.raw", "vmlinuz", "initrd.img", "manifest.json", "use.lock", "build.log", "vmlab.mark")
    }


def test_a_failure_names_its_reason_and_leaves_only_the_log(stubs: Path, tmp_path: Path) -> None:
    put_stub(stubs, 'echo "E: no such package: hello" >&2\nexit 100\n')
    with pytest.raises(
        ImageError, match=r"mmdebstrap failed: no such package: hello .see .*failed-build.log"
    ) as caught:
        building.build(lambda _line: None)
    assert "\n" not in str(caught.value)
    assert _folders(tmp_path) == []
    assert "no such package" in (tmp_path / "cache/vmlab/images/failed-build.log").read_text()


def test_temporary_files_of_the_tools_go_with_the_build(stubs: Path, tmp_path: Path) -> None:
    put_stub(stubs, f"mktemp >{tmp_path}/made\nexit 1\n")
    with pytest.raises(ImageError):
        building.build(lambda _line: None)
    made = Path((tmp_path / "made").read_text().strip())
    assert made.is_relative_to(tmp_path / "cache") and not made.exists()


def test_a_disk_that_becomes_full_is_called_full(stubs: Path, tmp_path: Path) -> None:
    put_stub(stubs, "cat /etc/passwd >/dev/full\n")
    with pytest.raises(ImageError, match=f"this host's file system of {tmp_path}/cache/vmlab/images became full"):
        building.build(lambda _line: None)
    assert _folders(tmp_path) == []


def test_a_disk_without_room_is_refused_before_anything_starts(
    stubs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_NEEDED_BYTES", shutil.disk_usage(tmp_path).total * 2)
    with pytest.raises(RefusedError, match=r"building a guest image needs .* are free"):
        building.build(lambda _line: None)
    assert _folders(tmp_path) == []


def test_a_missing_tool_is_named_with_its_package(stubs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(stubs))
    (stubs / "mmdebstrap").unlink()
    with pytest.raises(
        ImageError, match=r"apt-get install --no-install-recommends e2fsprogs gcc mmdebstrap util-linux"
    ):
        building.build(lambda _line: None)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_everything_and_leaves_nothing(
    builder: subprocess.Popen[str], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    builder.send_signal(number)
    out, _ = builder.communicate(timeout=120)
    assert "error: the image build was interrupted" in out
    assert builder.returncode == status
    assert not _hanging()
    assert _folders(tmp_path) == []


def test_after_a_kill_nothing_runs_and_the_next_build_clears_up(
    builder: subprocess.Popen[str], stubs: Path, tmp_path: Path
) -> None:
    builder.kill()
    builder.wait()
    _until(lambda: not _hanging())
    assert [name.partition("-")[0] for name in _folders(tmp_path)] == [".building"]
    put_stub(stubs, MAKES_A_TREE)
    assert _folders(tmp_path) != [built := building.build(lambda _line: None).id]
    assert _folders(tmp_path) == [built]


def test_a_leftover_that_cannot_be_removed_is_named_once_and_built_beside(stubs: Path, tmp_path: Path) -> None:
    address = current_recipe().address()
    stays = tmp_path / f"cache/vmlab/images/.building-{address}-1"
    make_marked(stays, address)
    (stays / "mounted").mkdir()
    # The mount is gone with the namespace of the two builds.
    twice = 'mount -t tmpfs dummy "$1" && "$2" -c "$3" && "$2" -c "$4"'
    again = textwrap.dedent(BUILDS).replace("building.ensure(", "building.build(force=True, progress=")
    command = ["unshare", "--mount", "sh", "-c", twice, "sh", str(stays / "mounted"), sys.executable]
    done = subprocess.run([*command, textwrap.dedent(BUILDS), again], capture_output=True, text=True, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if str(stays) in line]
    assert len(told) == 2, "once for each build"
    assert "cannot be removed, and is passed over" in told[0] and "something is mounted there" in told[0]
    assert _folders(tmp_path) == [stays.name, address]
    assert building.clear_unfinished().removed == (stays,)


def test_what_remains_of_the_image_before_keeps_no_new_one_from_its_place(
    stubs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = building.build(lambda _line: None)

    def refuses(folder: Path) -> bool:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(folder / "root.raw"))

    said: list[str] = []
    monkeypatch.setattr(collection, "remove_tree", refuses)
    assert building.build(said.append, force=True) == catalog.find()
    assert [line for line in said if "is out of use, but cannot be removed" in line and "not permitted" in line]
    assert len(_folders(tmp_path)) == 2
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert len(building.clear_unfinished().removed) == 1
    assert _folders(tmp_path) == [first.id]


def test_what_another_version_builds_is_not_cleared(stubs: Path, tmp_path: Path) -> None:
    under_way = tmp_path / "cache/vmlab/images/.building-vmlab-1-2"
    make_marked(under_way, "vmlab-1")
    lock = Lock.try_exclusive(under_way.parent / ".build.lock")
    assert lock is not None
    assert building.clear_unfinished() == Removals() and under_way.is_dir()
    lock.release()
    assert building.clear_unfinished().removed == (under_way,)


def test_a_build_under_way_is_not_cleared(builder: subprocess.Popen[str], tmp_path: Path) -> None:
    (under_way,) = _folders(tmp_path)
    assert building.clear_unfinished() == Removals()
    assert _folders(tmp_path) == [under_way]


def test_mounts_of_a_killed_build_are_gone(stubs: Path, tmp_path: Path) -> None:
    put_stub(stubs, "for tree; do :; done\nmkdir -p /tmp/x$$; mount -t tmpfs vmlab-test-mount /tmp\nexit 1\n")
    with pytest.raises(ImageError):
        building.build(lambda _line: None)
    assert "vmlab-test-mount" not in Path("/proc/mounts").read_text()


def test_a_second_build_waits_and_takes_what_the_first_one_made(stubs: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    put_stub(stubs, f"echo run >>{tmp_path}/runs\nuntil [ -e {go} ]; do sleep 0.02; done\n{MAKES_A_TREE}")
    waits = "another build of a guest image is under way; waiting for it"
    words = [tmp_path / "first", tmp_path / "second"]
    both = []
    for place in words:
        with place.open("w") as output:
            both.append(subprocess.Popen([sys.executable, "-c", textwrap.dedent(BUILDS)], stdout=output))
    try:
        _until(lambda: any(waits in place.read_text() for place in words))
    finally:
        go.touch()
    assert [process.wait(240) for process in both] == [0, 0]
    said = [place.read_text().splitlines() for place in words]
    assert said[0][-1] == said[1][-1] == _folders(tmp_path)[0]
    assert sum(waits in lines for lines in said) == 1
    assert (tmp_path / "runs").read_text() == "run\n"


def test_force_replaces_an_image_but_not_one_in_use(stubs: Path, tmp_path: Path) -> None:
    first = building.build(lambda _line: None)
    put_stub(stubs, MAKES_A_TREE.replace("echo kernel", "echo newer"))
    with first.held(), pytest.raises(ImageError, match="in use by a run"):
        building.build(lambda _line: None, force=True)
    assert first.kernel.read_text() == "kernel\n"
    building.build(lambda _line: None, force=True)
    assert first.kernel.read_text() == "newer\n"
    assert _folders(tmp_path) == [first.id]
