"""A guest as libvirt's domain XML. lxml quotes every value; libvirt validates the result against its schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.domain_spec import BootImage, DomainSpec, PoolImage
from vmlab.hypervisor.levers.guest_lever import all_levers
from vmlab.model.names import BRIDGE, DATA_SERIAL, FAR_BRIDGE, HELPER_CHANNEL, LAB_NAMESPACE, routed_bridge_of
from vmlab.model.run import Accelerator, CacheMode
from vmlab.model.scenarios.disk_levers import DATA_TARGETS, DiskPlace
from vmlab.model.scenarios.guest import Boot, GuestResources

AGENT_CHANNEL = "org.qemu.guest_agent.0"

CHANNELS = (AGENT_CHANNEL, HELPER_CHANNEL)
"""The virtio-serial ports of every guest, which are part of what a saved state fits."""

_QEMU_NAMESPACE = "http://libvirt.org/schemas/domain/qemu/1.0"
_WAITING = ("-incoming", "defer")
"""Words of QEMU's command line, by which a restored guest waits for its state."""
_QUOTA_PERIOD = 10_000
"""Microseconds in which a virtual CPU may use its quota; the kernel takes no quota below 1,000. Ten times shorter than
libvirt's own, so that a guest under a quota is slow all the time and not stopped now and then."""
_HOT_PLUG_PORTS = 1
_DEVICES_ON_PORTS = 5
"""NIC, disk, serial controller of the channels, memory balloon, entropy: each takes one root port."""

# TCG carries out `rep movsb` byte by byte, and kernel and C library use it for every copy where ERMS is announced:
# without it a boot with some shell work took 2.60 s of CPU instead of 2.85 s. Turning off la57, SMAP, PCID, AVX or
# XSAVE made no difference that could be measured.
_SLOW_UNDER_TCG = ("erms",)


@dataclass(frozen=True, slots=True)
class Platform:
    """What the hypervisor offers: accelerator, QEMU's path, and a versioned machine type (``pc-q35-7.2``)."""

    accelerator: Accelerator
    emulator: str
    machine_type: str


@dataclass(frozen=True, slots=True)
class DomainFiles:
    """The guest's own files: its qcow2 overlay, the log of its serial console, the sockets of its agent and helper.

    `frozen` is the saved guest's qcow2 disk, which a restored guest has between its overlay and the image. Without a
    path for a socket, libvirt chooses one.
    """

    overlay: Path
    console: Path
    agent: Path | None
    helper: Path | None
    frozen: Path | None = None


@dataclass(frozen=True, slots=True)
class OnHost:
    """What a guest has besides in the host's own libvirt: the name of libvirt's `network`, and the models of security
    drivers that are to leave its QEMU alone.
    """

    network: str
    unconfined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiskSource:
    """What QEMU opens as a disk: a file, or with `block` the node of a block device."""

    path: Path
    block: bool = False


def possible_vcpus(vcpus: int, accelerator: Accelerator) -> int:
    """How many processors a guest may have, which has so many: two at least where it is emulated.

    QEMU leaves out memory barriers, and does locked instructions in parts, for a guest that can have one processor
    alone. But its own threads share memory with that one: a virtio device then misses that the guest waits for an
    interrupt, and the guest waits for ever. So it happened once in a million requests of a disk, with QEMU 7.2.
    """
    return vcpus if accelerator == "kvm" else max(2, vcpus)


def domain_name(lab: str, name: str) -> str:
    """The name that libvirt knows a guest of the lab by."""
    return f"{lab}-{name}"


