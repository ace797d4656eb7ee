"""Which threads the freezers of cgroups have stopped: each file of theirs is read once a look, however many threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from vmlab.system.mounts import Mount, cgroups_in, mount_of
from vmlab.telemetry.source import KernelFile

ASLEEP, WAITS = b"S", b"D"
"""What a thread is said to be that a freezer of version 2 or 1 has stopped (Linux 6.18), and others are as well."""


class _Freezer(NamedTuple):
    """While `word` is in `file`, threads are frozen that are said to be in one of `states`."""

    file: Path
    word: bytes
    states: bytes


class Freezers:
    """Those in `mounts` of the cgroups that were added, as the kernel lists those of a thread."""

    def __init__(self, mounts: Iterable[Mount]) -> None:
        mounts = list(mounts)
        self._first = mount_of("freezer", [one for one in mounts if one.version == 1])
        self._second = next((one for one in mounts if one.version == 2), None)
        self._of: dict[bytes, list[_Freezer]] = {}
        self._frozen: dict[bytes, bytes] = {}
        self._said: dict[Path, bytes] = {}
        """What the files say in this look."""
        self._files: dict[Path, KernelFile] = {}

    def add(self, cgroups: bytes) -> None:
        """Read the freezers of these `cgroups` too, from this look on."""
        if cgroups not in self._of:
            self._of[cgroups] = list(self._freezers_of(cgroups))

    def look(self) -> bool:
        """Read all of them; whether one is in force."""
        self._frozen.clear()
        self._said.clear()
        return any(map(self.frozen, self._of))

    def frozen(self, cgroups: bytes) -> bytes:
        """The states of threads with these `cgroups` that are frozen in this look; none if no freezer is in force."""
        known = self._frozen.get(cgroups)
        if known is None:
            freezers = self._of.get(cgroups, ())
            known = b"".join([one.states for one in freezers if one.word in self._say(one.file)])
            self._frozen[cgroups] = known
        return known

    def _freezers_of(self, cgroups: bytes) -> Iterator[_Freezer]:
        for controllers, inner in cgroups_in(cgroups):
            # The cgroup at the top cannot be frozen.
            if inner == Path():
                continue
            if self._first is not None and "freezer" in controllers:
                # FROZEN, and FREEZING while one of its threads does not stop.
                yield _Freezer(self._first.root / inner / "freezer.state", b"FR", ASLEEP + WAITS)
            if self._second is not None and not controllers:
                yield _Freezer(self._second.root / inner / "cgroup.events", b"frozen 1", ASLEEP + WAITS)
                # Its events say so when all of its threads stand still, and one that waits for a disk does not.
                for group in (inner, *inner.parents[:-1]):
                    yield _Freezer(self._second.root / group / "cgroup.freeze", b"1", ASLEEP)

    def _say(self, file: Path) -> bytes:
        """What a file says in this look; nothing where it is gone."""
        said = self._said.get(file)
        if said is None:
            try:
                if file not in self._files:
                    self._files[file] = KernelFile(file)
                said = self._files[file].read()
            except OSError:
                self._files.pop(file, None)
                said = b""
            self._said[file] = said
        return said
