"""Huge pages that the host reserves for guests: exactly as many as these need, for as long as any of them is there.

The kernel has one number for all that use pages of a size. It is raised by the lab's own and lowered by as many again.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from vmlab.hypervisor.contract import DomainSpec
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.settings_keeper import give_back_pages
from vmlab.model.errors import RefusedError
from vmlab.model.units import format_bytes
from vmlab.telemetry.setting_files import pool_of, read_setting, write_setting
from vmlab.telemetry.source import THE_HOST, Roots


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
        entry = JournalEntry("setting", file, was=str(before), ours=str(before + count))
        self._journal.add(entry)
        write_setting(self._roots, file, entry.ours)
        got = int(read_setting(self._roots, file)) - before
        if got < count:
            write_setting(self._roots, file, entry.was)
            self._journal.strike(entry)
            pages = f"{count} huge pages of {format_bytes(size)}"
            raise RefusedError(f"the host cannot reserve {pages}: it has memory in one piece for {max(got, 0)}")
        self._held.append(entry)

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
