"""`vmlab scenario from`: each kind of source, and one line for each that is none."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import asyncssh
import pytest

from tests.plan.copied_guest.guests import VM100, WEB01, with_disk
from vmlab.cli.commands import image_commands
from vmlab.cli.main import command_line
from vmlab.guests.image.adding import NewImage
from vmlab.model.errors import RefusedError, UsageError, VmlabError
from vmlab.plan.copied_guest.guest_sources import disk_to_copy, found_guest
from vmlab.plan.scenario_file.loading import load
from vmlab.telemetry.domains.libvirt_reader import FoundDomain, LibvirtReader
from vmlab.telemetry.source import Roots

Captured = pytest.CaptureFixture[str]
HERE = "qemu:///session"
OWN_SOCKET = "qemu+unix:///system?socket=/run/own/libvirt-sock"
ELSEWHERE = ["qemu+ssh://other/system", "qemu://other/system", "qemu+ssh:///system", "test:///default"]


def printed(capsys: Captured, *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    code = command_line(["scenario", "from", *words])
    out, err = capsys.readouterr()
    return code, out, err


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False, buffer=io.BytesIO(text.encode())))


@pytest.mark.parametrize("text", [WEB01, VM100, with_disk()], ids=["XML", "qm config", "one disk"])
def test_a_file_becomes_a_scenario_that_this_host_plans(
    text: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "guest.txt").write_text(text)
    code, out, err = printed(capsys, str(tmp_path / "guest.txt"))
    assert (code, err) == (0, "")
    piped(monkeypatch, out)
    assert load("-").scenario.axes["setting"].values[0] == "as-it-is"
    piped(monkeypatch, out)
    assert command_line(["plan", "-"]) == 0


def test_standard_input_is_a_text(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    piped(monkeypatch, WEB01)
    code, out, _ = printed(capsys, "-")
    assert code == 0
    assert out.startswith("# A guest like web01: the XML of a domain in <standard input>.")


def test_a_domain_of_libvirt_by_name_and_by_uuid(capsys: Captured) -> None:
    """libvirt's own driver for tests has a domain without a disk, of a type of its own."""
    pytest.importorskip("libvirt")
    for name in ("test", "6695eb01-f6a4-8304-79aa-97f2502e193f"):
        code, out, err = printed(capsys, name, "--connect", "test:///default")
        assert (code, out) == (2, "")
        words = "is a domain of type 'test', whose disks QEMU does not drive; type kvm or qemu is needed"
        assert err == f"test:///default {name}:1:1: {words}\n"
    assert printed(capsys, "nobody", "--connect", "test:///default") == (
        2,
        "",
        "vmlab: there is no domain 'nobody' at test:///default\n",
    )
    code, _, err = printed(capsys, "test", "--connect", "test:///no/such/file")
    assert code == 3 and err.startswith("vmlab: libvirt at test:///no/such/file cannot be asked: ")


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        ("a.xml", WEB01[:700], 2, "a.xml:"),
        ("a.xml", "<network/>", 2, "a.xml:1:1: is the XML of <network>, and not of a <domain>"),
        ("a.xml", "<domain type='lxc'><name>c</name></domain>", 2, "a.xml:1:1: is a container, "),
        ("a.xml", "<domain type='kvm'><name>d</name></domain>", 2, "vmlab: d (the XML of a domain in "),
        ("a.txt", "name: tile\nguests: {}\n", 2, "a.txt:1:1: is neither libvirt's XML of a domain nor the text of"),
        ("a.txt", "", 2, "a.txt:1:1: is empty"),
        ("a.txt", "cores: 2\nmemory: 512\n", 2, "vmlab: guest (the text of qm config in "),
    ],
)
def test_a_text_that_is_none_is_one_line(
    name: str, text: str, code: int, words: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    found, out, err = printed(capsys, f"./{name}")
    assert (found, out) == (code, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_what_is_not_there_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    code, _, err = printed(capsys, str(tmp_path / "none.xml"))
    assert (code, err) == (2, f"vmlab: cannot read {tmp_path / 'none.xml'}: No such file or directory\n")
    code, _, err = printed(capsys, "no-such-guest-here")
    assert code in (2, 3)
    assert "no-such-guest-here" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("word", ["9" * 5000, "²", "é" * 200, "web\udcff"])
def test_a_strange_word_is_one_line(word: str, capsys: Captured) -> None:
    code, out, err = printed(capsys, word)
    assert code in (2, 3) and out == ""
    assert len(err.splitlines()) == 1 and err.startswith("vmlab: ")


def test_a_name_that_libvirt_cannot_be_given_is_one_line(capsys: Captured) -> None:
    pytest.importorskip("libvirt")
    code, out, err = printed(capsys, "web\udcff", "--connect", "test:///default")
    assert (code, out) == (3, "")
    assert err.startswith("vmlab: libvirt at test:///default cannot be asked: ") and len(err.splitlines()) == 1


def test_a_process_that_is_no_qemu_is_one_line(capsys: Captured) -> None:
    with subprocess.Popen(["cat", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as other:
        assert other.stdin is not None and other.stdout is not None
        # It answers, so it has its arguments: the kernel tells of an exec a moment before they can be read.
        other.stdin.write(b"?")
        assert other.stdout.read(1) == b"?"
        code, out, err = printed(capsys, str(other.pid))
        other.stdin.close()
    assert (code, out) == (2, "")
    assert err == f"vmlab: process {other.pid} is no QEMU with a guest of this host's own, but cat\n"


def test_a_process_without_arguments_has_its_name(capsys: Captured) -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        code, out, err = printed(capsys, str(ended.pid))
    assert (code, out) == (2, "")
    assert err == f"vmlab: process {ended.pid} is no QEMU with a guest of this host's own, but true\n"


def test_arguments_that_may_not_be_read_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proc/42").mkdir(parents=True)
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == "cmdline":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(RefusedError, match=r"may not read the arguments of process 42 \(run it as root\)"):
        found_guest("42", roots=Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "proc"))


@pytest.fixture
def domains(monkeypatch: pytest.MonkeyPatch) -> dict[str, FoundDomain]:
    """What any libvirt finds, by name."""
    source = "<source protocol='nbd' name='/etc/hostname'><host name='h'/></source>"
    texts = {"on": WEB01, "off": with_disk(), "saved": with_disk(), "-": with_disk()}
    texts["nbd"] = with_disk(source=source).replace("<disk type='file'", "<disk type='network'")
    pooled = with_disk(source="<source pool='default' volume='v'/>")
    texts["pool"] = pooled.replace("<disk type='file'", "<disk type='volume'")
    texts["lvm"] = with_disk("type='raw'", source="<source dev='/dev/vg/a'/>").replace("type='file'", "type='block'")
    found = {name: FoundDomain(text, _no_size, name == "saved") for name, text in texts.items()}
    monkeypatch.setattr(LibvirtReader, "find", lambda _, wanted: found.get(wanted))
    return found


@pytest.mark.parametrize("uri", ELSEWHERE)
def test_the_disk_of_another_hosts_domain_is_not_looked_for_here(
    domains: dict[str, FoundDomain], uri: str, capsys: Captured
) -> None:
    words = ["image", "add", "mine", "--domain", "off", "--connect", uri, "--user", "root", "--key", "k"]
    assert command_line(words) == 2
    err = capsys.readouterr().err
    assert "copy the disk's file to this host, and name it with --disk FILE" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("name", ["off", "-"])
def test_the_disk_of_a_domain_that_is_shut_off_is_copied(
    domains: dict[str, FoundDomain], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    piped(monkeypatch, with_disk(source="<source file='/no/other'/>"))
    assert disk_to_copy(name, HERE) == Path("/no/d")


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("on", RefusedError, r"on is running, and a copy of a disk in use proves nothing \(`virsh"),
        ("saved", RefusedError, r"saved is saved in the middle of its work, .*`virsh start saved`, and shut it off"),
        ("nbd", UsageError, "disk vda of domain nbd is /etc/hostname by nbd, and no file of this host's"),
        ("pool", RefusedError, r"volume v of storage pool default \(--disk .* `virsh vol-path v --pool default` names"),
        (
            "lvm",
            RefusedError,
            r"is the device /dev/vg/a \(`qemu-img convert -f raw -O qcow2 /dev/vg/a FILE`, and --disk FILE\)",
        ),
        ("nobody", UsageError, f"there is no domain 'nobody' at {HERE}"),
    ],
)
def test_no_other_disk_is_copied(
    domains: dict[str, FoundDomain], name: str, error: type[VmlabError], words: str
) -> None:
    with pytest.raises(error, match=words):
        disk_to_copy(name, HERE)


UEFI = [
    ("<os><", "<os firmware='efi'><"),
    ("</os>", "<loader readonly='yes' type='pflash'>/OVMF_CODE.fd</loader><nvram>/vars.fd</nvram></os>"),
]


@pytest.mark.parametrize("firmware", UEFI, ids=["by libvirt", "by its loader"])
def test_a_disk_that_uefi_boots_is_copied_only_with_a_kernel(
    domains: dict[str, FoundDomain], monkeypatch: pytest.MonkeyPatch, capsys: Captured, firmware: tuple[str, str]
) -> None:
    domains["off"] = domains["off"]._replace(xml=with_disk().replace(*firmware))
    added: list[Path] = []

    def copy(new: NewImage, progress: object) -> SimpleNamespace:
        new.demand_unused()
        added.append(new.disk)
        return SimpleNamespace(id="mine-1")

    monkeypatch.setattr(image_commands, "add", copy)
    words = ["image", "add", "mine", "--domain", "off", "--connect", HERE, "--user", "root", "--key", "k"]
    assert command_line(words) == 3
    err = capsys.readouterr().err
    assert "domain off boots with UEFI" in err and "--kernel" in err and len(err.splitlines()) == 1
    assert added == []
    assert command_line([*words, "--kernel", "vmlinuz"]) == 0
    assert added == [Path("/no/d")]


def test_a_domain_that_was_started_while_its_disk_was_copied_is_refused(
    domains: dict[str, FoundDomain], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def copy(new: NewImage, progress: object) -> None:
        domains["off"] = domains["on"]
        new.demand_unused()

    monkeypatch.setattr(image_commands, "add", copy)
    words = ["image", "add", "mine", "--domain", "off", "--connect", HERE, "--user", "root", "--key", "k"]
    assert command_line(words) == 3
    assert "domain off is running" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more", [[], ["--disk", "DISK", "--domain", "off"], ["--disk", "DISK", "--connect", "test:///default"]]
)
def test_a_disk_is_named_in_one_way(
    more: list[str], domains: dict[str, FoundDomain], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """All else is in order."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    key, disk = tmp_path / "id", tmp_path / "disk.img"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(key)
    disk.write_bytes(bytes(510) + b"\x55\xaa" + bytes(512))
    words = [str(disk) if word == "DISK" else word for word in more]
    assert command_line(["image", "add", "mine", "--user", "root", "--key", str(key), *words]) == 2
    told = "name the disk with --disk FILE, or with --domain DOMAIN, of which --connect says the libvirt"
    assert capsys.readouterr().err == f"vmlab: {told}\n"


@pytest.mark.parametrize(("uri", "is_read"), [(HERE, True), (OWN_SOCKET, True), *((one, False) for one in ELSEWHERE)])
def test_files_of_this_host_are_read_for_a_domain_of_this_host_alone(
    domains: dict[str, FoundDomain], tmp_path: Path, uri: str, is_read: bool, capsys: Captured
) -> None:
    disk = tmp_path / "d.img"
    disk.write_bytes(bytes(4096))
    domains["off"] = domains["off"]._replace(xml=with_disk(source=f"<source file='{disk}'/>"))
    code, out, _ = printed(capsys, "off", "--connect", uri)
    assert code == 0
    assert ("in the size of" in out) is is_read
    assert (f"# - vda: {disk} may be a file of another host: what lies there is not known here" in out) is not is_read


def test_files_of_this_host_are_not_read_for_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    disk, text = tmp_path / "d.img", tmp_path / "web01.xml"
    disk.write_bytes(bytes(4096))
    text.write_text(with_disk(source=f"<source file='{disk}'/>"))
    piped(monkeypatch, text.read_text())
    for source in ("-", str(text)):
        code, out, _ = printed(capsys, source)
        assert code == 0 and "in the size of" not in out and "nothing tells its size" in out


def test_libvirt_is_asked_for_sizes_where_no_monitor_answers_for_it(domains: dict[str, FoundDomain]) -> None:
    asked: list[str] = []

    def size(target: str) -> int | None:
        asked.append(target)
        return 5 << 30

    for name, found in domains.items():
        domains[name] = found._replace(disk_bytes=size)
    running, off = found_guest("on", "test:///default"), found_guest("off", "test:///default")
    assert asked == ["vda"]
    assert running.disks[0].found.value("size") is None and off.disks[0].found.value("size") == 5 << 30


def test_a_size_that_libvirt_does_not_tell_is_left_out(domains: dict[str, FoundDomain]) -> None:
    def hang(target: str) -> int | None:
        raise OSError("has not answered for 15 s")

    domains["off"] = domains["off"]._replace(disk_bytes=hang)
    guest = found_guest("off", "test:///default")
    assert guest.disks[0].found.value("size") is None
    assert guest.found.lacks[-1] == "sizes: has not answered for 15 s"


def _no_size(target: str) -> int | None:
    return None
