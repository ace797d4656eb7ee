"""The cache mode of running guests' disks switched between ``writeback`` and ``none``: all block nodes of a QEMU are
opened again past the host's page cache or through it (QMP `blockdev-reopen`).

QEMU resets every option that is left out of a reopening, without a word: without ``auto-read-only`` it opens the shared
image for writing. So each node is given the whole definition that it was made with, and only ``cache.direct`` differs.
QEMU's own command line has the definitions of the nodes that it began with. For a disk that was plugged in later,
libvirt tells how it would define it, and the node's running name takes the place of the one in there.

QEMU flushes a disk before it opens its files with other flags, and its guest stands still meanwhile: with 41 MB of
dirty pages on a disk of 150 requests a second that took 64 s. So the host writes the dirty pages first, while the guest
runs, until one more time takes next to none.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.hypervisor.disks.cache_proof import OPENING, open_flags
from vmlab.hypervisor.levers.guest_lever import Monitor
from vmlab.hypervisor.libvirt.calls import call
from vmlab.model.errors import DeadlineExceeded, HypervisorError, VmlabError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import Drained
from vmlab.system.descriptors import closed_after
from vmlab.system.kernel import dirty_bytes

Definition = dict[str, Any]
"""QMP's ``BlockdevOptions`` of one node."""
_REFERENCES = ("file", "backing")
_OPTION = ("-blockdev", "--blockdev")


class BlockNodes:
    """All block nodes of a QEMU, whose `process` is its folder below a /proc. `plugged` gives definitions of nodes that
    came later.
    """

    def __init__(self, process: Path, monitor: Monitor, plugged: Callable[[], Sequence[Definition]] = tuple) -> None:
        self._process = process
        self._monitor = monitor
        running = self._running()
        self._definitions = [one for one in started_with(process) if one["node-name"] in running]
        unknown = running.keys() - {one["node-name"] for one in self._definitions}
        if unknown:
            found = list(_named_as_running(plugged(), running.values()))
            self._definitions += [one for one in found if one["node-name"] in unknown]
            unknown -= {one["node-name"] for one in found}
        if unknown:
            names = ", ".join(sorted(unknown))
            raise HypervisorError(f"how QEMU's block node {names} was opened is not known")

    @property
    def files(self) -> list[Path]:
        """The files and block devices that the nodes have open."""
        return [Path(one["filename"]) for one in self._definitions if one["driver"] in OPENING]

    def reopen(self, *, direct: bool) -> float:
        """Open all nodes again with or without O_DIRECT, in one command: QEMU changes all of them or none; blocks.

        Returns the seconds until QEMU had done it, in which its guest may have stood still. Raises HypervisorError when
        it refuses, and when anything else about a node is not as it was.
        """
        options = copy.deepcopy(self._definitions)
        for one in options:
            one["cache"] = {**one.get("cache", {}), "direct": direct}
        before = self._state()
        began = time.monotonic()
        self._monitor("blockdev-reopen", {"options": options})
        seconds = time.monotonic() - began
        after = self._state()
        other = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if other:
            raise HypervisorError(f"QEMU changed more than the cache mode of {', '.join(other)}")
        return seconds

    def _running(self) -> dict[str, Mapping[str, Any]]:
        return {node["node-name"]: node for node in self._monitor("query-named-block-nodes")}

    def _state(self) -> dict[str, tuple[Any, ...]]:
        """What a reopening must leave alone: of each node what QEMU says, of each file whether it is open to write."""
        found: dict[str, tuple[Any, ...]] = {}
        for name, node in self._running().items():
            cache = node["cache"]["writeback"], node["cache"]["no-flush"]
            found[name] = (node["drv"], node["ro"], node["file"], cache, node.get("detect_zeroes"))
        for file in self.files:
            found[str(file)] = tuple(sorted(flags & os.O_ACCMODE for flags in open_flags(self._process, file)))
        return found


def started_with(process: Path) -> list[Definition]:
    """The definitions on the command line of a process, by its folder below a /proc. Raises OSError when it is gone."""
    words = (process / "cmdline").read_bytes().split(b"\0")
    return definitions_among([os.fsdecode(word) for word in words])


def definitions_in(command: str) -> list[Definition]:
    """The definitions in a command line as a shell would read it, such as libvirt's ``qemu-argv``."""
    return definitions_among(shlex.split(command))


def definitions_among(words: Sequence[str]) -> list[Definition]:
    """The definitions behind each ``-blockdev`` that are JSON, as libvirt writes them."""
    texts = (word for option, word in itertools.pairwise(words) if option in _OPTION)
    found = (json.loads(text) for text in texts if text.startswith("{"))
    return [one for one in found if "node-name" in one]


