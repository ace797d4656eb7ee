"""The watch over QEMUs, with small processes in their place, and what the lab's init tells of its children."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import libvirt
import pytest

from tests.waiting import until
from vmlab.hypervisor.hosts_hypervisor import HostsWatch
from vmlab.hypervisor.isolation.init import CHILDREN, Change, Children
from vmlab.hypervisor.libvirt.domain_watch import DomainWatch, _pump
from vmlab.hypervisor.libvirt.libvirt_root import Places
from vmlab.model.errors import GuestLost

SOON = 60.0
STOPPED, GOES_ON = 0x137F, 0xFFFF
"""wait(2)'s status of a process that SIGSTOP stopped, and of one that goes on."""


@dataclass
class Root:
    """What QEMU said last, and no domain's process."""

    words: str = ""
    proc: Path = Path("/proc")

    def last_words_of(self, _domain: str) -> str:
        return self.words

    def pid_of(self, domain: str) -> int:
        raise FileNotFoundError(domain)


@dataclass
class Domain:
    """libvirt's object, as far as it is asked."""

    uuid: str

    def name(self) -> str:
        return "lab-web"

    def UUIDString(self) -> str:
        return self.uuid


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "3600"]) as started:
        yield started
        started.kill()


def watch_of(root: Root, folder: Path = Path("/nonexistent")) -> DomainWatch:
    return DomainWatch(cast(Places, root), folder.joinpath)


async def cause(domain_watch: DomainWatch, *names: str) -> str:
    async with asyncio.timeout(SOON):
        with pytest.raises(GuestLost) as lost:
            await domain_watch.until_lost(names)
    assert lost.value.guest == "web"
    return lost.value.cause


class Connection:
    """libvirt's connection: what is to be called for each kind of event."""

    def __init__(self) -> None:
        self.called: dict[int, Callable[..., None]] = {}

    def domainEventRegisterAny(self, _domain: None, kind: int, called: Callable[..., None], _opaque: None) -> None:
        self.called[kind] = called

    def createXML(self, _xml: str, _flags: int) -> None:
        raise libvirt.libvirtError("there is no such domain")


