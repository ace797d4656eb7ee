"""Run as root in a mount namespace of its own with tracefs: traces direct requests to a file, and prints what it saw.

Then a process with an instance of tracing is killed, and its journal swept.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import sys
import time
from pathlib import Path

from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.trace_instance import TraceInstance, folder_of
from vmlab.model.domain import Domain, DomainDisk
from vmlab.system.file_system import filesystem_of
from vmlab.telemetry.domains.traced_disks import TracedDisks

BLOCK, BLOCKS = 8192, 2000


def load(path: Path, places: list[int], *, write: bool) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, BLOCK) as block:
        for place in places:
            (os.pwritev if write else os.preadv)(descriptor, [block], place * BLOCK)
    os.close(descriptor)


def main(folder: Path, run: str) -> None:
    file = folder / "disk.img"
    file.write_bytes(os.urandom(BLOCK * BLOCKS))
    os.sync()
    disk = DomainDisk("vda", str(file), "raw", "none", True, "x", "file", filesystem_of(folder, Path("/proc")) or "")
    said: list[str] = []
    domain = Domain("db", "process", os.getpid(), disks=(disk,))
    journal = Journal(folder / "journal.jsonl")
    instance = TraceInstance(run, journal)
    instance.start()
    traced = TracedDisks(instance, lambda: (domain,), said.append)
    traced.look()
    load(file, list(range(300)), write=False)
    load(file, random.sample(range(BLOCKS), 200), write=True)
    time.sleep(0.2)
    traced.follow()
    seen = {f"{name} {way}": one.values() for (name, way), one in traced._events.counts().items()}
    instance.close()
    gone = not folder_of(run).exists() and journal.open_entries() == []
    child = os.fork()
    if not child:
        TraceInstance(run, journal).start()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left = folder_of(run).exists()
    other = sweep(journal.path, folder / "disks", "another")
    stands = folder_of(run).exists()
    journal.add(JournalEntry("trace", folder_of(run).name))
    swept = sweep(journal.path, folder / "disks", run)
    after = folder_of(run).exists()
    sys.stdout.write(json.dumps([seen, said, gone, left, other, stands, swept, after]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
