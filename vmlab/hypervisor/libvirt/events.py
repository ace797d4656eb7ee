"""libvirt's event loop, run by a thread of its own, and its events on domains.

Without it a connection gets no events from QEMU. libvirt keeps one loop for a process and it must exist before the
first connection is opened, so it is started once and never stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
from collections.abc import Callable
from typing import Any

import libvirt

_LOG = logging.getLogger(__name__)
_ENDED_BY = {
    libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN: "the guest shut down or restarted by itself",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED: "the guest crashed",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_DESTROYED: "libvirt was asked to end it",
}
_DISK_FULL = "the host's disk is full"

Receiver = Callable[[str, str], None]
"""Takes a domain's UUID, because names are used again from cell to cell, and the reason."""


@functools.cache
def start_event_loop() -> threading.Thread:
    """Register libvirt's default loop and pump it in a daemon thread; later calls return the same thread."""
    libvirt.registerErrorHandler(_keep_off_stderr, None)
    libvirt.virEventRegisterDefaultImpl()
    pump = threading.Thread(target=_pump, name="libvirt-events", daemon=True)
    pump.start()
    return pump


def _pump() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


def _keep_off_stderr(_context: Any, error: tuple[Any, ...]) -> None:
    """libvirt writes errors to stderr unless there is a handler; every one is raised as an exception too."""
    _LOG.debug("libvirt: %s", error[2])


class DomainEvents:
    """Passes on what ends a domain, in the thread of `loop`: its own end, or an error of its disk."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_stopped: Receiver, on_disk_error: Receiver) -> None:
        self._loop = loop
        self._on_stopped = on_stopped
        self._on_disk_error = on_disk_error

    def connect(self, uri: str) -> Any:
        """A connection to libvirt, whose domains are listened to until it is closed; blocks. Raises libvirtError."""
        start_event_loop()
        connection = libvirt.open(uri)
        kinds = (
            (libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._lifecycle),
            (libvirt.VIR_DOMAIN_EVENT_ID_IO_ERROR_REASON, self._disk_error),
        )
        for kind, called in kinds:
            connection.domainEventRegisterAny(None, kind, called, None)
        # Has libxml2 set up its types of values: if several starts use them first at the same time, some fail.
        with contextlib.suppress(libvirt.libvirtError):
            connection.createXML("<domain/>", libvirt.VIR_DOMAIN_START_VALIDATE)
        return connection

    def _lifecycle(self, _connection: Any, domain: Any, event: int, detail: int, _opaque: Any) -> None:
        if event == libvirt.VIR_DOMAIN_EVENT_STOPPED:
            self._pass_on(self._on_stopped, domain, _ENDED_BY.get(detail, ""))
        elif event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED and detail == libvirt.VIR_DOMAIN_EVENT_SUSPENDED_IOERROR:
            # The reason of the error is in the event below, which comes first.
            self._pass_on(self._on_disk_error, domain, "an I/O error")

    def _disk_error(
        self, _connection: Any, domain: Any, path: str, _device: str, action: int, reason: str, _opaque: Any
    ) -> None:
        if action == libvirt.VIR_DOMAIN_EVENT_IO_ERROR_PAUSE:
            why = _DISK_FULL if reason == "enospc" else reason or "an I/O error"
            self._pass_on(self._on_disk_error, domain, f"{why} ({path})")

    def _pass_on(self, receiver: Receiver, domain: Any, reason: str) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(receiver, domain.UUIDString(), reason)
