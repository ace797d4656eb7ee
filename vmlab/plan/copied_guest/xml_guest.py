"""A guest by libvirt's XML of its domain. Names, memory, CPUs and what a disk lies on are read as elsewhere
(`domain_of_xml`); here is what a scenario has keys for besides, and what it has none for.

Names are those of https://libvirt.org/formatdomain.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from vmlab.model.errors import ScenarioError
from vmlab.model.quantities import whole
from vmlab.plan.copied_guest.found_guest import (
    MOST_VCPUS,
    Findings,
    FoundGuest,
    cpu_ranges,
    of_feature,
    on_board,
    percent_of_each,
    say_settings,
)
from vmlab.plan.copied_guest.left_over import attributes_of, is_usual, left_of, shown
from vmlab.plan.copied_guest.xml_disks import found_disks
from vmlab.plan.copied_guest.xml_memory import memory_of
from vmlab.telemetry.domains.libvirt_reader import domain_of_xml, scaled_bytes
from vmlab.telemetry.source import Roots

_TYPES = {"kvm": False, "qemu": True}
"""Whether the guest is emulated, by the type of its domain; other hypervisors are none that the lab has."""
_KINDS = {"lxc": "a container", "xen": "a guest of Xen", "bhyve": "a guest of bhyve", "hvf": "a guest of macOS"}
_MODELS = {"host-passthrough": "host", "maximum": "max", "host-model": "host-model"}
_LIKE_QEMU = "qemu64"
_OF_CARD = ("name", "queues", "host", "guest")
"""What is read of its driver; all else may be a setting."""
_PARTS_OF_CARD = ("source", "model", "driver", "mtu", "bandwidth", "coalesce")
_WITHOUT_EFFECT = ("mac", "target", "alias", "address", "boot", "rom", "acpi", "script", "stats")
"""Elements of a device that change nothing that is measured."""
_ON_A_BRIDGE = ("bridge", "network")
_USUAL_PARTITION = "/machine"
_OF_QEMU = "{http://libvirt.org/schemas/domain/qemu/1.0}"
_GLOBAL = ("global_period", "global_quota", "emulator_period", "emulator_quota", "iothread_period", "iothread_quota")
_OF_CPU_TUNE = ("shares", "period", "quota", "vcpupin", "emulatorpin", "iothreadpin")
_FEATURES, _LABS_FEATURES = ("pmu", "vmport"), ("acpi", "apic")
_ENLIGHTENMENTS = {"hyperv": ("relaxed", "vapic", "spinlocks"), "kvm": ("hidden",)}
"""What QEMU 7.2 and libvirt 9.0 give an emulated guest, too."""
_TIMERS = ("hpet", "pit", "rtc")
_LIMITS = ("hard_limit", "soft_limit", "swap_hard_limit")
_OTHER_DEVICES = {
    "hostdev": "a device of the host is passed through",
    "tpm": "guests of the lab have no TPM",
    "filesystem": "guests of the lab share no folder with the host",
    "shmem": "guests of the lab share no memory",
    "memory": "memory that is plugged in is part of the lab's guest from its start",
    "iommu": "guests of the lab have no IOMMU",
    "vsock": "guests of the lab have no vsock",
    "sound": "guests of the lab have no sound",
    "video": "guests of the lab have no screen",
    "redirdev": "guests of the lab have no USB",
    "watchdog": "guests of the lab have no watchdog",
    "crypto": "guests of the lab have no crypto device",
}
_WITHOUT_A_SCREEN = ("none",)


def is_xml(text: str) -> bool:
    """Whether a text can be XML and nothing else."""
    return text.lstrip("\ufeff \t\r\n").startswith("<")


def guest_of_xml(text: str, file: Path | str, origin: str, here: Roots | None = None) -> FoundGuest:
    """The guest that the XML describes; `here` are the files of its domain's host, None where that may be another.

    Raises ScenarioError, with line and column, for what is no domain of QEMU's.
    """
    root = _domain_of(text, file)
    domain = domain_of_xml(text)
    guest = FoundGuest(domain.name or "guest", origin, is_emulated=_TYPES[root.get("type", "")])
    # libvirt gives a number to domains that run alone.
    guest.is_running = root.get("id") is not None
    _cpus(root, domain.vcpus, guest.found)
    memory_of(root, domain.memory_bytes, guest.found, here)
    _cpu_model(root, guest.found)
    _cpu_time(root, guest.found)
    _tuning(root, guest.found)
    _pinning(root, domain.vcpus, guest.found)
    _cards(root, guest.found)
    _other(root, guest.found)
    guest.disks += found_disks(root, domain, guest.found, here)
    return guest


def _domain_of(text: str, file: Path | str) -> etree._Element:
    """The element of the domain. Entities are not read and nothing is fetched."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        words = re.sub(r",? line \d+, column \d+", "", error.msg or "is no XML")
        raise ScenarioError(f"is no XML: {words}", file=file, line=line, column=max(1, column)) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise ScenarioError("has a DOCTYPE, which no domain of libvirt's has", file=file, line=1, column=1)
    line = int(str(root.sourceline or 1))
    if root.tag != "domain":
        raise ScenarioError(f"is the XML of <{root.tag}>, and not of a <domain>", file=file, line=line, column=1)
    if (kind := root.get("type", "")) not in _TYPES:
        what = _KINDS.get(kind, f"a domain of type {kind!r}")
        words = f"is {what}, whose disks QEMU does not drive; type kvm or qemu is needed"
        raise ScenarioError(words, file=file, line=line, column=1)
    return root