def domain_xml(
    spec: DomainSpec,
    lab: str,
    image: BootImage,
    files: DomainFiles,
    platform: Platform,
    partition: str | None = None,
    on_host: OnHost | None = None,
) -> str:
    """The whole domain. The same layout for every guest, with a spare port for a NIC that is plugged in later.

    A restored guest waits for its state, and gets its NIC afterwards. Its cgroups are in `partition`, or in
    libvirt's own. `on_host` is for the host's own libvirt.
    """
    given, kvm = spec.resources, platform.accelerator == "kvm"
    possible = possible_vcpus(given.vcpus, platform.accelerator)
    domain = etree.Element(
        "domain",
        {"type": "kvm" if kvm else "qemu"},
        nsmap=None if files.frozen is None else {"qemu": _QEMU_NAMESPACE},
    )
    domain.extend(
        [
            node("name", domain_name(lab, spec.name)),
            mark(id=lab, guest=spec.guest, tile=str(spec.tile)),
            node("memory", str(given.memory_bytes), unit="b"),
            node("vcpu", str(possible), **({"current": str(given.vcpus)} if possible > given.vcpus else {})),
            *_cpu_time(given),
            *([] if partition is None else [node("resource", node("partition", partition))]),
            _boot(given.boot, image, platform),
            node("features", node("acpi"), node("apic")),
            _cpu(kvm),
            node("clock", offset="utc"),
            *(node(event, "destroy") for event in ("on_poweroff", "on_reboot", "on_crash")),
            node("devices", *_devices(spec, image, files, platform, on_host)),
            *([] if on_host is None else _security(on_host)),
        ]
    )
    for lever in all_levers():
        lever.describe(domain, given)
    if files.frozen is not None:
        options = etree.SubElement(domain, f"{{{_QEMU_NAMESPACE}}}commandline")
        for word in _WAITING:
            etree.SubElement(options, f"{{{_QEMU_NAMESPACE}}}arg", value=word)
    return etree.tostring(domain, encoding="unicode", pretty_print=True)


def node(tag: str, *within: etree._Element | str, **attributes: str) -> etree._Element:
    """An element with other ones, or a text, in it."""
    made = etree.Element(tag, attributes)
    for one in within:
        if isinstance(one, str):
            made.text = one
        else:
            made.append(one)
    return made


def mark(**said: str) -> etree._Element:
    """The lab's mark of a domain or a network, with `said` for its attributes; ``id`` is the lab's."""
    marked = etree.Element(f"{{{LAB_NAMESPACE}}}lab", said, nsmap={"vmlab": LAB_NAMESPACE})
    return node("metadata", marked)


def marked_for(text: str) -> str | None:
    """The lab that the XML of a domain or a network is marked for; None without a mark."""
    found = etree.fromstring(text).find(f"metadata/{{{LAB_NAMESPACE}}}lab")
    return None if found is None else found.get("id")


def _cpu_time(given: GuestResources) -> Iterator[etree._Element]:
    limits = []
    if given.cpu_shares is not None:
        limits.append(node("shares", str(given.cpu_shares)))
    if given.cpu_quota is not None:
        limits.append(node("period", str(_QUOTA_PERIOD)))
        limits.append(node("quota", str(round(_QUOTA_PERIOD * given.cpu_quota / 100))))
    if limits:
        yield node("cputune", *limits)


def _boot(mode: Boot, image: BootImage, platform: Platform) -> etree._Element:
    kind = node("type", "hvm", arch="x86_64", machine=platform.machine_type)
    if image.kernel is None:
        return node("os", kind, node("boot", dev="hd"))
    # The image's own initial RAM disk reads this word; without it the guest boots as the lab has it.
    words = image.command_line if mode == "lab" else f"{image.command_line} vmlab.boot={mode}"
    initrd = [] if image.initrd is None else [node("initrd", str(image.initrd))]
    return node("os", kind, node("kernel", str(image.kernel)), *initrd, node("cmdline", words))


def _cpu(kvm: bool) -> etree._Element:
    if kvm:
        return node("cpu", mode="host-passthrough")
    without = [node("feature", policy="disable", name=feature) for feature in _SLOW_UNDER_TCG]
    return node("cpu", *without, mode="maximum")


def _devices(
    spec: DomainSpec, image: BootImage, files: DomainFiles, platform: Platform, on_host: OnHost | None
) -> Iterator[etree._Element]:
    yield node("emulator", platform.emulator)
    yield _disk(spec, image, files)
    yield node("controller", type="usb", model="none")
    yield node("controller", type="pci", model="pcie-root")
    for _ in range(_DEVICES_ON_PORTS + _HOT_PLUG_PORTS):
        yield node("controller", type="pci", model="pcie-root-port")
    if spec.network and files.frozen is None:
        yield _nic(spec, on_host)
    yield node("serial", node("source", path=str(files.console)), node("target", port="0"), type="file")
    yield _channel(AGENT_CHANNEL, files.agent)
    yield _channel(HELPER_CHANNEL, files.helper)
    yield node("memballoon", model="virtio")
    yield node("rng", node("backend", "/dev/urandom", model="random"), model="virtio")


