"""Which processes are QEMUs with a guest, what proves their accelerator, and how they saw the files of -readconfig."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.telemetry.domains.own_guests import Libvirt, OwnGuests, libvirt_stats
from tests.telemetry.recorded import RecordedHost
from vmlab.model.domain import UNKNOWN
from vmlab.telemetry.domains.qemu_processes import own_guests

KVM, EVENT = "anon_inode:kvm-vm", "anon_inode:[eventfd]"
CONFIG = '[smp-opts]\ncpus = "3"\n[memory]\nsize = "64M"\n'


def accelerator(host: RecordedHost, arguments: str, links: Sequence[str] | None, *threads: str) -> str:
    guests = OwnGuests(host)
    guests.qemu(71, arguments, program="/usr/bin/kvm")
    for number in (71, 72):
        (host.roots.proc / f"71/task/{number}/comm").unlink()
    for number, name in enumerate(threads, 71):
        host.proc(f"71/task/{number}/comm", f"{name}\n")
    for number, link in enumerate(links or ()):
        (host.roots.proc / "71/fd").mkdir(exist_ok=True)
        (host.roots.proc / f"71/fd/{number}").symlink_to(link)
    guests.tick(10.0)
    return guests.group.domains[0].accelerator


@pytest.mark.parametrize(
    ("arguments", "links", "threads", "runs"),
    [
        ("-m 64", [EVENT, KVM], ["kvm", "kvm"], "kvm"),
        ("-m 64", [EVENT], ["kvm", "kvm"], "tcg"),
        ("-m 64", [EVENT], ["kvm"], UNKNOWN),
        ("-m 64", None, ["kvm", "kvm"], UNKNOWN),
        ("-m 64", None, ["kvm", "CPU 0/KVM"], "kvm"),
        ("-m 64", None, ["kvm", "CPU 0/TCG"], "tcg"),
        ("-m 64", None, ["kvm", "ALL CPUs/TCG"], "tcg"),
        ("-accel kvm -accel tcg", [EVENT], ["kvm", "kvm"], "tcg"),
        ("-accel kvm", None, ["kvm", "kvm"], "kvm"),
        ("-accel tcg", [KVM], ["kvm", "kvm"], "kvm"),
        ("-readconfig /gone", [KVM], ["kvm", "kvm"], "kvm"),
        ("-accel xen", [EVENT], ["kvm", "kvm"], "xen"),
    ],
)
def test_the_process_decides_which_accelerator_runs(
    host: RecordedHost, arguments: str, links: list[str] | None, threads: list[str], runs: str
) -> None:
    """QEMU takes the first accelerator that works, so only its open file and its threads tell which one runs. Where
    this user may see neither, and before QEMU has its threads, what the arguments leave open is unknown.
    """
    assert accelerator(host, arguments, links, *threads) == runs


def test_the_process_decides_for_a_domain_of_libvirt_too(host: RecordedHost) -> None:
    guests = OwnGuests(host, libvirt := Libvirt())
    libvirt.answer = [stats := libvirt_stats(1)]
    guests.qemu(71, f"-name guest=db -uuid {stats.uuid}")
    host.proc("71/task/72/comm", "CPU 0/TCG\n")
    deadline = time.monotonic() + 120
    while not guests.group.domains or len(guests.group.domains[0].disks) != 2:
        assert time.monotonic() < deadline
        guests.tick(time.monotonic())
        time.sleep(0.01)
    assert guests.group.domains[0].accelerator == "tcg"


def test_a_program_of_another_name_is_known_by_its_file_and_a_reaper_is_no_guest(host: RecordedHost) -> None:
    """Whoever starts QEMU may call it anything. The process that frees a QEMU's memory after it has its arguments."""
    guests = OwnGuests(host)
    guests.qemu(71, "-name renamed", program="my-vm")
    (host.roots.proc / "71/exe").symlink_to("/usr/bin/qemu-system-x86_64 (deleted)")
    guests.qemu(72, "-name other", program="my-vm")
    (host.roots.proc / "72/exe").symlink_to("/usr/bin/bash")
    guests.qemu(73, "-name renamed", parent=71)
    host.proc("73/comm", "cleanup/71\n")
    guests.tick(10.0)
    assert [domain.name for domain in guests.group.domains] == ["renamed"]


