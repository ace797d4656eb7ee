"""`cpu`: the model and the features of a guest's processors.

The guest sees them, so that a snapshot fits one value alone. The proofs are QEMU's own processor, as it was made, and
what the kernel of the guest found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.cpu_levers import HOST_CPU, LIKE_HOST_CPU, MOST_CPU, AskedCpu, read_cpu
from vmlab.model.scenarios.guest import GuestResources
from vmlab.system.kvm_device import processor_fields

CPUINFO = "/proc/cpuinfo"
_MODES = {HOST_CPU: "host-passthrough", MOST_CPU: "maximum", LIKE_HOST_CPU: "host-model"}
_TYPE = "-x86_64-cpu"
_UNNAMED = re.compile(r"kvm|spec-ctrl")
"""Features that Linux does not list by QEMU's names."""
_LINUX_ADDS = frozenset({"3dnowprefetch"})
"""Features that Linux lists for every 64-bit AMD processor (init_amd in arch/x86/kernel/cpu/amd.c)."""


class CpuLever(GuestLever):
    """libvirt's ``cpu``, in place of that which every guest has."""

    keys = ("cpu",)
    reads = (CPUINFO,)

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """QEMU leaves out what it cannot give of a named model, which the plan has refused, and the proof finds."""
        usual = domain.find("cpu")
        if asked.cpu is None or usual is None:
            return
        cpu = read_cpu(asked.cpu)
        made = etree.Element("cpu", mode=_MODES.get(cpu.model, "custom"))
        if cpu.model not in _MODES:
            made.attrib.update({"match": "exact", "check": "none"})
            etree.SubElement(made, "model", fallback="forbid").text = cpu.model
        for policy, names in (("require", cpu.added), ("disable", cpu.removed)):
            for name in names:
                etree.SubElement(made, "feature", policy=policy, name=name)
        domain.replace(usual, made)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """QEMU's processor, and that of the guest where it could be asked."""
        if qemu.asked.cpu is None:
            return
        cpu = read_cpu(qemu.asked.cpu)
        path = qemu.monitor("query-cpus-fast")[0]["qom-path"]

        def has(name: str) -> object:
            return qemu.monitor("qom-get", {"path": path, "property": name})

        kind = str(has("type")).removesuffix(_TYPE)
        if cpu.model == LIKE_HOST_CPU and kind == _like_host(qemu):
            kind = LIKE_HOST_CPU
        on = {name for name in (*cpu.added, *cpu.removed) if has(name) is True}
        found, left_out = _words(kind, cpu, on), has("unavailable-features")
        removed = {_as_linux(one) for one in cpu.removed}
        if isinstance(left_out, list) and (lacking := [one for one in left_out if _as_linux(one) not in removed]):
            found += f", without {', '.join(lacking)}"
        yield qemu.proof("cpu", qemu.asked.cpu, found, "QEMU's processor: its type and properties")
        if CPUINFO in qemu.inside:
            fields = processor_fields(qemu.inside[CPUINFO])
            flags = {*fields.get("flags", "").split()}
            on = {name for name in (*cpu.added, *cpu.removed) if _as_linux(name) in flags}
            on |= {name for name in cpu.added if _UNNAMED.match(name)}
            on -= _LINUX_ADDS.intersection(cpu.removed)
            wanted = _words(_spaced(str(has("model-id"))), cpu, {*cpu.added})
            found = _words(_spaced(fields.get("model name", "")), cpu, on)
            yield qemu.proof("cpu", wanted, found, f"{CPUINFO} of the guest")


def _like_host(qemu: RunningQemu) -> str | None:
    """The model that libvirt makes of ``host-model`` here; None where it offers none."""
    capabilities = etree.fromstring(qemu.capabilities())
    return capabilities.findtext(f"cpu/mode[@name='{LIKE_HOST_CPU}']/model")


def _words(model: str, cpu: AskedCpu, on: set[str]) -> str:
    """As the scenario writes it: the features that were named, each with what it is."""
    features = (f"{'+' if name in on else '-'}{name}" for name in (*cpu.added, *cpu.removed))
    return " ".join([model, *features])


def _as_linux(feature: str) -> str:
    """A feature's name in /proc/cpuinfo, where QEMU and libvirt may have a hyphen or a dot."""
    return re.sub(r"[-.]", "_", feature)


def _spaced(name: str) -> str:
    """A model's name, of which the kernel leaves out spaces at the ends."""
    return " ".join(name.split())