def _cpus(root: etree._Element, count: int, found: Findings) -> None:
    vcpu = root.find("vcpu")
    if count:
        found.say("vcpus", count, "no <vcpu>" if vcpu is None else shown(vcpu, "current"))
    if vcpu is not None and vcpu.get("placement") == "auto":
        found.lack(f"{shown(vcpu, 'placement')}: its host chooses the CPUs (numad); the lab takes those of `pin`")
    topology = root.find("cpu/topology")
    if topology is not None and any(topology.get(key, "1") != "1" for key in ("dies", "clusters", "cores", "threads")):
        found.lack(f"{shown(topology)}: each virtual CPU of the lab's guests is a socket")
    arch = root.find("os/type")
    if arch is not None and arch.get("arch", "x86_64") != "x86_64":
        found.lack(f"{shown(arch, 'arch')}: guests of the lab are x86_64")
    if arch is not None:
        on_board(found, arch.get("machine", ""), shown(arch, "machine"))


def _cpu_model(root: etree._Element, found: Findings) -> None:
    cpu = root.find("cpu")
    mode = "" if cpu is None else cpu.get("mode", "custom")
    model = _MODELS.get(mode)
    where = "no <cpu>: QEMU's own" if cpu is None else shown(cpu, "mode")
    if model is None and cpu is not None and cpu.findtext("model"):
        model = (cpu.findtext("model") or "").strip()
        where = f"<model>{model}</model>"
    features: dict[str, str] = {}
    for feature in () if cpu is None else cpu.iterfind("feature"):
        name, policy = feature.get("name", ""), feature.get("policy", "require")
        if policy in ("force", "require", "disable", "forbid"):
            features[name] = of_feature(name, wanted=policy in ("force", "require"))
        else:
            found.lack(f"{shown(feature)}: whether the guest has it depends on its host's CPU")
    for tag in ("cache", "maxphysaddr"):
        if cpu is not None and (one := cpu.find(tag)) is not None:
            found.lack(f"{shown(one)} of cpu: no key")
    where += f" and {len(features)} <feature>" if features else ""
    found.say("cpu", " ".join([model or _LIKE_QEMU, *features.values()]), where)


def _cpu_time(root: etree._Element, found: Findings) -> None:
    tune = root.find("cputune")
    if tune is not None:
        _cpu_tune(tune, found)
    if weight := (root.findtext("blkiotune/weight") or "").strip():
        say_settings(found, {"blkiotune/weight": weight}, f"<blkiotune><weight>{weight}</weight>")
    for device in root.iterfind("blkiotune/device"):
        words = ", ".join(f"{one.tag} {(one.text or '').strip()}" for one in device.iterfind("*"))
        found.lack(f"<device> of blkiotune: {words}: no key")

    for thread in root.iterfind("iothreadids/iothread"):
        if more := [shown(one) for one in thread.iterfind("*")] + [key for key in attributes_of(thread) if key != "id"]:
            found.lack(f"{shown(thread)} with {' '.join(more)}: no key")
    if (partition := root.findtext("resource/partition") or _USUAL_PARTITION) != _USUAL_PARTITION:
        found.lack(f"<partition>{partition}</partition>: limits of that cgroup are not read")


