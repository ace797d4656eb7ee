"""Command lines and definitions of other programs, in command_lines.txt, each read right or as unknown.

The rule is that of `qemu_options`: a value that was not read is unknown, never QEMU's default, unless QEMU itself takes
it where the arguments leave the value out. What is right was worked out by hand.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from vmlab.model.domain import UNKNOWN, Domain
from vmlab.telemetry.domains.libvirt_reader import domain_of_xml
from vmlab.telemetry.domains.qemu_processes import QemuProcess, QemuProcesses
from vmlab.telemetry.source import Roots

TABLE = Path(__file__).with_name("command_lines.txt")
NO_GUEST = ["no", "guest"]
PID = 71


@dataclass
class Entry:
    origin: str
    given: str = ""
    is_right: list[str] = field(default_factory=list)
    disks: list[list[str]] = field(default_factory=list)
    files: dict[str, list[str]] = field(default_factory=dict)


def entries() -> Iterator[Entry]:
    entry = Entry("")
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        sign, _, rest = line.partition(" ")
        if sign == "##":
            if entry.given:
                yield entry
            entry = Entry(f"{number}: {rest}")
        elif sign == "$":
            entry.given = rest
        elif sign == "@":
            entry.files[rest] = []
        elif sign == "|":
            entry.files[next(reversed(entry.files))].append(rest)
        elif sign == "=":
            entry.is_right = shlex.split(rest)
        elif sign == "-":
            entry.disks.append(shlex.split(rest))
    yield entry


ENTRIES = list(entries())


@pytest.fixture(autouse=True)
def on_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``kvm`` has by default depends on the host's architecture."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def by_process(entry: Entry, root: Path) -> Domain | None:
    """As one process in a folder of /proc, which sees its files below its own root and was started just now."""
    folder = root / str(PID)
    (folder / "task" / str(PID)).mkdir(parents=True)
    (folder / "status").write_text("VmRSS:\t1 kB\nVmSwap:\t0 kB\n")
    (folder / "cmdline").write_bytes(b"".join(os.fsencode(word) + b"\0" for word in shlex.split(entry.given)))
    for path, lines in entry.files.items():
        file = folder / "root" / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines))
    ticks = int((time.clock_gettime(time.CLOCK_BOOTTIME)) * os.sysconf("SC_CLK_TCK"))
    (folder / "stat").write_text(f"{PID} (q) S 1 {' 0' * 17} {ticks} 0")
    found: list[tuple[QemuProcess, object]] = [*QemuProcesses(Roots(proc=root), lambda clock: 0).read(1.0)]
    return found[0][0].domain if found else None


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.origin for entry in ENTRIES])
def test_it_is_read_right_or_as_unknown(entry: Entry, tmp_path: Path) -> None:
    is_xml = entry.given.startswith("<")
    domain = domain_of_xml(entry.given) if is_xml else by_process(entry, tmp_path)
    if entry.is_right == NO_GUEST:
        assert domain is None
        return
    assert domain is not None
    name, vcpus, mib, accelerator = (UNKNOWN if word == "?" else word for word in entry.is_right)
    counts = [float(word) if word != UNKNOWN else 0 for word in (vcpus, mib)]
    assert domain.name == (name or f"qemu-{PID}")
    assert [domain.vcpus, domain.memory_bytes / 2**20, domain.accelerator] == [*counts, accelerator]
    read = [[disk.target, disk.cache, disk.format, disk.protocol, disk.file] for disk in domain.disks]
    if is_xml:
        read = [[disk.target, disk.format] for disk in domain.disks]
    assert read == [[UNKNOWN if word == "?" else word for word in words] for words in entry.disks]


def test_the_table_is_as_long_as_it_was() -> None:
    """Held to its length, so that a line that is no longer understood is not left out."""
    assert len(ENTRIES) == len(TABLE.read_text().split("\n## ")) - 1 >= 120
