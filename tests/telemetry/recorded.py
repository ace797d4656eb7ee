"""A host of recorded files: what /proc and /sys said, in a folder that a test changes between two readings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vmlab.telemetry.source import Roots

STAT = """\
cpu  300 20 120 2000 40 4 8 2 50 6
cpu0 100 10 60 1000 20 2 4 1 20 3
cpu1 200 10 60 1000 20 2 4 1 30 3
intr 676427 0 0 0
ctxt 1000000
btime 1795238333
processes 48033
procs_running 3
procs_blocked 1
softirq 742466 0 45117 9
"""
DISKSTATS = """\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
   8       0 sda 1000 5 80000 2000 500 7 40000 3000 0 4000 5000 0 0 0 0 12 30
   8       1 sda1 900 5 70000 1900 400 7 30000 2900 0 3900 4900 0 0 0 0 0 0
   8      16 sdb 10 0 80 20 0 0 0 0 0 20 20 0 0 0 0 0 0
"""
MEMINFO = """\
MemTotal:       16000000 kB
MemFree:         4000000 kB
MemAvailable:   11000000 kB
Buffers:          500000 kB
Cached:          6000000 kB
SwapCached:            0 kB
SwapTotal:       2000000 kB
SwapFree:        1500000 kB
Dirty:              1200 kB
Writeback:            16 kB
AnonPages:       3000000 kB
Shmem:            100000 kB
Slab:             900000 kB
SReclaimable:     700000 kB
Hugetlb:               0 kB
"""
VMSTAT = "nr_free_pages 1000\npswpin 100\npswpout 200\npgfault 5000\npgmajfault 70\n"
PRESSURE = "some avg10=0.39 avg60=3.78 avg300=3.13 total=1000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=200000\n"
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0
vmlab0:     900       9    0    0    0     0          0         0      900       9    0    0    0     0       0          0
 vnet0:  100000     100    0    1    0     0          0         0   200000     200    0    0    0     0       0          0
 vnet1:  300000     300    0    0    0     0          0         0   400000     400    0    2    0     0       0          0
"""  # noqa: E501 - as the kernel writes it
KSM = {
    "run": 1,
    "pages_shared": 100,
    "pages_sharing": 900,
    "pages_unshared": 50,
    "pages_volatile": 5,
    "full_scans": 12,
    "pages_scanned": 10000,
    "general_profit": 3000000,
}


@dataclass
class RecordedHost:
    """Writes files in place, so that a reader that holds them open sees the change, as with the kernel's own."""

    root: Path

    @property
    def roots(self) -> Roots:
        return Roots(self.root / "proc", self.root / "sys", self.root / "proc")

    def proc(self, name: str, text: str) -> None:
        self._write(self.root / "proc" / name, text)

    def sys(self, name: str, text: str) -> None:
        self._write(self.root / "sys" / name, text)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One write, and cut afterwards: a recorder never reads an empty file in between.
        path.touch()
        with path.open("r+b", buffering=0) as file:
            file.write(text.encode())
            file.truncate()


def recorded_host(root: Path) -> RecordedHost:
    """A host with two CPUs, two disks, KSM, PSI and a bridge with two ports."""
    recorded = RecordedHost(root)
    recorded.proc("stat", STAT)
    recorded.proc("diskstats", DISKSTATS)
    recorded.proc("meminfo", MEMINFO)
    recorded.proc("vmstat", VMSTAT)
    recorded.proc("loadavg", "0.87 0.51 0.20 3/120 4711\n")
    recorded.proc("net/dev", NET_DEV)
    for resource in ("cpu", "io", "memory"):
        recorded.proc(f"pressure/{resource}", PRESSURE)
    for name, value in KSM.items():
        recorded.sys(f"kernel/mm/ksm/{name}", f"{value}\n")
    recorded.proc("4194305/comm", "ksmd\n")
    recorded.proc("4194305/schedstat", "1000000000 5 3\n")
    for disk in ("loop0", "sda", "sdb"):
        (root / "sys/block" / disk).mkdir(parents=True)
    return recorded
