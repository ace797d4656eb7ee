"""Readers of a store by host: one for a run of one host, one for each host of a run of a fleet."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from vmlab.store.reader import RunReader


class HostReaders:
    """Gives the reader that has the samples of a host, by its name, and "" where there is no fleet; use ``with``."""

    def __init__(self, reader: RunReader) -> None:
        self._whole = reader
        self._open: dict[str, RunReader] = {}

    def of(self, host: str) -> RunReader:
        """The reader of one host. It is closed with the others; that of a run of one host stays open."""
        if not host:
            return self._whole
        if host not in self._open:
            self._open[host] = self._whole.of_host(host)
        return self._open[host]

    def all(self) -> list[RunReader]:
        """A reader for each host, which together have every sample."""
        return [self.of(host) for host in self._whole.hosts() or ("",)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for reader in self._open.values():
            reader.close()