def _cpu_tune(tune: etree._Element, found: Findings) -> None:
    if (shares := tune.find("shares")) is not None and whole(shares.text):
        found.say("cpu_shares", whole(shares.text), shown(shares))
    period, quota = (_number(tune, key, usual) for key, usual in (("period", 100_000), ("quota", -1)))
    if (share := percent_of_each(quota, period)) is not None:
        found.say("cpu_quota", share, f"<quota>{quota}</quota> of <period>{period}</period>")
    elif quota > 0:
        found.lack(f"<quota>{quota}</quota> of <period>{period}</period>: a cpu_quota is from 10 to 100 %")
    settings = {f"cputune/{key}": text for key in _GLOBAL if (text := (tune.findtext(key) or "").strip())}
    for other in tune.iterfind("*"):
        if isinstance(other.tag, str) and other.tag not in (*_GLOBAL, *_OF_CPU_TUNE):
            found.lack(f"{shown(other)}: no key")
    say_settings(found, settings, "the same elements of its XML")


def _tuning(root: etree._Element, found: Findings) -> None:
    """Features, timers and limits of the memory, as far as `libvirt` sets them and a guest has them without KVM."""
    settings: dict[str, str] = {}
    for feature in root.iterfind("features/*"):
        tag, inner = str(feature.tag), [one for one in feature.iterfind("*") if isinstance(one.tag, str)]
        taken = [one for one in inner if one.tag in _ENLIGHTENMENTS.get(tag, ()) and one.get("state")]
        for one in taken:
            settings |= {f"features/{tag}/{one.tag}/@{key}": value for key, value in attributes_of(one).items()}
        left = ", ".join(str(one.tag) for one in inner if one not in taken)
        if tag in _FEATURES and feature.get("state"):
            settings[f"features/{tag}/@state"] = feature.get("state", "")
        elif left or (not taken and tag not in _LABS_FEATURES) or feature.attrib:
            found.lack(f"{shown(feature)}{f' with {left}' if left else ''}: not copied; `libvirt` sets features")
    clock = root.find("clock")
    if clock is not None and clock.get("offset", "utc") != "utc":
        found.lack(f"{shown(clock)}: the lab's clock is UTC")
    for timer in root.iterfind("clock/timer"):
        if timer.get("name") in _TIMERS:
            given = {key: value for key, value in attributes_of(timer).items() if key != "name"}
            settings |= {f"clock/timer[{timer.get('name')}]/@{key}": value for key, value in given.items()}
        else:
            found.lack(f"{shown(timer)}: not copied; `libvirt` sets timers")
    for limit in root.iterfind("memtune/*"):
        count = scaled_bytes(limit.text, limit.get("unit")) >> 10
        if limit.tag in _LIMITS and count:
            settings[f"memtune/{limit.tag}"] = str(count)
        else:
            found.lack(f"{shown(limit)} of memtune: no key")
    say_settings(found, settings, "the same elements of its XML")


def _number(tune: etree._Element, key: str, usual: int) -> int:
    try:
        return int((tune.findtext(key) or "").strip())
    except ValueError:
        return usual


def _pinning(root: etree._Element, vcpus: int, found: Findings) -> None:
    vcpu = root.find("vcpu")
    every = "" if vcpu is None else vcpu.get("cpuset", "")
    pins = {one.get("vcpu", ""): one.get("cpuset", "") for one in root.iterfind("cputune/vcpupin")}
    sets = [_cpus_in(pins.get(str(number), every)) for number in range(min(vcpus, MOST_VCPUS))]
    if sets and all(sets):
        text = sets[0] if len(set(sets)) == 1 else ";".join(sets)
        found.say("pin", text, "<vcpupin> of each" if pins else f"<vcpu cpuset='{every}'>")
    elif pins:
        found.lack(f"<vcpupin> of virtual CPUs {', '.join(pins)}: the lab pins all virtual CPUs or none")
    emulator = root.find("cputune/emulatorpin")
    own = every if emulator is None else emulator.get("cpuset", "")
    if cpus := _cpus_in(own):
        found.say("emulator_pin", cpus, f"<vcpu cpuset='{every}'>" if emulator is None else shown(emulator))
    for pin in root.iterfind("cputune/iothreadpin"):
        found.lack(f"{shown(pin)}: the lab pins iothreads as the emulator's other threads")


def _cpus_in(text: str) -> str:
    """``0-3,^1`` as the lab has it: ``0,2-3``; empty for what is no set of CPUs."""
    chosen: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = re.fullmatch(r"(\^?)(\d{1,4})(?:-(\d{1,4}))?", part, re.ASCII)
        if match is None:
            return ""
        cpus = set(range(int(match[2]), int(match[3] or match[2]) + 1))
        chosen = chosen - cpus if match[1] else chosen | cpus
    return cpu_ranges(chosen)


