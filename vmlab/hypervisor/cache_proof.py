"""What a running QEMU really does with its disk files, read from its open descriptors and over QMP.

The XML is a claim. The flag O_DIRECT of an open file is a fact, and so are QMP's cache flags:

=============  ========  =============  ==========
mode           O_DIRECT  write cache    flushes
=============  ========  =============  ==========
none           yes       on             passed on
writeback      no        on             passed on
writethrough   no        off            passed on
directsync     yes       off            passed on
unsafe         no        on             ignored
=============  ========  =============  ==========

The write cache is a property of the device that the guest sees. A backing file has no device, is never written,
and QMP reports its write cache as on in every mode, so that flag is compared for the overlay alone. O_DIRECT and
`no-flush` are compared for both: a base image read through the host's cache is not ``cache=none``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.model.run import CacheMode, CacheProof

Query = Callable[[str], Any]
"""One QMP command without arguments; its ``return`` value."""


@dataclass(frozen=True, slots=True)
class CacheFlags:
    """QMP's flags: `writeback` is the guest-visible write cache, `direct` O_DIRECT, `no_flush` ignored flushes."""

    writeback: bool
    direct: bool
    no_flush: bool


EXPECTED: Mapping[CacheMode, CacheFlags] = {
    "none": CacheFlags(writeback=True, direct=True, no_flush=False),
    "writeback": CacheFlags(writeback=True, direct=False, no_flush=False),
    "writethrough": CacheFlags(writeback=False, direct=False, no_flush=False),
    "directsync": CacheFlags(writeback=False, direct=True, no_flush=False),
    "unsafe": CacheFlags(writeback=True, direct=False, no_flush=True),
}


def prove(guest: str, mode: CacheMode, chain: Sequence[Path], pid: int, query: Query) -> list[CacheProof]:
    """The proof for every file of a guest's disk: its overlay, then what lies below, in the order of `chain`.

    `pid` is QEMU's as this process sees it. A file that QEMU does not hold open does not agree. Raises OSError when
    the process is gone.
    """
    nodes = _file_nodes(query("query-named-block-nodes"))
    overlay, *below = chain
    write_cache = _device_write_cache(query("query-block"), overlay), EXPECTED[mode].writeback
    return [
        _proof(guest, mode, overlay, direct_flags(pid, overlay), nodes.get(overlay), write_cache),
        *(_proof(guest, mode, file, direct_flags(pid, file), nodes.get(file), None) for file in below),
    ]


def _proof(
    guest: str,
    mode: CacheMode,
    file: Path,
    opened: list[bool],
    node: CacheFlags | None,
    write_cache: tuple[bool | None, bool] | None,
) -> CacheProof:
    """`write_cache` is the device's (found, expected); None for a backing file, which has no device."""
    expected = EXPECTED[mode]
    found = node or CacheFlags(writeback=False, direct=False, no_flush=False)
    agrees = (
        node is not None
        and set(opened) == {expected.direct}
        and (found.direct, found.no_flush) == (expected.direct, expected.no_flush)
        and (write_cache is None or write_cache[0] is write_cache[1])
    )
    return CacheProof(
        guest=guest,
        file=str(file),
        o_direct=bool(opened) and all(opened),
        writeback=found.writeback if write_cache is None else bool(write_cache[0]),
        direct=found.direct,
        no_flush=found.no_flush,
        expected=_words(mode, backing=write_cache is None),
        agrees=agrees,
    )


def _words(mode: CacheMode, backing: bool) -> str:
    """Such as ``none: o_direct=yes writeback=yes no_flush=no``; a backing file promises no write cache."""
    flags = EXPECTED[mode]
    said = {"o_direct": flags.direct, "writeback": flags.writeback, "no_flush": flags.no_flush}
    if backing:
        del said["writeback"]
    return f"{mode}: " + " ".join(f"{name}={'yes' if on else 'no'}" for name, on in said.items())


def direct_flags(pid: int, file: Path) -> list[bool]:
    """O_DIRECT of every descriptor by which process `pid` holds `file` open; empty where it holds none."""
    wanted = file.stat()
    flags = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            opened = descriptor.stat()
        except FileNotFoundError:
            continue
        if (opened.st_dev, opened.st_ino) == (wanted.st_dev, wanted.st_ino):
            flags.append(_is_direct(Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text()))
    return flags


def _is_direct(fdinfo: str) -> bool:
    fields = dict(line.split(":", 1) for line in fdinfo.splitlines() if ":" in line)
    return bool(int(fields["flags"], 8) & os.O_DIRECT)


def _file_nodes(nodes: Iterable[Mapping[str, Any]]) -> dict[Path, CacheFlags]:
    """Cache flags by file, of the nodes that open files themselves (driver ``file``)."""
    return {
        Path(node["file"]): CacheFlags(node["cache"]["writeback"], node["cache"]["direct"], node["cache"]["no-flush"])
        for node in nodes
        if node["drv"] == "file"
    }


def _device_write_cache(devices: Iterable[Mapping[str, Any]], overlay: Path) -> bool | None:
    """Whether the guest's device on `overlay` has its write cache on; None where there is no such device."""
    for device in devices:
        inserted = device.get("inserted")
        if inserted and Path(inserted["file"]) == overlay:
            return bool(inserted["cache"]["writeback"])
    return None
