"""A guest as libvirt's domain XML. lxml quotes every value; libvirt validates the result against its schema."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.contract import BootImage, DomainSpec, PoolImage
from vmlab.model.names import BRIDGE, DATA_SERIAL, FAR_BRIDGE, HELPER_CHANNEL, LAB_NAMESPACE, routed_bridge_of
from vmlab.model.run import Accelerator, CacheMode
from vmlab.model.scenarios.guest import Boot

AGENT_CHANNEL = "org.qemu.guest_agent.0"

CHANNELS = (AGENT_CHANNEL, HELPER_CHANNEL)
"""The virtio-serial ports of every guest, which are part of what a saved state fits."""

_QEMU_NAMESPACE = "http://libvirt.org/schemas/domain/qemu/1.0"
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
    kvm = platform.accelerator == "kvm"
    extra = None if files.frozen is None else {"qemu": _QEMU_NAMESPACE}
    domain = etree.Element("domain", {"type": "kvm" if kvm else "qemu"}, nsmap=extra)
    _text(domain, "name", domain_name(lab, spec.name))
    _mark(domain, spec, lab)
    _text(domain, "memory", str(spec.resources.memory_bytes), unit="b")
    vcpus, possible = spec.resources.vcpus, possible_vcpus(spec.resources.vcpus, platform.accelerator)
    _text(domain, "vcpu", str(possible), **({"current": str(vcpus)} if possible > vcpus else {}))
    _cpu_time(domain, spec)
    if partition is not None:
        _text(_child(domain, "resource"), "partition", partition)
    _boot(domain, spec.resources.boot, image, platform)
    features = _child(domain, "features")
    _child(features, "acpi")
    _child(features, "apic")
    _cpu(domain, kvm)
    _child(domain, "clock", offset="utc")
    for event in ("on_poweroff", "on_reboot", "on_crash"):
        _text(domain, event, "destroy")
    _devices(_child(domain, "devices"), spec, image, files, platform, on_host)
    if on_host is not None:
        _security(domain, on_host)
    if files.frozen is not None:
        options = etree.SubElement(domain, f"{{{_QEMU_NAMESPACE}}}commandline")
        for word in ("-incoming", "defer"):
            etree.SubElement(options, f"{{{_QEMU_NAMESPACE}}}arg", value=word)
    return etree.tostring(domain, encoding="unicode", pretty_print=True)


def _cpu_time(domain: etree._Element, spec: DomainSpec) -> None:
    shares, quota = spec.resources.cpu_shares, spec.resources.cpu_quota
    if shares is None and quota is None:
        return
    tune = _child(domain, "cputune")
    if shares is not None:
        _text(tune, "shares", str(shares))
    if quota is not None:
        _text(tune, "period", str(_QUOTA_PERIOD))
        _text(tune, "quota", str(round(_QUOTA_PERIOD * quota / 100)))


def _child(parent: etree._Element, tag: str, **attributes: str) -> etree._Element:
    return etree.SubElement(parent, tag, attributes)


def _text(parent: etree._Element, tag: str, text: str, **attributes: str) -> None:
    _child(parent, tag, **attributes).text = text


def _mark(domain: etree._Element, spec: DomainSpec, lab: str) -> None:
    put_mark(domain, id=lab, guest=spec.guest, tile=str(spec.tile))


def put_mark(element: etree._Element, **said: str) -> None:
    """Give a domain or a network the lab's mark, with `said` for its attributes; ``id`` is the lab's."""
    mark = etree.SubElement(_child(element, "metadata"), f"{{{LAB_NAMESPACE}}}lab", nsmap={"vmlab": LAB_NAMESPACE})
    for name, value in said.items():
        mark.set(name, value)


def marked_for(text: str) -> str | None:
    """The lab that the XML of a domain or a network is marked for; None without a mark."""
    mark = etree.fromstring(text).find(f"metadata/{{{LAB_NAMESPACE}}}lab")
    return None if mark is None else mark.get("id")


def _boot(domain: etree._Element, mode: Boot, image: BootImage, platform: Platform) -> None:
    boot = _child(domain, "os")
    _text(boot, "type", "hvm", arch="x86_64", machine=platform.machine_type)
    if image.kernel is None:
        _child(boot, "boot", dev="hd")
        return
    _text(boot, "kernel", str(image.kernel))
    if image.initrd is not None:
        _text(boot, "initrd", str(image.initrd))
    # The image's own initial RAM disk reads this word; without it the guest boots as the lab has it.
    _text(boot, "cmdline", image.command_line if mode == "lab" else f"{image.command_line} vmlab.boot={mode}")


def _cpu(domain: etree._Element, kvm: bool) -> None:
    if kvm:
        _child(domain, "cpu", mode="host-passthrough")
        return
    cpu = _child(domain, "cpu", mode="maximum")
    for feature in _SLOW_UNDER_TCG:
        _child(cpu, "feature", policy="disable", name=feature)


def _devices(
    devices: etree._Element,
    spec: DomainSpec,
    image: BootImage,
    files: DomainFiles,
    platform: Platform,
    on_host: OnHost | None,
) -> None:
    _text(devices, "emulator", platform.emulator)
    _disk(devices, spec, image, files)
    _child(devices, "controller", type="usb", model="none")
    _child(devices, "controller", type="pci", model="pcie-root")
    for _ in range(_DEVICES_ON_PORTS + _HOT_PLUG_PORTS):
        _child(devices, "controller", type="pci", model="pcie-root-port")
    if spec.network and files.frozen is None:
        devices.append(_nic(spec, on_host))
    serial = _child(devices, "serial", type="file")
    _child(serial, "source", path=str(files.console))
    _child(serial, "target", port="0")
    _channel(devices, AGENT_CHANNEL, files.agent)
    _channel(devices, HELPER_CHANNEL, files.helper)
    _child(devices, "memballoon", model="virtio")
    entropy = _child(devices, "rng", model="virtio")
    _text(entropy, "backend", "/dev/urandom", model="random")


def _security(domain: etree._Element, on_host: OnHost) -> None:
    """QEMU as root without capabilities, as in a lab's own libvirt: the files keep their owners, and stay in place."""
    dac = _child(domain, "seclabel", type="static", model="dac", relabel="no")
    _text(dac, "label", "+0:+0")
    for model in on_host.unconfined:
        _child(domain, "seclabel", type="none", model=model)