def _security(on_host: OnHost) -> Iterator[etree._Element]:
    """QEMU as root without capabilities, as in a lab's own libvirt: the files keep their owners, and stay in place."""
    yield node("seclabel", node("label", "+0:+0"), type="static", model="dac", relabel="no")
    for model in on_host.unconfined:
        yield node("seclabel", type="none", model=model)


def _channel(name: str, socket: Path | None) -> etree._Element:
    # An embedded libvirt's own choice is so long that a run's id would push it over the 108 bytes of an address.
    source = [] if socket is None else [node("source", mode="bind", path=str(socket))]
    return node("channel", *source, node("target", type="virtio", name=name), type="unix")


def nic_xml(spec: DomainSpec, on_host: OnHost | None = None) -> str:
    """The guest's network card alone, to be plugged in."""
    return etree.tostring(_nic(spec, on_host), encoding="unicode")


def _nic(spec: DomainSpec, on_host: OnHost | None) -> etree._Element:
    bridges = {"plain": BRIDGE, "vxlan": FAR_BRIDGE, "nat": routed_bridge_of(spec.mac)}
    source = {"bridge": bridges[spec.resources.network]} if on_host is None else {"network": on_host.network}
    card = node(
        "interface",
        node("mac", address=spec.mac),
        node("source", **source),
        node("model", type="virtio"),
        # Its option ROM would only cost time: guests boot from a kernel that is handed over.
        node("rom", enabled="no"),
        type="bridge" if on_host is None else "network",
    )
    for lever in all_levers():
        lever.describe_card(card, spec.resources)
    return card


def data_devices_xml(spec: DomainSpec) -> list[str]:
    """The devices that are plugged in before the guest's data disk, in this order."""
    made = (device for lever in all_levers() for device in lever.devices(spec.resources))
    return [etree.tostring(device, encoding="unicode") for device in made]


def data_disk_xml(spec: DomainSpec, source: DiskSource | PoolImage) -> str:
    """The guest's data disk alone, to be plugged in; the guest knows it by its serial number."""
    given = spec.resources
    if isinstance(source, PoolImage):
        kind, config = "network", node("config", file=str(source.conf))
        opened = node("source", config, protocol="rbd", name=f"{source.pool}/{source.image}")
    else:
        kind = "block" if source.block else "file"
        opened = node("source", **{"dev" if source.block else "file": str(source.path)})
    # A file that was allocated before stays so: what the guest discards would punch holes into it.
    driver = _driver(kind="raw", cache=given.data_mode, discard=given.data_discards, queues=given.data_queues)
    target = node("target", dev=DATA_TARGETS["virtio"], bus="virtio")
    disk = node("disk", driver, opened, target, node("serial", DATA_SERIAL), type=kind, device="disk")
    return etree.tostring(_with_levers(disk, given, "data"), encoding="unicode")


def _disk(spec: DomainSpec, image: BootImage, files: DomainFiles) -> etree._Element:
    below = _backing("raw", image.disk, node("backingStore"))
    if files.frozen is not None:
        below = _backing("qcow2", files.frozen, below)
    driver = _driver(kind="qcow2", cache=spec.resources.cache, discard="unmap", queues=spec.resources.queues)
    source, target = node("source", file=str(files.overlay)), node("target", dev="vda", bus="virtio")
    disk = node("disk", driver, source, below, target, type="file", device="disk")
    return _with_levers(disk, spec.resources, "root")


def _with_levers(disk: etree._Element, given: GuestResources, place: DiskPlace) -> etree._Element:
    for lever in all_levers():
        lever.describe_disk(disk, given, place)
    return disk


def _driver(*, kind: str, cache: CacheMode, discard: str, queues: int) -> etree._Element:
    return node("driver", name="qemu", type=kind, cache=cache, discard=discard, queues=str(queues))


def _backing(kind: str, file: Path, below: etree._Element) -> etree._Element:
    return node("backingStore", node("format", type=kind), node("source", file=str(file)), below, type="file")
