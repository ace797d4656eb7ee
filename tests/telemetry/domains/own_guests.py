"""QEMUs in a folder of recorded files, and a libvirt that answers what a test says."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tests.telemetry.libvirt_stats import domain
from tests.telemetry.recorded import RecordedHost
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.domains.libvirt_reader import DomainStats, LibvirtReader

UUID = "6695eb01-f6a4-8304-79aa-97f2502e193f"
XML = f"""<domain type='kvm' id='1'>
  <name>db</name><uuid>{UUID}</uuid><memory unit='KiB'>1048576</memory><vcpu>2</vcpu>
  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/>
      <source file='/images/db.qcow2'/><target dev='vda' bus='virtio'/></disk>
    <disk type='block' device='disk'><driver name='qemu' type='raw'/>
      <source dev='/dev/vg/log'/><target dev='vdb' bus='virtio'/></disk>
    <disk type='file' device='cdrom'><target dev='sda'/></disk>
  </devices>
</domain>"""


def libvirt_stats(scale: int, name: str = "db", uuid: str = UUID, **more: Any) -> DomainStats:
    """A domain with two disks, of which the second is idle."""
    second = {"block.1.name": "vdb", **{f"block.1.{key}": 0 for key in ("rd.reqs", "rd.bytes", "rd.times")}}
    second |= {f"block.1.{key}": 0 for key in ("wr.reqs", "wr.bytes", "wr.times")}
    figures = {**domain(scale), "block.0.name": "vda", **second, "block.count": 2, **more}
    return DomainStats(name, uuid, figures, lambda: XML)


class Libvirt(LibvirtReader):
    """Gives `answer`; hangs while `free` is not set."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: list[DomainStats] | Exception = []
        self.free = threading.Event()
        self.free.set()
        self.asked = 0

    def is_there(self) -> bool:
        return True

    def statistics(self, *, processes_seen: bool) -> list[DomainStats]:
        self.asked += 1
        answer = self.answer
        if not self.free.wait(600) or isinstance(answer, Exception):
            raise OSError("libvirt gives no metrics: refused")
        return answer


class OwnGuests:
    """The group over recorded processes, whose CPU time is set by a test."""

    def __init__(self, host: RecordedHost, libvirt: LibvirtReader | None = None) -> None:
        self.host = host
        self.cpu_ns: dict[int, int] = {}
        self.noted: list[str] = []
        reader = libvirt or LibvirtReader(run=host.root / "run")
        self.group = Domains(host.roots, reader, self.noted.append, clock_ns=self._clock)

    def _clock(self, clock: int) -> int:
        # The inverse of `cpu_clock_of`.
        if (pid := ~(clock >> 3)) not in self.cpu_ns:
            raise ProcessLookupError
        return self.cpu_ns[pid]

    def qemu(self, pid: int, arguments: str, parent: int = 1, program: str = "/usr/bin/qemu-system-x86_64") -> None:
        self.process(pid, f"{program} {arguments}", parent)
        self.cpu_ns.setdefault(pid, 0)
        self.used(pid)

    def process(self, pid: int, words: str, parent: int = 1) -> None:
        self.host.proc(f"{pid}/cmdline", words.replace(" ", "\0") + "\0")
        self.host.proc(f"{pid}/stat", f"{pid} (q) e mu) S {parent} 1 1{' 0' * 46}")

    def used(self, pid: int, cpu: float = 0.0, waited: float = 0.0, read: int = 0, written: int = 0) -> None:
        """What the process has used since it began, in seconds and bytes."""
        self.cpu_ns[pid] = round(cpu * 1e9)
        self.host.proc(f"{pid}/status", "Name:\tqemu\nVmRSS:\t  2048 kB\nRssAnon:\t 1 kB\nVmSwap:\t   512 kB\n")
        self.host.proc(f"{pid}/io", f"rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\n")
        self.host.proc(f"{pid}/ksm_merging_pages", "3\n")
        self.host.proc(f"{pid}/task/{pid}/comm", "qemu-system-x86\n")
        self.host.proc(f"{pid}/task/{pid + 1}/comm", "CPU 0/KVM\n")
        self.host.proc(f"{pid}/task/{pid}/schedstat", "7 7000000000 1\n")
        self.host.proc(f"{pid}/task/{pid + 1}/schedstat", f"5 {round(waited * 1e9)} 1\n")

    def tick(self, mono: float) -> Mapping[str, float]:
        values = self.group.read(mono, 1.0)
        return dict(zip(self.group.names, values, strict=True))