def test_processes_are_listed_where_one_was_started_or_a_labs_may_have_ended(
    host: RecordedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new process is looked at twice; without a new one the list is made after half a minute."""
    listed: list[Path] = []
    listdir = os.listdir

    def noted(path: Path) -> list[str]:
        listed.append(path)
        return listdir(path)

    def lists(mono: float) -> int:
        listed.clear()
        guests.tick(mono)
        return listed.count(host.roots.proc)

    monkeypatch.setattr(os, "listdir", noted)
    host.proc("loadavg", "0.1 0.1 0.1 1/90 70\n")
    guests = OwnGuests(host)
    guests.process(70, "sleep 9")
    assert [lists(at) for at in (10.0, 11.0, 12.0, 14.0, 16.0, 41.0, 44.0, 46.0)] == [1, 0, 1, 1, 0, 0, 1, 0]
    guests.qemu(71, "-name web")
    host.proc("loadavg", "0.1 0.1 0.1 1/91 71\n")
    assert [lists(at) for at in (48.0, 50.0, 52.0, 54.0)] == [1, 1, 0, 0]
    assert [domain.name for domain in guests.group.domains] == ["web"]
    guests.process(72, "python -m vmlab.lab.run.runner")
    guests.qemu(73, "-name lab", parent=72)
    host.proc("loadavg", "0.1 0.1 0.1 1/91 73\n")
    assert [lists(at) for at in (56.0, 58.0, 60.0, 62.0, 64.0)] == [1, 1, 1, 1, 1]
    assert guests.tick(64.5)["domains_of_labs"] == 1
    shutil.rmtree(host.roots.proc / "73")
    assert guests.tick(66.0)["domains_of_labs"] == 0


@pytest.mark.parametrize(
    "names",
    [
        [(100, "web"), (99, "web#101"), (101, "web")],
        [(101, "web"), (102, "web"), (99, "web#102"), (98, "web#102#102")],
        [(1, "a/b"), (2, "a_b"), (3, "a_b#2")],
    ],
)
def test_no_domain_is_lost_to_the_name_of_another(host: RecordedHost, names: list[tuple[int, str]]) -> None:
    """Each domain has a name of its own, whatever the others are called."""
    guests = OwnGuests(host)
    for place, (pid, name) in enumerate(names, 1):
        guests.qemu(pid, f"-name {name}")
        guests.tick(10.0 * place)
    assert sorted(domain.pid for domain in guests.group.domains) == sorted(pid for pid, _ in names)
    assert len({domain.name for domain in guests.group.domains}) == len(names)


@pytest.fixture
def began(tmp_path: Path) -> Iterator[Callable[..., tuple[int, int]]]:
    """Reads the vCPUs and MiB of a process with these arguments that began so many seconds ago."""

    def read(*arguments: str, ago: float = 0.0) -> tuple[int, int]:
        ticks = int((time.clock_gettime(time.CLOCK_BOOTTIME) - ago) * os.sysconf("SC_CLK_TCK"))
        (tmp_path / "7/stat").write_text(f"7 (q) S 1 {' 0' * 17} {ticks} 0")
        (tmp_path / "7/cmdline").write_bytes(b"".join(one.encode() + b"\0" for one in ("/usr/bin/kvm", *arguments)))
        options = own_guests(tmp_path)[7]
        return options.vcpus, options.memory_bytes >> 20

    for folder in ("7/root/run", "7/cwd/here"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "7/root/run/q.conf").write_text(CONFIG)
    yield read


def test_a_configuration_is_read_as_the_process_saw_it(began: Callable[..., tuple[int, int]], tmp_path: Path) -> None:
    """By its own root and folder. One that was written since, that is no plain file or is one of its own descriptors
    says nothing of this process.
    """
    assert began("-readconfig", "/run/q.conf") == (3, 64)
    assert began("-readconfig", "/run/q.conf", ago=60.0) == (0, 0)
    (tmp_path / "7/cwd/here/q.conf").write_text(CONFIG.replace("3", "5"))
    assert began("-readconfig", "here/q.conf") == (5, 64)
    os.mkfifo(tmp_path / "7/root/run/fifo")
    (tmp_path / "7/root/run/large").write_bytes(b"#" * (2 << 20))
    for path in ("/run/fifo", "/run/large", "/run", "/dev/fd/0", "/proc/self/fd/0", "/run/gone"):
        assert began("-readconfig", path) == (0, 0)


def test_a_process_that_left_its_root_read_its_configuration_before(
    began: Callable[..., tuple[int, int]], tmp_path: Path
) -> None:
    outside = tmp_path / "outside.conf"
    outside.write_text(CONFIG)
    assert began("-readconfig", str(outside)) == (0, 0)
    assert began("-chroot", "/var/empty", "-readconfig", str(outside)) == (3, 64)