def _named_as_running(definitions: Iterable[Definition], running: Iterable[Mapping[str, Any]]) -> Iterator[Definition]:
    """The definitions whose nodes run, under the names that these have: the same driver on the same file."""
    given = {one["node-name"]: one for one in definitions}
    by_place = {(node["drv"], node["file"]): str(node["node-name"]) for node in running}
    names = {name: by_place.get((one["driver"], _file_of(one, given))) for name, one in given.items()}
    for name, one in given.items():
        if (own := names[name]) is not None:
            below = {key: names[one[key]] for key in _REFERENCES if one.get(key) in names}
            yield {**one, **below, "node-name": own}


def _file_of(definition: Definition, given: Mapping[str, Definition]) -> str | None:
    """The file of a node, its own or that of the node which it has as its file."""
    below = given.get(definition.get("file", ""), definition)
    return below.get("filename")


QUIET_SECONDS = 0.1
"""Dirty pages that are written in so little time are few enough."""
_SYNC = 60.0
_REOPEN = 60.0


class DrainTooLong(DeadlineExceeded):
    """The dirty pages of the disks were not written in time; no disk was switched."""


class SwitchBrokenOff(HypervisorError):
    """A disk could not be switched, so that guests may have worked in another cache mode for a moment."""


@dataclass(frozen=True, slots=True)
class Written:
    """One time that the dirty pages of files were written: how long it took, and how many bytes there were before."""

    seconds: float
    dirty_bytes: int | None


def write_dirty(files: Iterable[Path]) -> Written:
    """Have the host write the dirty pages of `files`; blocks. Raises OSError."""
    dirty: list[int | None] = []
    began = time.monotonic()
    for file in files:
        with closed_after(os.open(file, os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
            dirty.append(dirty_bytes(descriptor))
            os.fdatasync(descriptor)
    known = [one for one in dirty if one is not None]
    return Written(time.monotonic() - began, sum(known) if len(known) == len(dirty) else None)


Write = Callable[[Iterable[Path]], Written]


async def drain(files: Iterable[Path], deadline: float, write: Write = write_dirty) -> Drained:
    """Have the host write the dirty pages of `files` until few are left. A cancellation does no harm.

    Raises DrainTooLong when that takes longer than `deadline` seconds, OSError where a file cannot be written.
    """
    asked = sorted(set(files))
    began = time.monotonic()
    written: int | None = 0
    try:
        async with asyncio.timeout(deadline):
            while True:
                once = await call("writing the disks' dirty pages", deadline, write, asked)
                written = None if written is None or once.dirty_bytes is None else written + once.dirty_bytes
                if once.seconds <= QUIET_SECONDS:
                    return Drained(time.monotonic() - began, written)
    except (TimeoutError, DeadlineExceeded) as late:
        amount = "" if not written else f", after {format_bytes(written)}"
        raise DrainTooLong(f"the disks have still dirty pages after {deadline:g} s of writing{amount}") from late


async def switch(guests: Mapping[str, BlockNodes], *, direct: bool, write: Write = write_dirty) -> dict[str, float]:
    """Open all disks of `guests`, by their names, with or without O_DIRECT, one guest after the other.

    Returns the seconds by name for which each may have stood still; few when `drain` was called before. Raises
    SwitchBrokenOff when a disk cannot be switched; the message says whether all disks are as they were. It must not be
    cancelled.
    """
    pauses: dict[str, float] = {}
    tried: dict[str, BlockNodes] = {}
    try:
        for name, nodes in guests.items():
            # Since the last time, the guest has gone on writing.
            await call(f"{name}: writing its dirty pages", _SYNC, write, nodes.files)
            tried[name] = nodes
            pauses[name] = await _reopened(name, nodes, direct)
    except (VmlabError, OSError) as error:
        left = await _put_back(tried, not direct)
        after = f"{', '.join(left)} could not be put back" if left else "all disks are as they were"
        raise SwitchBrokenOff(f"{error}; {after}") from error
    return pauses


async def _reopened(name: str, nodes: BlockNodes, direct: bool) -> float:
    return await call(f"{name}: switching its cache mode", _REOPEN, lambda: nodes.reopen(direct=direct))


async def _put_back(guests: Mapping[str, BlockNodes], direct: bool) -> list[str]:
    """Open the disks of `guests` as they were; the names of those where that failed."""
    left = []
    for name, nodes in guests.items():
        try:
            await _reopened(name, nodes, direct)
        except (VmlabError, OSError):
            left.append(name)
    return left
