"""Changes settings of the host for a cell and restores them; the journal has each old value beforehand."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.model.errors import HypervisorError, RefusedError, StoreError
from vmlab.model.quantities import format_bytes
from vmlab.model.scenarios.host_settings import HostSettings
from vmlab.telemetry.setting_files import (
    KSM_RUN,
    InForce,
    boot_of,
    files_of,
    in_force,
    is_known,
    is_pool,
    path_of,
    pool_of,
    read_setting,
    setting_before,
    state_of,
    still_merged,
    value_in,
    write_setting,
    write_state,
)
from vmlab.telemetry.source import THE_HOST, Roots

Tell = Callable[[str], object]
"""Takes a line for people."""


@dataclass(eq=False)
class SettingsKeeper:
    """Sets the host's settings as cells ask for them; `folder` is where the guests' files are.

    `tell` takes a line for each change, `warn` one for each setting that differs from its value before the run.
    """

    _journal: Journal
    folder: Path
    _tell: Tell
    _warn: Tell
    roots: Roots = THE_HOST
    _held: dict[str, JournalEntry] = field(default_factory=dict, init=False)
    _warned: set[str] = field(default_factory=set, init=False)

    def apply(self, wanted: HostSettings) -> None:
        """Change the host to `wanted`, and all other settings to their values before the run.

        Raises HypervisorError where the host refuses a value, StoreError where the journal cannot be written.
        """
        try:
            files = files_of(wanted, self.folder, self.roots)
            for name in [name for name in reversed(self._held) if self._must_go(name, files)]:
                self._let_go(name)
            for name, value in files.items():
                self._set(name, value)
        except (OSError, ValueError) as error:
            raise HypervisorError(f"the host's settings cannot be changed: {error}") from error

    def _must_go(self, name: str, files: Mapping[str, str]) -> bool:
        """Whether a setting is not asked for any more, or is set by the kernel where another one is about to change."""
        if name not in files:
            return True
        before = setting_before(name)
        if before is None:
            return False
        return before in self._held if before not in files else files[before] != read_setting(self.roots, before)

    def put_back(self) -> None:
        """Restore everything to its value before the run; what others have changed meanwhile stays, with a warning.

        Raises HypervisorError, after everything else was put back, where something cannot be.
        """
        troubles = []
        for name in list(reversed(self._held)):
            try:
                self._let_go(name)
            except OSError as error:
                troubles.append(f"{name}: {error.strerror or error}")
        if troubles:
            raise HypervisorError(f"settings of the host could not be put back: {'; '.join(troubles)}")

    def in_force(self) -> InForce:
        """The host's present settings."""
        return in_force(self.folder, self.roots)

    def _set(self, name: str, value: str) -> None:
        current = read_setting(self.roots, name)
        before = self._held.get(name)
        if before is not None and (value == value_in(before.was) or current != before.ours):
            self._let_go(name)
            current, before = read_setting(self.roots, name), None
        if current == value:
            return
        entry = JournalEntry("setting", name, was=before.was if before else state_of(self.roots, name), ours=value)
        self._journal.add(entry)
        try:
            write_setting(self.roots, name, value)
        except OSError as error:
            why = error.strerror or error
            if read_setting(self.roots, name) == current:
                self._journal.strike(entry)
            raise HypervisorError(f"{path_of(self.roots, name)} does not take {value}: {why}") from error
        self._held[name] = entry
        if before is not None:
            self._journal.strike(before)
        taken = read_setting(self.roots, name)
        if taken != value:
            write_state(self.roots, name, entry.was)
            self._journal.strike(self._held.pop(name))
            raise HypervisorError(f"{path_of(self.roots, name)} took {taken} instead of {value}")
        self._tell(f"{path_of(self.roots, name)} is {value} now, {entry.was} before the run")

    def _let_go(self, name: str) -> None:
        entry = self._held[name]
        lines = put_back(entry, {entry.ours}, self.roots, self._journal)
        self._journal.strike(self._held.pop(name))
        if name not in self._warned:
            for line in lines:
                self._warned.add(name)
                self._warn(line)


def put_back(entry: JournalEntry, ours: Collection[str], roots: Roots, journal: Journal) -> list[str]:
    """Restore a setting that still has one of the values `ours`; returns lines for people on what differs.

    An entry that names no setting of the host is passed over. While several files are written, the journal has the old
    value as the lab's own. Raises OSError.
    """
    if not is_known(entry.what):
        return []
    path = path_of(roots, entry.what)
    try:
        current = state_of(roots, entry.what)
    except FileNotFoundError:
        return [f"{path} is gone: it could not be put back to {entry.was}"]
    if is_pool(entry.what):
        return give_back_pages(entry, roots)
    if current != entry.was:
        if value_in(current) not in ours:
            return [f"{path} is {current} by somebody else's hand and stays so; it was {entry.was} before the run"]
        halfway = replace(entry, ours=value_in(entry.was))
        # A full disk keeps no setting of the host from going back.
        with suppress(StoreError):
            journal.add(halfway)
        write_state(roots, entry.what, entry.was)
        with suppress(StoreError):
            journal.strike(halfway)
    return _left_merged(entry, roots)


