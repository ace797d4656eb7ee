"""libvirt's bulk statistics: each part with the time at which it was read, also where QEMU takes long."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import libvirt
import pytest

from tests.waiting import until
from vmlab.hypervisor.libvirt import running_guest
from vmlab.hypervisor.libvirt.running_guest import DomainStatistics, live_settings
from vmlab.telemetry.guest_readings import DATA_BLOCK

NOWAIT = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT


class Libvirt:
    """Counts how often QEMU was asked; `free` lets it answer."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.asked = 0
        self.flags: list[int] = []

    def __call__(self, which: int, flags: int) -> list[tuple[Any, dict[str, Any]]]:
        self.flags.append(flags)
        if not which & libvirt.VIR_DOMAIN_STATS_BLOCK:
            return [(SimpleNamespace(name=lambda: "lab-web"), {"cpu.time": 1, "state.name": "text"})]
        self.asked += 1
        asked = self.asked
        assert self.free.wait(120)
        return [(SimpleNamespace(name=lambda: "lab-web"), {"block.0.rd.bytes": asked})]


def statistics(source: Libvirt) -> DomainStatistics:
    return DomainStatistics(source, lambda name: name.removeprefix("lab-"))


async def test_disks_are_of_the_same_answer_as_all_else() -> None:
    """Each has the time of its own call; none has counters of the answer before."""
    source = Libvirt()
    asked = statistics(source)
    for count in (1, 2, 3):
        before = time.monotonic()
        quick, disks = await asked.domain_stats()
        assert disks is not None
        assert quick.found == {"web": {"cpu.time": 1}} and disks.found == {"web": {"block.0.rd.bytes": count}}
        assert before <= quick.asked <= quick.given <= disks.asked <= disks.given <= time.monotonic()
    assert set(source.flags) == {NOWAIT}


async def test_what_comes_late_has_the_time_at_which_it_was_read() -> None:
    source = Libvirt()
    asked = statistics(source)
    source.free.clear()
    assert (await asked.domain_stats()).disks is None
    assert (await asked.domain_stats()).disks is None
    assert source.asked == 1, "it is asked already"
    source.free.set()
    async with asyncio.timeout(120):
        while (late := await asked.domain_stats()).disks is None:
            pass
    assert late.disks.found == {"web": {"block.0.rd.bytes": 1}}
    assert late.disks.asked < late.quick.asked


async def test_two_questions_at_once_have_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_guest, "_WAIT_FOR_QEMU", 120)
    source = Libvirt()
    asked = statistics(source)
    source.free.clear()
    both = asyncio.gather(asked.domain_stats(), asked.domain_stats())
    await until(lambda: len(source.flags) == 3, "that both wait for QEMU")
    source.free.set()
    assert all(answer.disks is not None for answer in await both)


async def test_a_whole_answer_is_of_its_own_moment_and_waits_for_guests_that_are_busy() -> None:
    source = Libvirt()
    asked = statistics(source)
    source.free.clear()
    await asked.domain_stats()
    before = time.monotonic()
    source.flags.clear()
    whole = asyncio.ensure_future(asked.domain_stats(whole=True))
    await asyncio.sleep(0)
    source.free.set()
    quick, disks = await whole
    assert disks is not None and disks.found == {"web": {"block.0.rd.bytes": 2}}
    assert min(quick.asked, disks.asked) >= before
    assert set(source.flags) == {0}


@pytest.mark.parametrize(
    ("disks", "number"), [(("vda",), None), (("vda", "vdb"), 1), (("vda", "sda"), 1), (("sda", "sdb"), None)]
)
async def test_the_data_disk_is_known_by_its_name(disks: tuple[str, ...], number: int | None) -> None:
    named = {f"block.{place}.name": name for place, name in enumerate(disks)}
    stats = {"block.count": len(disks), **named}
    asked = DomainStatistics(
        lambda _which, _flags: [(SimpleNamespace(name=lambda: "lab-web"), stats)], lambda name: name
    )
    _, found = await asked.domain_stats(whole=True)
    assert found is not None and found.found["lab-web"].get(DATA_BLOCK) == number


class Described:
    """A domain with this XML; without any, libvirt knows none."""

    def __init__(self, xml: str) -> None:
        self.xml = xml

    def XMLDesc(self, _flags: int) -> str:
        if not self.xml:
            raise libvirt.libvirtError("Domain not found")
        return self.xml


async def test_what_can_be_changed_of_a_guest_is_known_by_its_path() -> None:
    xml = """<domain>
  <name>web</name>
  <vcpu placement='static' current='1'>2</vcpu>
  <currentMemory unit='KiB'>524288</currentMemory>
  <cputune><!-- by hand --><vcpupin vcpu='0' cpuset='1'/><shares>100</shares></cputune>
  <devices>
    <disk type='file'>
      <driver name='qemu' cache='none'/><source file='a' index='2'/>
      <backingStore type='file' index='1'><source file='b'/><backingStore/></backingStore>
      <target dev='vda'/>
    </disk>
    <disk type='file'><target dev='vdb'/><iotune><total_iops_sec>500</total_iops_sec></iotune></disk>
    <interface type='bridge'><link state='down'/></interface>
    <channel type='unix'><target type='virtio' state='connected'/></channel>
  </devices>
</domain>"""
    domains = {"web": Described(xml), "gone": Described("")}
    assert await live_settings(domains.__getitem__, [*domains]) == {
        "web": {
            "vcpu/@placement": "static",
            "vcpu/@current": "1",
            "vcpu": "2",
            "currentMemory/@unit": "KiB",
            "currentMemory": "524288",
            "cputune/vcpupin/@vcpu": "0",
            "cputune/vcpupin/@cpuset": "1",
            "cputune/shares": "100",
            "devices/disk[1]/source/@file": "a",
            "devices/disk[1]/driver/@name": "qemu",
            "devices/disk[1]/driver/@cache": "none",
            "devices/disk[1]/backingStore/@type": "file",
            "devices/disk[1]/backingStore/source/@file": "b",
            "devices/disk[2]/iotune/total_iops_sec": "500",
            "devices/interface/link/@state": "down",
            "count(devices/disk)": "2",
            "count(devices/interface)": "1",
            "count(devices/channel)": "1",
        }
    }
