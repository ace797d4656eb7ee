"""Settings that no reader takes: each is a line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.plan.copied_guest.guests import disk_keys, keys, with_device, with_disk, with_element
from vmlab.plan.copied_guest.found_guest import FoundGuest
from vmlab.plan.copied_guest.process_guest import guest_of_process
from vmlab.plan.copied_guest.qm_guest import guest_of_qm_config
from vmlab.plan.copied_guest.xml_guest import guest_of_xml
from vmlab.telemetry.domains.qemu_options import QemuOptions
from vmlab.telemetry.source import Roots

NOWHERE = Roots(Path("/no"), Path("/no"), Path("/no"))


def of_xml(text: str) -> FoundGuest:
    return guest_of_xml(text, "x.xml", "a test")


def of_qm(lines: str) -> FoundGuest:
    return guest_of_qm_config(f"{lines}\nscsihw: virtio-scsi-pci\nscsi0: a:b,size=1G\n", "x.conf", "a test")


def of_words(words: str) -> FoundGuest:
    return guest_of_process(42, QemuOptions(shlex.split(f"-m 64 -drive file=/no/a,if=virtio {words}")), NOWHERE)


def with_card(driver: str, more: str = "") -> FoundGuest:
    card = f"<interface type='bridge'><model type='virtio'/><driver {driver}/>{more}</interface>"
    return of_xml(with_device(card))


def test_what_no_reader_takes_of_a_disks_driver_is_a_line() -> None:
    (disk,) = of_xml(with_disk("discard_no_unref='on' copy_on_read='off' error_policy='stop' ats='on'")).disks
    assert "vda: <driver discard_no_unref='on'/>: no key" in disk.found.lacks
    assert disk.found.value("driver/@ats") == "on"


def test_what_no_reader_takes_of_a_controller_is_a_line() -> None:
    driver = "<driver queues='2' cmd_per_lun='64' max_sectors='512' ioeventfd='off' packed='off'/>"
    text = with_disk("ats='on'", "bus='scsi'")
    controller = f"<controller type='scsi' model='virtio-scsi'>{driver}</controller></devices>"
    (disk,) = of_xml(text.replace("</devices>", controller)).disks
    left = "<driver cmd_per_lun='64' max_sectors='512' ioeventfd='off'/>"
    assert f"vda: <controller type='scsi'>{left}: no key" in disk.found.lacks
    assert "vda: <driver ats='on'/>: no key" in disk.found.lacks


def test_what_no_reader_takes_of_a_card_is_a_line() -> None:
    more = "<tune><sndbuf>1600</sndbuf></tune><link state='down'/><filterref filter='clean'/>"
    guest = with_card("packed='on' iommu='on' ats='off'", f"{more}<coalesce><rx><frames max='32'/></rx></coalesce>")
    for line in ("interface/driver/@packed on: no key", f"<interface>{more}</interface>: no key"):
        assert line in guest.found.lacks
    found = {key: value for key, value in keys(guest).items() if key.startswith("libvirt ")}
    assert found == {"libvirt interface/driver/@iommu": "on", "libvirt interface/coalesce/rx/frames/@max": "32"}


def test_what_a_card_has_anyway_is_no_line() -> None:
    more = "<mac address='52:54:00:00:00:01'/><link state='up'/><port isolated='no'/><alias name='net0'/>"
    assert with_card("name='vhost'", more).found.lacks == with_card("name='vhost'").found.lacks == []


@pytest.mark.parametrize(
    ("device", "line"),
    [
        (
            "<memballoon model='virtio' autodeflate='on' freePageReporting='on'/>",
            "<memballoon autodeflate='on' freePageReporting='on'/>: no key",
        ),
        ("<memballoon model='none'/>", "<memballoon model='none'/>: guests of the lab have a balloon"),
        ("<memballoon model='virtio'><stats period='10'/></memballoon>", None),
    ],
)
def test_a_balloon_that_is_none_of_the_labs_is_a_line(device: str, line: str | None) -> None:
    assert [one for one in of_xml(with_device(device)).found.lacks if "balloon" in one] == ([line] if line else [])


def test_a_placement_by_the_host_is_a_line() -> None:
    guest = of_xml(with_element("").replace("<vcpu>", "<vcpu placement='auto'>"))
    assert [line for line in guest.found.lacks if line.startswith("<vcpu placement='auto'>2</vcpu>: its host chooses")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cpu: host,phys-bits=host,hv-vendor-id=a,hidden=0", "cpu: phys-bits=host,hv-vendor-id=a: no key"),
        ("net0: virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=5,link_down=1", "net0: tag=5,link_down=1: no key"),
        ("machine: q35,viommu=virtio", "machine: viommu=virtio: no key"),
        ("ostype: win11", "ostype: win11: guests of the lab run Linux, without what Proxmox VE sets for this system"),
        ("localtime: 1", "localtime: 1: the lab's clock is UTC"),
        ("acpi: 0", "acpi: 0: guests of the lab have ACPI"),
    ],
)
def test_what_no_reader_takes_of_a_line_of_proxmox_is_a_line(line: str, words: str) -> None:
    assert words in of_qm(line).found.lacks


def test_what_no_reader_takes_of_a_drive_of_proxmox_is_a_line() -> None:
    (disk,) = guest_of_qm_config("virtio0: a:b,size=1G,ssd=1,backup=0,mbps=5,serial=x\n", "x.conf", "a test").disks
    assert "virtio0: ssd=1: no key" in disk.found.lacks


def test_what_every_guest_of_proxmox_has_is_no_line() -> None:
    guest = of_qm("ostype: l26\nlocaltime: 0\nacpi: 1\nallow-ksm: 1\ncpu: host,hidden=0\nnet0: virtio,bridge=vmbr0")
    assert guest.found.lacks == [] and "ksm" not in keys(guest)


CARD = "-nodefaults -netdev tap,id=n,ifname=t -device virtio-net-pci,netdev=n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("-netdev user,id=n -device virtio-net-pci,netdev=n", "-netdev user: the lab's network card is on a bridge"),
        (f"{CARD} -rtc base=localtime", "-rtc base=localtime: the lab's clock is UTC"),
        (f"{CARD},packed=on,csum=off,mq=on", "-device virtio-net-pci,packed=on,csum=off: no key"),
        ("-netdev tap,id=n,sndbuf=9 -device virtio-net-pci,netdev=n", "-netdev tap,sndbuf=9: no key"),
        (
            f"{CARD} -device virtio-balloon-pci,id=b,free-page-reporting=on",
            "-device virtio-balloon-pci,free-page-reporting=on: no key",
        ),
        ("-nic none", "its arguments name no network card; guests of the lab have one"),
        ("-nodefaults", "its arguments name no network card; guests of the lab have one"),
        ("", "no -nic: QEMU's own card; the lab's network card is virtio"),
        (f"{CARD} -machine q35,kernel_irqchip=split,acpi=off", "-machine kernel_irqchip=split,acpi=off: no key"),
    ],
)
def test_what_no_reader_takes_of_qemus_options_is_a_line(words: str, line: str) -> None:
    assert line in of_words(words).found.lacks


def test_what_no_reader_takes_of_qemus_disk_is_a_line() -> None:
    drive = "-drive file=/no/b,if=none,id=b,format=raw"
    own = of_words(f"{drive} -device virtio-blk-pci,drive=b,serial=x,logical_block_size=4096,ioeventfd=off,scsi=off")
    assert "b: -device virtio-blk-pci,logical_block_size=4096: no key" in own.disks[1].found.lacks
    assert disk_keys(own, 1)["driver/@ioeventfd"] == "off"
    controller = "-device virtio-scsi-pci,id=s,num_queues=2,cmd_per_lun=9"
    other = of_words(f"{drive} {controller} -device scsi-hd,drive=b,bus=s.0,lun=1,rotation_rate=1").disks[1]
    for line in ("-device scsi-hd,rotation_rate=1", "-device virtio-scsi-pci,cmd_per_lun=9"):
        assert f"b: {line}: no key" in other.found.lacks


def test_switches_of_qemu_that_have_paths_are_settings() -> None:
    found = keys(of_words(f"{CARD},ats=on,event_idx=off -machine q35,hpet=off,vmport=off,acpi=on,usb=off"))
    assert {key: value for key, value in found.items() if key.startswith("libvirt ")} == {
        "libvirt interface/driver/@ats": "on",
        "libvirt interface/driver/@event_idx": "off",
        "libvirt clock/timer[hpet]/@present": "no",
        "libvirt features/vmport/@state": "off",
    }


def test_what_libvirt_gives_every_machine_is_no_line() -> None:
    machine = "-machine pc-q35-7.2,usb=off,smm=on,dump-guest-core=off,memory-backend=pc.ram,acpi=on,accel=kvm"
    assert of_words(f"{CARD} {machine}").found.lacks == []
