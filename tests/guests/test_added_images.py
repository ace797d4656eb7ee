"""Users' own images: what is taken, what is refused, and that a kept one is whole and read alone."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from tests.integrity.damage import flip
from vmlab.cli.main import command_line
from vmlab.guests.cached.locks import Lock
from vmlab.guests.image import added, adding
from vmlab.guests.image.adding import NewImage, add
from vmlab.integrity.digests import describe, seal, unseal
from vmlab.model.errors import ExitCode, ImageError, RefusedError, UsageError, VmlabError

SIZE = 2**20
PART = 2**20
"""Where partitions begin."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/vmlab/added-images"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key in a file, with its public one beside it."""
    made = asyncssh.generate_private_key("ssh-ed25519")
    made.write_private_key(tmp_path / "id")
    made.write_public_key(tmp_path / "id.pub")
    return tmp_path / "id"


def _disk(folder: Path, *, boots: bool = True) -> Path:
    """A raw disk with some data behind a hole."""
    content = bytearray(SIZE)
    content[700_000:700_005] = b"hello"
    if boots:
        content[510:512] = b"\x55\xaa"
    (folder / "disk.img").write_bytes(content)
    return folder / "disk.img"


def _qemu_img(*words: str | Path) -> None:
    subprocess.run(["qemu-img", *map(str, words)], check=True, capture_output=True)


def _new(disk: Path, key: Path, **changes: object) -> NewImage:
    return NewImage(**{"name": "own", "disk": disk, "user": "debian", "key": key, **changes})  # type: ignore[arg-type]


def _quiet(_text: str) -> None:
    pass


def test_a_raw_disk_is_copied_sealed_and_found_by_its_name(tmp_path: Path, key: Path) -> None:
    disk = _disk(tmp_path)
    before = disk.stat()
    made = add(_new(disk, key), _quiet)
    assert made.id == f"own-{describe(disk).sha256[:12]}" and made.disk.read_bytes() == disk.read_bytes()
    assert (made.name, made.user, made.kernel, made.command_line, made.size) == ("own", "debian", None, "", SIZE)
    assert made.key.read_bytes() == key.read_bytes() and stat.S_IMODE(made.key.stat().st_mode) == 0o600
    assert added.find("own") == made and added.find("ow") is None and added.disk_sizes() == {"own": SIZE}
    made.require_whole()
    after = disk.stat()
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)


def test_a_qcow2_disk_becomes_raw(tmp_path: Path, key: Path) -> None:
    disk = _disk(tmp_path)
    _qemu_img("convert", "-O", "qcow2", disk, tmp_path / "disk.qcow2")
    made = add(_new(tmp_path / "disk.qcow2", key), _quiet)
    assert made.disk.read_bytes() == disk.read_bytes()


def test_a_kernel_comes_with_a_command_line(tmp_path: Path, key: Path) -> None:
    (tmp_path / "linux").write_bytes(b"kernel")
    (tmp_path / "initrd").write_bytes(b"initrd")
    files = {"kernel": tmp_path / "linux", "initrd": tmp_path / "initrd"}
    parted = add(_new(_disk(tmp_path), key, **files), _quiet)
    assert parted.kernel is not None and parted.kernel.read_bytes() == b"kernel"
    assert parted.initrd is not None and parted.initrd.read_bytes() == b"initrd"
    assert parted.command_line == "root=/dev/vda1 rw console=ttyS0"
    whole = add(_new(_disk(tmp_path, boots=False), key, name="whole", **files), _quiet)
    assert whole.command_line == "root=/dev/vda rw console=ttyS0"
    given = add(_new(_disk(tmp_path), key, name="given", **files, command_line="root=LABEL=x"), _quiet)
    assert given.command_line == "root=LABEL=x"


@pytest.mark.parametrize("kind", ["raw", "qcow2"])
def test_a_disk_that_is_written_while_it_is_copied_is_refused(
    tmp_path: Path, key: Path, cache: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, copy = tmp_path / "disk", adding._copy_disk
    _qemu_img("convert", "-O", kind, _disk(tmp_path), disk)

    def write_meanwhile(source: Path, *more: Any) -> None:
        copy(source, *more)
        os.utime(source, ns=(0, source.stat().st_mtime_ns + 1))

    monkeypatch.setattr(adding, "_copy_disk", write_meanwhile)
    with pytest.raises(ImageError, match="was written while it was copied"):
        add(_new(disk, key), _quiet)
    assert added.find("own") is None and not list(cache.glob("own*"))


@contextmanager
def _locked(disk: Path, first: int) -> Iterator[None]:
    """A disk with a byte that another open file description has locked, as each QEMU does."""
    with disk.open("rb") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, first, 1, 0))
        yield


@pytest.mark.parametrize("kind", ["raw", "qcow2"])
def test_a_disk_that_a_qemu_may_write_is_refused(tmp_path: Path, key: Path, kind: str) -> None:
    disk = tmp_path / "disk"
    _qemu_img("convert", "-O", kind, _disk(tmp_path), disk)
    with _locked(disk, 101), pytest.raises(RefusedError, match=r"is in use by a QEMU, .* \(give a backup or a snap"):
        add(_new(disk, key), _quiet)
    with _locked(disk, 201):
        assert add(_new(disk, key), _quiet).disk.is_file(), "it is only read"


def test_a_device_is_refused_with_what_makes_a_file_of_it(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _disk(tmp_path)
    monkeypatch.setattr(Path, "is_block_device", lambda path: path == disk)
    with pytest.raises(RefusedError, match=r"is a device, .*\(`qemu-img convert -O qcow2 .*disk.img FILE`, and --disk"):
        add(_new(disk, key), _quiet)


def test_a_disk_that_a_qemu_opened_while_it_was_copied_is_refused(tmp_path: Path, key: Path, cache: Path) -> None:
    disk = _disk(tmp_path)
    with ExitStack() as stack, pytest.raises(RefusedError, match="is in use by a QEMU"):
        add(_new(disk, key, demand_unused=lambda: stack.enter_context(_locked(disk, 103))), _quiet)
    assert added.find("own") is None and not list(cache.glob("own*"))


def test_a_disk_in_use_once_it_was_copied_is_refused(tmp_path: Path, key: Path, cache: Path) -> None:
    def in_use() -> None:
        raise RefusedError("it runs")

    with pytest.raises(RefusedError, match="it runs"):
        add(_new(_disk(tmp_path), key, demand_unused=in_use), _quiet)
    assert added.find("own") is None and not list(cache.glob("own*"))


@pytest.mark.parametrize("name", [added.DISK, added.KEY, added.KERNEL])
def test_one_flipped_bit_is_refused_with_what_mends_it(tmp_path: Path, key: Path, name: str) -> None:
    (tmp_path / "linux").write_bytes(b"kernel")
    made = add(_new(_disk(tmp_path), key, kernel=tmp_path / "linux"), _quiet)
    flip(made.folder / name)
    with pytest.raises(ImageError, match=f"{made.id} is damaged: {name} is not what it was") as caught:
        made.require_whole()
    assert caught.value.remedy == "vmlab image rm own, and add it again"


def test_a_damaged_one_is_listed_and_removed_by_its_name(tmp_path: Path, key: Path) -> None:
    made = add(_new(_disk(tmp_path), key), _quiet)
    (made.folder / "manifest.json").write_text("{")
    (listed,) = added.list_added()
    assert (listed.id, listed.name, listed.user) == (made.id, "own", None)
    assert added.disk_sizes() == {}
    with pytest.raises(ImageError, match="already"):
        add(_new(_disk(tmp_path), key), _quiet)
    assert added.remove("own") and added.list_added() == []


def test_one_in_use_is_not_removed(tmp_path: Path, key: Path) -> None:
    made = add(_new(_disk(tmp_path), key), _quiet)
    with made.held(), pytest.raises(ImageError, match="in use by a run"):
        added.remove("own")
    assert added.remove("own") and not added.remove("own")
    with pytest.raises(ImageError, match="removed just now"), made.held():
        pass


def _no_boot(folder: Path) -> Path:
    return _disk(folder, boots=False)


def _vmdk(folder: Path) -> Path:
    _qemu_img("convert", "-O", "vmdk", _disk(folder), folder / "disk.vmdk")
    return folder / "disk.vmdk"


def _overlay(folder: Path) -> Path:
    _qemu_img("create", "-f", "qcow2", "-b", _disk(folder), "-F", "raw", folder / "over.qcow2")
    return folder / "over.qcow2"


def _apart(folder: Path) -> Path:
    options = f"data_file={folder / 'data.raw'},data_file_raw=on"
    _qemu_img("create", "-f", "qcow2", "-o", options, folder / "apart.qcow2", str(SIZE))
    return folder / "apart.qcow2"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_no_boot, "has no boot sector"),
        (_vmdk, "is vmdk, and an image is raw or qcow2"),
        (_overlay, "is not whole: it needs another file"),
        (_apart, "is not whole: it needs another file"),
    ],
)
def test_a_disk_that_cannot_be_an_image_leaves_nothing(
    tmp_path: Path, key: Path, cache: Path, make: object, words: str
) -> None:
    assert callable(make)
    with pytest.raises(ImageError, match=words) as caught:
        add(_new(make(tmp_path), key), _quiet)
    assert caught.value.exit_code == ExitCode.REFUSED and len(str(caught.value).splitlines()) == 1
    # That would copy the file that the disk names into it, which may be any file of this host.
    assert "qemu-img convert" not in "\n".join(caught.value.lines())
    assert not [path for path in cache.glob("*") if path.name != ".locks"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "Own"}, "needs small letters"),
        ({"name": "../own"}, "needs small letters"),
        ({"name": "debian"}, "is taken"),
        ({"name": "vmlab-0123456789ab"}, "is taken"),
        ({"user": "a b"}, "is no name of a user"),
        ({"initrd": Path("/x")}, "belong to a kernel"),
        ({"command_line": "quiet"}, "belong to a kernel"),
    ],
)
def test_wrong_words_are_wrong_usage(tmp_path: Path, key: Path, changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        add(_new(_disk(tmp_path), key, **changes), _quiet)


def test_only_a_private_key_without_a_passphrase_will_do(tmp_path: Path, key: Path) -> None:
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(
        tmp_path / "locked", "pkcs8-pem", passphrase="secret"
    )
    for file in (tmp_path / "id.pub", tmp_path / "locked", _disk(tmp_path), tmp_path / "none"):
        with pytest.raises(UsageError, match=file.name):
            add(_new(_disk(tmp_path), file), _quiet)


def _root(folder: Path, *programs: str, fstab: str = "/dev/vda1 / ext4 defaults 0 1\n") -> bytes:
    """An ext4 root file system as Debian lays it out, with these programs in /usr/bin; python3 is a link."""
    tree = folder / "tree"
    for below in ("usr/bin", "usr/sbin", "etc"):
        (tree / below).mkdir(parents=True)
    (tree / "bin").symlink_to("usr/bin")
    (tree / "usr/bin/python3").symlink_to("python3.11")
    (tree / "etc/fstab").write_text(fstab)
    for program in ("sh", *programs):
        (tree / "usr/bin" / program).touch(mode=0o755)
    disk = folder / "root.img"
    subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(disk), "4M"], check=True)
    return disk.read_bytes()


def _entry(kind: int, sector: int) -> bytes:
    return bytes(4) + bytes([kind]) + bytes(3) + struct.pack("<II", sector, 2**13)


def _table(*entries: bytes) -> bytes:
    return (bytes(446) + b"".join(entries)).ljust(510, b"\0") + b"\x55\xaa"


def _whole(root: bytes) -> bytes:
    return root[:510] + b"\x55\xaa" + root[512:]


def _mbr(root: bytes) -> bytes:
    return _table(_entry(0x0B, 64), _entry(0x83, PART // 512)).ljust(PART, b"\0") + root


def _logical(root: bytes) -> bytes:
    """The second of two logical partitions."""
    first = _table(_entry(0x05, 128)).ljust(PART, b"\0")
    records = _table(_entry(0x82, 8), _entry(0x05, 256)).ljust(256 * 512, b"\0") + _table(_entry(0x83, 2))
    at_128 = first[: 128 * 512] + records.ljust(258 * 512, b"\0")
    return at_128 + root


def _gpt(root: bytes) -> bytes:
    """One of 128 entries is in use, and not the first; both sums are right, or no tool reads the table."""
    entries = bytearray(128 * 128)
    entries[128:176] = struct.pack(
        "<16s16sQQ", b"type of Linux...", b"its own identity", PART // 512, PART // 512 + 2**13
    )
    sector = 2**14

    def header(own_sum: int) -> bytes:
        fixed = struct.pack("<8sIIII", b"EFI PART", 0x10000, 92, own_sum, 0)
        places = struct.pack("<QQQQ16s", 1, sector, 34, sector - 34, b"that of the disk")
        return fixed + places + struct.pack("<QIII", 2, 128, 128, zlib.crc32(entries))

    whole = header(zlib.crc32(header(0))).ljust(512, b"\0")
    return (_table(_entry(0xEE, 1)) + whole + entries).ljust(PART, b"\0") + root.ljust(512 * sector, b"\0")


def _added_with(content: bytes, folder: Path, key: Path) -> tuple[added.AddedImage, list[str]]:
    """The image of a disk with this content, and the lines that were said meanwhile."""
    (folder / "own.img").write_bytes(content)
    said: list[str] = []
    return add(_new(folder / "own.img", key), said.append), said


@pytest.mark.parametrize("laid_out", [_whole, _mbr, _logical, _gpt])
def test_programs_are_looked_for_on_the_disk_when_it_is_added(
    tmp_path: Path, key: Path, laid_out: Callable[[bytes], bytes]
) -> None:
    made, said = _added_with(laid_out(_root(tmp_path, "fio", "mount.cifs")), tmp_path, key)
    assert made.programs["fio"] and made.programs["mount.cifs"] and made.programs["python3"]
    assert not made.programs["sysbench"] and not made.programs["ab"]
    lacked = added.lacked_programs()["own"]
    assert {"sysbench", "ab", "java"} <= set(lacked) and not {"fio", "python3"} & set(lacked)
    (line,) = [one for one in said if "lacks" in one]
    assert "sysbench" in line and "ab (apache2-utils)" in line and "fio" not in line
    assert line.endswith("scenarios that need one of them are refused")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda _folder: _table() + bytes(SIZE), "no ext2, ext3 or ext4 root file system"),
        (lambda _folder: _mbr(bytes(1080) + b"\x53\xef" + bytes(SIZE)), "no ext2, ext3 or ext4 root file system"),
        (lambda _folder: _table(*[_entry(0x05, 0)] * 4) + bytes(SIZE), "no ext2, ext3 or ext4 root file system"),
        (
            lambda folder: _mbr(_root(folder, fstab="/dev/vdb1 /usr/local ext4\n")),
            "'/usr/local' is another file system",
        ),
    ],
    ids=["no file system", "only its magic", "a table that leads to itself", "another file system below /usr"],
)
def test_a_disk_that_cannot_be_looked_at_is_added_with_one_line(
    tmp_path: Path, key: Path, content: Callable[[Path], bytes], why: str
) -> None:
    made, said = _added_with(content(tmp_path), tmp_path, key)
    assert made.programs == {} and added.lacked_programs() == {}
    (line,) = [one for one in said if "could not be checked" in one]
    assert why in line


def test_one_that_was_added_before_lacks_nothing_that_is_known(tmp_path: Path, key: Path) -> None:
    made, _ = _added_with(_mbr(_root(tmp_path)), tmp_path, key)
    manifest = unseal((made.folder / "manifest.json").read_bytes())
    del manifest["programs"], manifest["system"]
    (made.folder / "manifest.json").write_text(seal(manifest))
    assert added.require("own").programs == {} and added.lacked_programs() == {}
    assert added.require("own").system == "linux" and added.windows_images() == ()


def test_a_scenario_that_needs_a_program_which_the_image_lacks_is_refused(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    _added_with(_mbr(_root(tmp_path, "fio", "systemctl", "install", "useradd")), tmp_path, key)
    for kind, work in (("cpu", "threads: 1, max_prime: 1000"), ("fio", "rw: read, size: 8 MiB")):
        guests = "guests:\n  vm: {memory: 512 MiB, image: own}\n"
        workloads = f"workloads: {{work: {{kind: {kind}, on: vm, {work}}}}}\n"
        (tmp_path / f"{kind}.yaml").write_text(f"name: x\n{guests}{workloads}")
    wanted = f"{tmp_path}/cpu.yaml:3:32: guest vm needs what its image own lacks: sysbench for workload work"
    for command in ("validate", "plan", "run"):
        assert command_line([command, str(tmp_path / "cpu.yaml")]) == ExitCode.USAGE
        assert capsys.readouterr().err.splitlines()[-1].endswith(wanted)
    assert command_line(["validate", str(tmp_path / "fio.yaml")]) == 0


def test_an_image_with_windows_is_known_as_one_and_its_programs_are_not_looked_for(tmp_path: Path, key: Path) -> None:
    said: list[str] = []
    made = add(_new(_disk(tmp_path), key, user="Administrator", system="windows"), said.append)
    assert (made.system, made.user, made.programs) == ("windows", "Administrator", {})
    assert added.windows_images() == ("own",) and not any("could not be checked" in line for line in said)
    with pytest.raises(UsageError, match="--kernel is for Linux"):
        add(_new(_disk(tmp_path), key, name="other", system="windows", kernel=tmp_path / "id"), _quiet)
    with pytest.raises(UsageError, match="is no name of a user"):
        add(_new(_disk(tmp_path), key, name="other", user="Administrator"), _quiet)


def test_what_was_interrupted_leaves_nothing(
    tmp_path: Path, key: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vmlab.guests.image.adding.describe", full)
    with pytest.raises(ImageError, match="could not be added: No space left on device"):
        add(_new(_disk(tmp_path), key), _quiet)
    assert not [path for path in cache.glob("*") if path.name != ".locks"]


def test_what_a_killed_process_left_is_cleared(tmp_path: Path, key: Path) -> None:
    made = add(_new(_disk(tmp_path), key), _quiet)
    left = made.folder.with_name(f".adding-{made.id}-0123abcd")
    made.folder.rename(left)
    held = Lock.shared(left / "use.lock")
    assert held is not None and added.ADDED.clear_unfinished().removed == ()
    held.release()
    assert [Path(path) for path in added.ADDED.clear_unfinished().removed] == [left] and not left.exists()


def test_the_commands(tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--disk", str(_disk(tmp_path)), "--user", "root", "--key", str(key)]
    assert command_line(["image", "add", "own", *given]) == 0
    id = capsys.readouterr().out.strip()
    assert command_line(["image", "ls", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["images"]
    assert {name: row[name] for name in ("id", "name", "user", "current")} == {
        "id": id,
        "name": "own",
        "user": "root",
        "current": False,
    }
    assert command_line(["image", "ls"]) == 0
    assert "added as own, user root" in capsys.readouterr().out
    assert command_line(["image", "add", "own", *given]) == ExitCode.REFUSED
    assert command_line(["image", "add", "other", *given[2:]]) == ExitCode.USAGE
    assert command_line(["image", "rm", "own"]) == 0
    assert command_line(["image", "rm", "own"]) == ExitCode.REFUSED
    assert [path.name for path in (tmp_path / "cache/vmlab/added-images").iterdir()] == [".locks"]


def test_errors_are_of_one_tree() -> None:
    with pytest.raises(VmlabError, match="there is no guest image 'none'"):
        added.require("none")