def give_back_pages(entry: JournalEntry, roots: Roots) -> list[str]:
    """Give back the huge pages that a run has reserved, and no others: who else reserves some changes the same number.

    Until the journal has how many the run got, none of those that were reserved before are given back: a run that is
    killed while the kernel reserves has got a part of them. Of an earlier boot there are none. Returns a line for
    people where fewer are reserved than the run's. Raises OSError.
    """
    if not (entry.was.isdecimal() and entry.ours.isdecimal() and int(entry.was) < int(entry.ours)):
        return []
    if entry.boot and entry.boot != boot_of(roots):
        return []
    left = int(read_setting(roots, entry.what))
    asked = int(entry.ours) - int(entry.was)
    count = int(entry.got) if entry.got.isdecimal() else min(asked, max(left - int(entry.was), 0))
    if left < count:
        return [f"{path_of(roots, entry.what)} is {left} by somebody else's hand and stays so; {count} were the run's"]
    if count:
        write_setting(roots, entry.what, str(left - count))
    return []


def is_back(entry: JournalEntry, roots: Roots) -> bool:
    """Whether a setting of the host has the value that it had before the run."""
    try:
        return is_known(entry.what) and state_of(roots, entry.what) == entry.was
    except OSError:
        return False


def _left_merged(entry: JournalEntry, roots: Roots) -> list[str]:
    """KSM that is switched off keeps merged pages merged, those of other programs too."""
    merged = still_merged(roots) if entry.what == KSM_RUN and entry.was == "0" and entry.ours == "1" else 0
    if not merged:
        return []
    return [
        f"KSM is off again, as it was; it still counts {merged} pages as merged, which stay so until their programs"
        f" end or somebody writes 2 to {path_of(roots, KSM_RUN)}, which unmerges everybody's"
    ]


class HugePages:
    """Those of one lab; the `journal` has each change beforehand. All methods block, and any thread may call them."""

    def __init__(self, journal: Journal, roots: Roots = THE_HOST) -> None:
        self._journal = journal
        self._roots = roots
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._held: list[JournalEntry] = []
        self._users: set[str] = set()

    def reserve(self, specs: Sequence[DomainSpec]) -> None:
        """Reserve what these guests need, which are about to start.

        Raises RefusedError where the host has not so much memory in one piece, StoreError and OSError.
        """
        needed: Counter[int] = Counter()
        users = set()
        for spec in specs:
            size = spec.resources.page_bytes
            if size is not None:
                needed[size] += spec.resources.memory_bytes // size
                users.add(spec.name)
        with self._lock:
            # Guests of these names that never started have nobody who gives their pages back.
            self._without(users)
            before = len(self._held)
            try:
                for size, count in sorted(needed.items()):
                    self._reserve(size, count)
            except RefusedError:
                self._give_back(before)
                raise
            self._users |= users

    def release(self, name: str) -> None:
        """A guest has ended; with the last one all pages are given back. Raises StoreError and OSError."""
        with self._lock:
            self._without({name})

    def lines(self) -> list[str]:
        """Lines for people since the last call, on numbers that somebody else has changed."""
        with self._lock:
            lines, self._lines = self._lines, []
        return lines

    def _reserve(self, size: int, count: int) -> None:
        file = pool_of(size)
        before = int(read_setting(self._roots, file))
        entry = JournalEntry("setting", file, str(before), str(before + count), boot_of(self._roots))
        self._journal.add(entry)
        write_setting(self._roots, file, entry.ours)
        got = max(int(read_setting(self._roots, file)) - before, 0)
        known = replace(entry, got=str(min(got, count)))
        self._journal.replace(entry, known)
        self._held.append(known)
        if got < count:
            pages = f"{count} huge pages of {format_bytes(size)}"
            raise RefusedError(f"the host cannot reserve {pages}: it has memory in one piece for {got}")

    def _without(self, users: set[str]) -> None:
        self._users -= users
        if not self._users:
            self._give_back()

    def _give_back(self, left: int = 0) -> None:
        """Give back all but the first ones, `left` in number."""
        while len(self._held) > left:
            entry = self._held[-1]
            self._lines += give_back_pages(entry, self._roots)
            self._journal.strike(self._held.pop())