async def test_what_somebody_has_libvirt_change_of_a_guest_is_heard_of(
    process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, domain_watch = Connection(), watch_of(Root())
    monkeypatch.setattr("vmlab.hypervisor.libvirt.domain_watch.start_event_loop", lambda: None)
    monkeypatch.setattr(libvirt, "open", lambda _uri: connection)
    monkeypatch.setattr(domain_watch._children, "start", lambda: None)
    domain_watch.begin().connect("qemu:///embed")
    domain_watch.watch("web", Domain("1"), process.pid)
    for kind, *told in (
        (libvirt.VIR_DOMAIN_EVENT_ID_TUNABLE, {"cputune.cpu_shares": 100}),
        (libvirt.VIR_DOMAIN_EVENT_ID_BALLOON_CHANGE, 65536),
        (libvirt.VIR_DOMAIN_EVENT_ID_BLOCK_JOB_2, "vda", libvirt.VIR_DOMAIN_BLOCK_JOB_TYPE_COPY, 0),
        (libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, "virtio-disk2"),
        (libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, "net1"),
    ):
        for uuid in ("1", "2"):
            connection.called[kind](connection, Domain(uuid), *told, None)
    await asyncio.sleep(0)
    assert domain_watch.tuned(["web"])["web"] == [
        "cputune.cpu_shares 100",
        "65536 KiB of memory",
        "a block job on vda",
        "the device virtio-disk2 added",
        "the device net1 removed",
    ]
    domain_watch.leave("web")


async def test_the_process_of_a_guest_is_in_this_pid_namespace_or_with_the_host_s_libvirt_outside(
    process: subprocess.Popen[bytes],
) -> None:
    found = []
    for kind in (DomainWatch, HostsWatch):
        domain_watch = kind(cast(Places, Root()), Path("/nonexistent").joinpath)
        domain_watch.watch("web", Domain("1"), process.pid)
        found.append((domain_watch.pids(["web", "db"]), domain_watch.pids_outside(["web", "db"])))
        domain_watch.leave("web")
    assert found == [({"web": process.pid}, {}), ({}, {"web": process.pid})]


async def test_guests_of_the_hosts_libvirt_are_lost_where_their_watch_fails(
    monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    def fail(_watch: HostsWatch, name: str, _guest: object) -> None:
        raise ValueError(name)

    monkeypatch.setattr(HostsWatch, "_look", fail)
    hosts_watch = HostsWatch(cast(Places, Root()), tmp_path.joinpath)
    hosts_watch.watch("web", Domain("1"), process.pid)
    hosts_watch.begin()
    assert await cause(hosts_watch, "web") == "the watch of its QEMU failed: ValueError('web')"
    hosts_watch.watch("web", Domain("2"), process.pid)
    assert "failed" in await cause(hosts_watch, "web"), "also one that starts later"
    hosts_watch.end()


def test_libvirts_events_are_heard_of_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([None, libvirt.libvirtError("poll"), None, KeyboardInterrupt()])

    def run() -> None:
        if (failure := next(failures)) is not None:
            raise failure

    monkeypatch.setattr(libvirt, "virEventRunDefaultImpl", run)
    monkeypatch.setattr("vmlab.hypervisor.libvirt.domain_watch._PUMP_AGAIN", 0.0)
    with pytest.raises(KeyboardInterrupt):
        _pump()


async def test_a_death_is_heard_of_without_libvirt_and_without_init(process: subprocess.Popen[bytes]) -> None:
    domain_watch = watch_of(Root("could not allocate memory"))
    domain_watch.watch("web", Domain("1"), process.pid)
    waiting = asyncio.ensure_future(cause(domain_watch, "database", "web"))
    await asyncio.sleep(0)
    process.kill()
    assert await waiting == "its QEMU died, could not allocate memory"
    assert await cause(domain_watch, "web") == "its QEMU died, could not allocate memory", "it stays lost"


@pytest.mark.parametrize("first", ["pidfd", "libvirt", "init"])
async def test_whoever_is_first_the_whole_cause_is_told(
    process: subprocess.Popen[bytes], first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The wait for the others is ended by hand.
    monkeypatch.setattr("vmlab.hypervisor.libvirt.domain_watch.CAUSE_SECONDS", 3600.0)
    domain_watch = watch_of(Root())
    domain_watch.watch("web", Domain("1"), process.pid)
    killed = Change(process.pid, signal.SIGKILL, time.monotonic())
    if first == "init":
        domain_watch._on_child(killed)
    if first == "libvirt":
        domain_watch._on_stopped("1", "the guest crashed")
    process.kill()
    await until(lambda: domain_watch._guests["web"].reporting is not None, "it waits for the rest of the cause")
    domain_watch._on_stopped("1", "the guest crashed")
    domain_watch._on_child(killed)
    waiting = domain_watch._guests["web"].reporting
    assert waiting is not None
    waiting.cancel()
    domain_watch._report_loss("web")
    assert await cause(domain_watch, "web") == "its QEMU died: killed by SIGKILL, the guest crashed"


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGKILL, "its QEMU died: killed by SIGKILL, the memory was full"),
        (signal.SIGTERM, "its QEMU died: killed by SIGTERM"),
    ],
)
async def test_a_guest_that_the_kernel_killed_over_a_limit_is_told_with_it(
    process: subprocess.Popen[bytes], number: signal.Signals, told: str
) -> None:
    domain_watch = DomainWatch(cast(Places, Root()), Path("/nonexistent").joinpath, lambda: "the memory was full")
    domain_watch.watch("web", Domain("1"), process.pid)
    domain_watch._on_child(Change(process.pid, number, time.monotonic()))
    process.send_signal(number)
    assert await cause(domain_watch, "web") == told


PANIC = "[   12.5] Kernel panic - not syncing: Attempted to kill init!"


@pytest.mark.parametrize(
    ("console", "status", "told"),
    [
        (f"[    0.1] begin\r\n{PANIC}\r\n[   12.6] Rebooting\x1b[0m in 1 seconds..\r\n\r\n", 0, PANIC),
        ("x" * 9000 + "\n[   50.0] reboot: Power down\n", 0, "[   50.0] reboot: Power down"),
        ("[    0.1] \x1b]0;title\x07\n", 0, "[    0.1] \\x1b]0;title\\x07"),
        ("[    0.1] begin\n", signal.SIGKILL, None),
        ("\n\n", 0, None),
        (None, 0, None),
    ],
)
async def test_a_qemu_that_ended_in_order_is_told_with_the_last_line_of_its_console(
    process: subprocess.Popen[bytes], tmp_path: Path, console: str | None, status: int, told: str | None
) -> None:
    if console is not None:
        (tmp_path / "web").write_text(console)
    domain_watch = watch_of(Root(), tmp_path)
    domain_watch.watch("web", Domain("1"), process.pid)
    domain_watch._on_child(Change(process.pid, status, time.monotonic()))
    process.kill()
    heard = (await cause(domain_watch, "web")).partition(", its console's last line: ")
    assert heard[0] == ("its QEMU died: killed by SIGKILL" if status else "its QEMU died: exit status 0")
    assert heard[2] == (told or "")


async def test_a_process_that_is_gone_before_it_is_watched_is_lost(process: subprocess.Popen[bytes]) -> None:
    domain_watch = watch_of(Root())
    process.kill()
    process.wait()
    domain_watch.watch("web", Domain("1"), process.pid)
    assert (await cause(domain_watch, "web")).startswith("its QEMU died")
    with pytest.raises(GuestLost, match="web: its QEMU died at its start: it said nothing"):
        domain_watch.pid_of("web", Domain("1"))


