"""libvirt's event loop, pumped for ever by a thread of its own.

Without it a connection never hears from QEMU. libvirt keeps one loop for a process and it must exist before the
first connection is opened, so it is started once and never stopped.
"""

from __future__ import annotations

import functools
import logging
import threading
from typing import Any

import libvirt

_LOG = logging.getLogger(__name__)


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
    """libvirt writes errors to stderr unless someone takes them; every one is raised as an exception too."""
    _LOG.debug("libvirt: %s", error[2])
