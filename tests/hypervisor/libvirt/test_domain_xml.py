"""The domain that libvirt is given: as recorded, valid by libvirt's own schema, and proof against odd names."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.hypervisor.conftest import spec
from vmlab.hypervisor.domain_spec import BootImage, PoolImage
from vmlab.hypervisor.libvirt.domain_xml import (
    DiskSource,
    DomainFiles,
    OnHost,
    Platform,
    data_disk_xml,
    domain_xml,
    nic_xml,
)
from vmlab.model.names import LAB_NAMESPACE
from vmlab.model.run import CACHE_MODES, Accelerator, CacheMode

SCHEMA = Path("/usr/share/libvirt/schemas/domain.rng")
GOLDEN = Path(__file__).parents[1] / "golden" / "domain.xml"
IMAGE = BootImage(Path("/images/root.raw"), Path("/images/vmlinuz"), Path("/images/initrd.img"), "root=/dev/vda quiet")
FILES = DomainFiles(
    Path("/run1/web-1.qcow2"),
    Path("/run1/web-1.console"),
    Path("/run/vmlab/run1/v/agent/web-1.sock"),
    Path("/run/vmlab/run1/v/agent/web-1.help"),
)
FROZEN = replace(FILES, frozen=Path("/snapshots/web-1/disk.qcow2"))
ON_FILE = DiskSource(Path("/run1/web-1.data.raw"))
ON_BLOCK = DiskSource(Path("/dev/loop7"), block=True)
IN_POOL = PoolImage("lab", "vmlab.run1.web-1", Path("/etc/ceph/ceph.conf"))
DATA: dict[str, Any] = {"data_bytes": 2**30, "data_queues": 4, "data_cache": "writethrough"}
TCG = Platform("tcg", "/usr/bin/qemu-system-x86_64", "pc-q35-7.2")


def test_the_domain_is_the_one_on_record() -> None:
    assert domain_xml(spec(shares=2048), "run1", IMAGE, FILES, TCG) == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("accelerator", "vcpus", "element"),
    [
        ("tcg", 1, '<vcpu current="1">2</vcpu>'),
        ("tcg", 2, "<vcpu>2</vcpu>"),
        ("tcg", 3, "<vcpu>3</vcpu>"),
        ("kvm", 1, "<vcpu>1</vcpu>"),
        ("kvm", 2, "<vcpu>2</vcpu>"),
    ],
)
def test_an_emulated_guest_may_have_two_processors(accelerator: Accelerator, vcpus: int, element: str) -> None:
    """QEMU leaves memory barriers out for one that may have one alone, and its disks then hang for good."""
    one = spec()
    one = replace(one, resources=one.resources.model_copy(update={"vcpus": vcpus}))
    assert element in domain_xml(one, "run1", IMAGE, FILES, replace(TCG, accelerator=accelerator))


@pytest.mark.skipif(not SCHEMA.exists(), reason="libvirt's schemas are not installed")
@pytest.mark.parametrize("mode", CACHE_MODES)
@pytest.mark.parametrize("accelerator", ["kvm", "tcg"])
@pytest.mark.parametrize("files", [FILES, FROZEN])
def test_libvirts_schema_takes_it(mode: CacheMode, accelerator: Accelerator, files: DomainFiles) -> None:
    schema = etree.RelaxNG(etree.parse(SCHEMA))
    text = domain_xml(spec(cache=mode, shares=512), "run1", IMAGE, files, replace(TCG, accelerator=accelerator))
    assert schema.validate(etree.fromstring(text)), schema.error_log


@pytest.mark.skipif(not SCHEMA.exists(), reason="libvirt's schemas are not installed")
def test_a_guest_of_an_ordered_host_is_in_its_partition() -> None:
    text = domain_xml(spec(), "run1", IMAGE, FILES, TCG, "/machine/qemu-embed-0123abcd-host/guests")
    domain = etree.fromstring(text)
    assert domain.findtext("resource/partition") == "/machine/qemu-embed-0123abcd-host/guests"
    assert etree.RelaxNG(etree.parse(SCHEMA)).validate(domain)


@pytest.mark.skipif(not SCHEMA.exists(), reason="libvirt's schemas are not installed")
def test_without_a_kernel_the_disk_boots() -> None:
    text = domain_xml(spec(), "run1", BootImage(IMAGE.disk, None, None, ""), FILES, TCG)
    os = etree.fromstring(text).find("os")
    assert os is not None and [child.tag for child in os] == ["type", "boot"] and os[1].get("dev") == "hd"
    assert etree.RelaxNG(etree.parse(SCHEMA)).validate(etree.fromstring(text))


def test_a_kernel_may_come_without_an_initial_ram_disk() -> None:
    text = domain_xml(spec(), "run1", replace(IMAGE, initrd=None), FILES, TCG)
    os = etree.fromstring(text).find("os")
    assert os is not None and [child.tag for child in os] == ["type", "kernel", "cmdline"]


@pytest.mark.parametrize(
    ("name", "source", "more"),
    [
        ("file", ON_FILE, {}),
        ("block", ON_BLOCK, {"allocation": "full", "backing": "block"}),
        ("pool", IN_POOL, {"backing": "rbd:lab"}),
    ],
)
def test_the_data_disk_is_the_one_on_record(name: str, source: DiskSource | PoolImage, more: dict[str, Any]) -> None:
    text = data_disk_xml(spec(**DATA, **more), source)
    assert text + "\n" == (GOLDEN.parent / f"data-disk-on-{name}.xml").read_text()


def test_a_data_disk_has_the_cache_mode_of_the_first_one_unless_it_has_its_own() -> None:
    def mode(**data: Any) -> str | None:
        driver = etree.fromstring(data_disk_xml(spec(cache="directsync", **data), ON_FILE)).find("driver")
        return None if driver is None else driver.get("cache")

    assert (mode(data_bytes=2**30), mode(data_bytes=2**30, data_cache="none")) == ("directsync", "none")


@pytest.mark.skipif(not SCHEMA.exists(), reason="libvirt's schemas are not installed")
@pytest.mark.parametrize("source", [ON_FILE, ON_BLOCK, IN_POOL])
@pytest.mark.parametrize("mode", CACHE_MODES)
def test_libvirts_schema_takes_a_data_disk(mode: CacheMode, source: DiskSource | PoolImage) -> None:
    schema = etree.RelaxNG(etree.parse(SCHEMA))
    domain = etree.fromstring(domain_xml(spec(), "run1", IMAGE, FILES, TCG))
    devices = domain.find("devices")
    assert devices is not None
    devices.append(etree.fromstring(data_disk_xml(spec(data_bytes=2**30, data_cache=mode), source)))
    assert schema.validate(domain), schema.error_log


def test_what_a_scenario_says_stays_text() -> None:
    hostile = "x\"/><devices/><!-- ' &amp; ]]>"
    image = replace(IMAGE, command_line=hostile)
    domain = etree.fromstring(domain_xml(replace(spec(), guest=hostile), hostile, image, FILES, TCG))
    mark = domain.find(f"metadata/{{{LAB_NAMESPACE}}}lab")
    assert mark is not None
    assert (mark.get("guest"), mark.get("id"), mark.get("tile")) == (hostile, hostile, "1")
    assert domain.findtext("os/cmdline") == hostile
    assert len(domain.findall("devices")) == 1


@pytest.mark.parametrize("mode", ["normal", "rescue"])
def test_another_way_to_boot_is_a_word_of_the_kernels(mode: str) -> None:
    text = domain_xml(spec(boot=mode), "run1", IMAGE, FILES, TCG)
    assert etree.fromstring(text).findtext("os/cmdline") == f"root=/dev/vda quiet vmlab.boot={mode}"


def test_a_guest_without_shares_has_libvirts_default() -> None:
    assert etree.fromstring(domain_xml(spec(), "run1", IMAGE, FILES, TCG)).find("cputune") is None


def test_a_quota_is_a_share_of_each_virtual_cpu() -> None:
    text = domain_xml(spec(shares=512, cpu_quota=92.5), "run1", IMAGE, FILES, TCG)
    tune = etree.fromstring(text).find("cputune")
    assert tune is not None
    assert {child.tag: child.text for child in tune} == {"shares": "512", "period": "10000", "quota": "9250"}
    if SCHEMA.exists():
        assert etree.RelaxNG(etree.parse(SCHEMA)).validate(etree.fromstring(text))


def test_only_the_emulated_processor_is_trimmed() -> None:
    kvm = etree.fromstring(domain_xml(spec(), "run1", IMAGE, FILES, replace(TCG, accelerator="kvm")))
    assert kvm.get("type") == "kvm"
    cpu = kvm.find("cpu")
    assert cpu is not None
    assert (cpu.get("mode"), len(cpu)) == ("host-passthrough", 0)


def test_a_clone_has_the_layout_of_the_guest_that_was_saved() -> None:
    saved = etree.fromstring(domain_xml(replace(spec(), network=False), "run1", IMAGE, FILES, TCG))
    clone = etree.fromstring(domain_xml(spec(), "run1", IMAGE, FROZEN, TCG))
    for domain in (saved, clone):
        assert domain.find("devices/interface") is None
    layouts = [[(one.tag, dict(one.attrib)) for one in domain.iterfind("devices/*")] for domain in (saved, clone)]
    assert layouts[0] == layouts[1]
    chain = [str(one.get("file")) for one in clone.iterfind("devices/disk//source")]
    assert chain == [str(FILES.overlay), str(FROZEN.frozen), str(IMAGE.disk)]
    words = [one.get("value") for one in clone.iter("{http://libvirt.org/schemas/domain/qemu/1.0}arg")]
    assert words == ["-incoming", "defer"]
    assert "commandline" not in etree.tostring(saved, encoding="unicode")


def test_the_card_that_is_plugged_in_is_the_one_that_a_booted_guest_has() -> None:
    booted = etree.fromstring(domain_xml(spec(), "run1", IMAGE, FILES, TCG)).find("devices/interface")
    assert booted is not None
    plugged = etree.fromstring(nic_xml(spec()))
    assert [(one.tag, dict(one.attrib)) for one in booted.iter()] == [
        (one.tag, dict(one.attrib)) for one in plugged.iter()
    ]


@pytest.mark.parametrize("unconfined", [(), ("apparmor",), ("selinux",)])
def test_in_the_hosts_libvirt_only_network_channels_and_labels_differ(unconfined: tuple[str, ...]) -> None:
    files = replace(FILES, agent=None, helper=None)
    on_host = OnHost("vmlab-12345678", unconfined)
    text = domain_xml(spec(), "run1", IMAGE, files, Platform("tcg", "/usr/bin/qemu", "pc-q35-7.2"), on_host=on_host)
    domain = etree.fromstring(text)
    if SCHEMA.exists():
        etree.RelaxNG(etree.parse(SCHEMA)).assertValid(domain)
    labels = {label.get("model"): label for label in domain.iterfind("seclabel")}
    assert [*labels] == ["dac", *unconfined]
    assert labels["dac"].items() == [("type", "static"), ("model", "dac"), ("relabel", "no")]
    assert labels["dac"].findtext("label") == "+0:+0"
    assert all(labels[model].get("type") == "none" for model in unconfined)
    assert domain.xpath("string(devices/interface/@type)") == "network"
    assert domain.xpath("string(devices/interface/source/@network)") == "vmlab-12345678"
    assert domain.findall("devices/channel/source") == [], "libvirt chooses a path that its drivers allow"
    ordinary = domain_xml(spec(), "run1", IMAGE, FILES, Platform("tcg", "/usr/bin/qemu", "pc-q35-7.2"))
    assert layout_of(text) == layout_of(ordinary), "a saved state fits both"


def layout_of(text: str) -> list[str]:
    """The kinds of the devices, in order."""
    devices = etree.fromstring(text).find("devices")
    assert devices is not None
    return [f"{device.tag} {device.get('model', '')}" for device in devices]