def _channel(devices: etree._Element, name: str, socket: Path | None) -> None:
    channel = _child(devices, "channel", type="unix")
    if socket is not None:
        # An embedded libvirt's own choice is so long that a run's id would push it over the 108 bytes of an address.
        _child(channel, "source", mode="bind", path=str(socket))
    _child(channel, "target", type="virtio", name=name)


def nic_xml(spec: DomainSpec, on_host: OnHost | None = None) -> str:
    """The guest's network card alone, to be plugged in."""
    return etree.tostring(_nic(spec, on_host), encoding="unicode")


def _nic(spec: DomainSpec, on_host: OnHost | None) -> etree._Element:
    nic = etree.Element("interface", type="bridge" if on_host is None else "network")
    _child(nic, "mac", address=spec.mac)
    bridges = {"plain": BRIDGE, "vxlan": FAR_BRIDGE, "nat": routed_bridge_of(spec.mac)}
    source = {"bridge": bridges[spec.resources.network]} if on_host is None else {"network": on_host.network}
    _child(nic, "source", **source)
    _child(nic, "model", type="virtio")
    # Its option ROM would only cost time: guests boot from a kernel that is handed over.
    _child(nic, "rom", enabled="no")
    return nic


def data_disk_xml(spec: DomainSpec, source: DiskSource | PoolImage) -> str:
    """The guest's data disk alone, to be plugged in; the guest knows it by its serial number."""
    disk = etree.Element("disk", type=_disk_type(source), device="disk")
    given = spec.resources
    # A file that was allocated before stays so: what the guest discards would punch holes into it.
    discard = "unmap" if given.allocation == "thin" else "ignore"
    _driver(disk, kind="raw", cache=given.data_mode, discard=discard, queues=given.data_queues)
    if isinstance(source, PoolImage):
        network = _child(disk, "source", protocol="rbd", name=f"{source.pool}/{source.image}")
        _child(network, "config", file=str(source.conf))
    else:
        _child(disk, "source", **{"dev" if source.block else "file": str(source.path)})
    _child(disk, "target", dev="vdb", bus="virtio")
    _text(disk, "serial", DATA_SERIAL)
    return etree.tostring(disk, encoding="unicode")


def _disk_type(source: DiskSource | PoolImage) -> str:
    if isinstance(source, PoolImage):
        return "network"
    return "block" if source.block else "file"


def _disk(devices: etree._Element, spec: DomainSpec, image: BootImage, files: DomainFiles) -> None:
    disk = _child(devices, "disk", type="file", device="disk")
    _driver(disk, kind="qcow2", cache=spec.resources.cache, discard="unmap", queues=spec.resources.queues)
    _child(disk, "source", file=str(files.overlay))
    below = disk
    if files.frozen is not None:
        below = _backing(below, "qcow2", files.frozen)
    _child(_backing(below, "raw", image.disk), "backingStore")
    _child(disk, "target", dev="vda", bus="virtio")


def _driver(disk: etree._Element, *, kind: str, cache: CacheMode, discard: str, queues: int) -> None:
    # io=native is legal with O_DIRECT alone. Threads, QEMU's default, work in every mode, so that a comparison of
    # cache modes changes the cache mode and nothing else.
    of = {"name": "qemu", "type": kind, "cache": cache, "io": "threads", "discard": discard, "queues": str(queues)}
    _child(disk, "driver", **of)


def _backing(above: etree._Element, kind: str, file: Path) -> etree._Element:
    backing = _child(above, "backingStore", type="file")
    _child(backing, "format", type=kind)
    _child(backing, "source", file=str(file))
    return backing