async def test_what_the_lab_ends_itself_and_what_an_earlier_domain_tells_is_no_loss(
    process: subprocess.Popen[bytes],
) -> None:
    domain_watch = watch_of(Root())
    domain_watch.watch("web", Domain("1"), process.pid)
    domain_watch.leave("web")
    domain_watch.watch("web", Domain("2"), process.pid)
    domain_watch._on_stopped("1", "")
    domain_watch._on_disk_error("1", "the host's disk is full")
    waiting = asyncio.ensure_future(domain_watch.until_lost(["web"]))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    domain_watch.leave("web")
    process.kill()
    await asyncio.sleep(0.5)
    assert not waiting.done()
    waiting.cancel()


async def test_a_full_disk_is_told_at_once_also_when_it_was_full_before_anybody_watched(
    process: subprocess.Popen[bytes],
) -> None:
    full = "QEMU stopped it because its disk cannot be written: the host's disk is full"
    for early in (True, False):
        domain_watch = watch_of(Root())
        if early:
            domain_watch._on_disk_error("1", "the host's disk is full")
        domain_watch.watch("web", Domain("1"), process.pid)
        if not early:
            domain_watch._on_disk_error("1", "the host's disk is full")
        assert await cause(domain_watch, "web") == full
        domain_watch.leave("web")


async def test_time_in_which_a_process_was_stopped_adds_up(process: subprocess.Popen[bytes]) -> None:
    domain_watch = watch_of(Root())
    domain_watch.watch("web", Domain("1"), process.pid)
    assert await domain_watch.standstill(["web", "nobody"]) == {"web": 0, "nobody": 0}
    now = time.monotonic()
    for at, status in ((10, STOPPED), (12, GOES_ON), (20, STOPPED), (21, GOES_ON), (22, GOES_ON)):
        domain_watch._on_child(Change(process.pid, status, now - 100 + at))
        domain_watch._on_child(Change(process.pid + 1, STOPPED, now - 100 + at))
    assert await domain_watch.standstill(["web"]) == {"web": pytest.approx(3)}
    domain_watch._on_child(Change(process.pid, STOPPED, now - 5))
    assert (await domain_watch.standstill(["web"]))["web"] >= 8
    domain_watch.leave("web")


async def test_time_in_which_a_domain_was_paused_adds_up(process: subprocess.Popen[bytes]) -> None:
    domain_watch = watch_of(Root())
    domain_watch.watch("web", Domain("1"), process.pid)
    for uuid, how in (("2", "paused"), ("1", "")):
        domain_watch._on_paused(uuid, how)
    assert await domain_watch.standstill(["web"]) == {"web": 0}
    domain_watch._on_paused("1", "paused")
    await asyncio.sleep(0.1)
    domain_watch._on_paused("1", "")
    seconds = (await domain_watch.standstill(["web"]))["web"]
    assert seconds >= 0.1 and await domain_watch.standstill(["web"]) == {"web": seconds}
    domain_watch.leave("web")


@pytest.mark.parametrize(
    ("status", "crashed"), [(signal.SIGSEGV, True), (signal.SIGABRT, True), (signal.SIGKILL, False), (256, False)]
)
async def test_a_fault_of_its_own_is_told_from_a_kill_and_an_exit(
    process: subprocess.Popen[bytes], status: int, crashed: bool
) -> None:
    domain_watch = watch_of(Root())
    domain_watch.watch("web", Domain("1"), process.pid)
    domain_watch._on_child(Change(process.pid, status, time.monotonic()))
    process.kill()
    async with asyncio.timeout(SOON):
        with pytest.raises(GuestLost) as lost:
            await domain_watch.until_lost(["web"])
    assert lost.value.crashed is crashed


@pytest.mark.parametrize(("number", "by_others"), [(signal.SIGKILL, True), (signal.SIGSEGV, False)])
async def test_a_qemu_that_fell_over_its_snapshot_was_not_killed_by_others(number: int, by_others: bool) -> None:
    domain_watch = watch_of(Root())
    domain_watch._on_child(Change(4242, number, 0.0))
    assert (await domain_watch.kill_of(4242) is not None) is by_others
    assert await domain_watch.kill_of(4243) is None


async def test_the_inits_lines_are_read_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    heard, report = os.pipe2(os.O_NONBLOCK)
    changes: list[Change] = []
    children = Children(changes.append, {CHILDREN: str(heard)})
    children.start()
    for piece in (b"7 9 1000000000\n8 25", b"6 2000000000\nhalf a line\n9 4991 3\n10 65535 4\n"):
        os.write(report, piece)
        await asyncio.sleep(0.05)
    os.close(report)
    await asyncio.sleep(0.05)
    told: list[Any] = [(one.pid, one.mono, one.ended, one.stopped, one.goes_on) for one in changes[:2]]
    assert told == [(7, 1.0, True, False, False), (8, 2.0, True, False, False)]
    assert [one.ending() for one in changes[:2]] == ["killed by SIGKILL", "exit status 1"]
    assert [(one.stopped, one.goes_on) for one in changes[2:]] == [(True, False), (False, True)]
    children.stop()
    os.close(heard)