def _cards(root: etree._Element, found: Findings) -> None:
    cards = root.findall("devices/interface")
    for card in cards[1:]:
        found.lack(f"{_named(card)}: the lab's guests have one network card")
    if not cards:
        found.lack("it has no network card; guests of the lab have one")
        return
    card = cards[0]
    model, driver = card.find("model"), card.find("driver")
    if card.get("type") == "hostdev":
        found.lack(f"{_named(card)}: a card of the host is passed through; the lab's is virtio")
        return
    if card.get("type") not in _ON_A_BRIDGE:
        found.lack(f"{_named(card)}: the lab's network card is on a bridge")
    if model is None or not model.get("type", "").startswith("virtio"):
        words = "no <model> of the card" if model is None else shown(model)
        found.lack(f"{words}: the lab's network card is virtio")
        return
    said = attributes_of(driver)
    if driver is not None:
        found.say("nic_queues", whole(said.get("queues")) or None, shown(driver, "queues"))
        if said.get("name") in ("vhost", "qemu"):
            found.say("vhost", said["name"] == "vhost", shown(driver, "name"))
        given = {key: value for key, value in said.items() if key not in _OF_CARD and not is_usual(key, value)}
        settings = {f"interface/driver/@{key}": value for key, value in given.items()}
        for side in ("host", "guest"):
            inner = attributes_of(driver.find(side))
            settings |= {f"interface/driver/{side}/@{key}": value for key, value in inner.items()}
        say_settings(found, settings, "<driver> of its network card")
    if most := attributes_of(card.find("coalesce/rx/frames")).get("max"):
        say_settings(found, {"interface/coalesce/rx/frames/@max": most}, "<coalesce> of its network card")
    is_up = card.find("link") is None or card.find("link[@state='up']") is not None
    found.lack_key("", left_of(card, ("type", *_PARTS_OF_CARD, *_WITHOUT_EFFECT, *(("link",) if is_up else ()))))
    if (mtu := card.find("mtu")) is not None:
        found.say("mtu", whole(mtu.get("size")) or None, shown(mtu))
    for limit in card.iterfind("bandwidth/*"):
        found.lack(f"{shown(limit)} of the card's <bandwidth>: the key `bandwidth` limits both directions")


def _named(card: etree._Element) -> str:
    mac = card.find("mac")
    return f"<interface type='{card.get('type', '')}'>" + ("" if mac is None else f" {mac.get('address', '')}")


def _other(root: etree._Element, found: Findings) -> None:
    balloon = root.find("devices/memballoon")
    if balloon is not None and balloon.get("model") == "none":
        found.lack(f"{shown(balloon)}: guests of the lab have a balloon")
    else:
        found.lack_key("", left_of(balloon, ("model", *_WITHOUT_EFFECT)))
    for device, words in _devices(root):
        found.lack(f"{device}: {words}")
    _firmware(root, found)
    if (launch := root.find("launchSecurity")) is not None:
        found.lack(f"{shown(launch, 'type')}: the memory of the lab's guests is not encrypted")
    for element in root:
        if isinstance(element.tag, str) and element.tag.startswith(_OF_QEMU):
            given = " ".join(value for one in element.iter() for value in attributes_of(one).values())
            found.lack(f"<qemu:{element.tag.removeprefix(_OF_QEMU)}> {given}: no key")


def _firmware(root: etree._Element, found: Findings) -> None:
    system, loader = root.find("os"), root.find("os/loader")
    if system is not None and system.get("firmware") == "efi":
        found.say("firmware", "uefi", "<os firmware='efi'>")
    elif loader is not None and loader.get("type") == "pflash":
        found.say("firmware", "uefi", shown(loader, "type"))
    elif loader is not None:
        found.lack(f"{shown(loader)}: the lab's firmware is SeaBIOS or OVMF")
    if loader is not None and loader.get("secure") == "yes":
        found.lack(f"{shown(loader, 'secure')}: the lab's UEFI has no secure boot")


def _devices(root: etree._Element) -> Iterator[tuple[str, str]]:
    for device in root.iterfind("devices/*"):
        words = _OTHER_DEVICES.get(str(device.tag))
        model = device.find("model")
        kind = device.get("type") or device.get("model") or ("" if model is None else model.get("type", ""))
        if words is None or (device.tag == "video" and kind in _WITHOUT_A_SCREEN):
            continue
        address = attributes_of(device.find("source/address"))
        at = " ".join(f"{key}={value}" for key, value in address.items())
        yield f"<{device.tag}> {kind} {at}".strip(), words
