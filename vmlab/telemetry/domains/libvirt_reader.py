"""The one way to the host's own libvirt: a connection that is opened read-only, and the few calls that only read.

Imports libvirt late: it is an extra, and neither the console nor `top` needs it where no libvirt runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

SYSTEM = "qemu:///system"
_SOCKETS = ("libvirt/virtqemud-sock-ro", "libvirt/libvirt-sock-ro")
_AGAIN_SECONDS = 10.0

CONNECTION_CALLS = frozenset({"getAllDomainStats", "close", "isAlive"})
"""What is called on a connection; a test holds every call of this package against these two lists."""
DOMAIN_CALLS = frozenset({"name", "UUIDString", "XMLDesc"})
"""What is called on a domain."""


def _libvirt() -> Any:
    import libvirt

    return libvirt


class DomainStats(NamedTuple):
    """libvirt's parameters of one running domain, such as ``block.0.rd.bytes``, and how to read its XML."""

    name: str
    uuid: str
    figures: Mapping[str, Any]
    read_xml: Callable[[], str]


class OnlyReading:
    """Passes on the `calls` of libvirt's `inner` object; any other name is an AttributeError."""

    def __init__(self, inner: Any, calls: frozenset[str]) -> None:
        self._inner = inner
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if name not in self._calls:
            raise AttributeError(f"{name} is no call that only reads")
        return getattr(self._inner, name)


class LibvirtReader:
    """Reads all running domains of the libvirt at `uri`. Each call may hang: give it a thread of its own.

    The connection is opened at the first call, and again some seconds after it was lost.
    """

    def __init__(self, uri: str = SYSTEM, run: Path = Path("/run"), load: Callable[[], Any] | None = None) -> None:
        self._uri = uri
        self._run = run
        self._load = load or _libvirt
        self._opening = threading.Lock()
        self._connection: OnlyReading | None = None
        self._tried_at = -_AGAIN_SECONDS
        self._error: Exception | None = None

    def is_there(self) -> bool:
        """Whether a libvirt of the host listens for readers. It is not woken by that."""
        return self._uri != SYSTEM or any((self._run / socket).exists() for socket in _SOCKETS)

    def statistics(self, *, processes_seen: bool) -> list[DomainStats]:
        """All running domains. CPU times are asked for only where their processes are not seen. Raises OSError."""
        try:
            libvirt = self._load()
        except ImportError as error:
            raise OSError("libvirt-python is not installed, so libvirt's own figures are missing") from error
        which = _flags(libvirt, "STATS_STATE", "STATS_BALLOON", "STATS_BLOCK", "STATS_INTERFACE")
        if not processes_seen:
            which |= _flags(libvirt, "STATS_CPU_TOTAL", "STATS_VCPU")
        only = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE | libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
        try:
            connection = self._connected(libvirt)
            return [self._of(domain, figures) for domain, figures in connection.getAllDomainStats(which, only)]
        except libvirt.libvirtError as error:
            self._drop(libvirt)
            raise OSError(f"libvirt gives no figures: {error.get_error_message()}") from error

    def close(self) -> None:
        """Let go of the connection, which must not hang."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _of(self, domain: Any, figures: Mapping[str, Any]) -> DomainStats:
        only = OnlyReading(domain, DOMAIN_CALLS)
        return DomainStats(only.name(), only.UUIDString(), figures, lambda: str(only.XMLDesc(0)))

    def _connected(self, libvirt: Any) -> OnlyReading:
        with self._opening:
            if self._connection is None:
                if self._error is not None and time.monotonic() - self._tried_at < _AGAIN_SECONDS:
                    raise self._error
                self._tried_at = time.monotonic()
                # libvirt writes errors to stderr unless there is a handler; each is raised as an exception too.
                libvirt.registerErrorHandler(lambda _context, _error: None, None)
                try:
                    self._connection = OnlyReading(libvirt.openReadOnly(self._uri), CONNECTION_CALLS)
                except libvirt.libvirtError as error:
                    self._error = error
                    raise
                self._error = None
            return self._connection

    def _drop(self, libvirt: Any) -> None:
        """Open again next time where the connection is broken."""
        with self._opening:
            try:
                alive = self._connection is not None and self._connection.isAlive() == 1
            except libvirt.libvirtError:
                alive = False
            if not alive:
                self._connection = None


def _flags(libvirt: Any, *names: str) -> int:
    found = 0
    for name in names:
        found |= getattr(libvirt, f"VIR_DOMAIN_{name}")
    return found
