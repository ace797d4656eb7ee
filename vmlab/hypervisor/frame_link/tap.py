"""A TAP at a lab's bridge, made by a process that enters the lab's network namespace. It goes with that process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import time

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from vmlab.hypervisor.frame_link.frames import SILENT_SECONDS
from vmlab.hypervisor.isolation.namespace import network_namespace
from vmlab.hypervisor.network.bridge import link_index
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.model.names import BRIDGE, LINK_TAP
from vmlab.system import kernel

_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI, _IFF_TUN_EXCL = 0x0002, 0x1000, 0x8000
"""linux/if_tun.h"""
_BUSY_SECONDS = SILENT_SECONDS + 5.0
"""The link of an earlier cell, whose line was cut, holds its TAP until it has noticed that."""


def enter_lab(runner: int) -> None:
    """Move this thread into the network namespace of a lab's runner; to be called before there are others.

    Raises HypervisorError where that has ended, or has no network of its own.
    """
    try:
        namespace = os.open(f"/proc/{runner}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise HypervisorError(f"the run's runner has gone: {error.strerror}") from error
    try:
        if os.fstat(namespace).st_ino == network_namespace():
            raise HypervisorError("the run's runner is in the host's own network")
        kernel.enter(namespace, kernel.CLONE_NEWNET)
    finally:
        os.close(namespace)


def open_tap() -> int:
    """A TAP as a port of the lab's bridge; the descriptor that frames are read from and written to, which never wait.

    Raises RefusedError where the link has one already, HypervisorError where there is no bridge or no TAP.
    """
    try:
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _named(tap)
            with IPRoute() as route:
                index = link_index(route, LINK_TAP)
                route.link("set", index=index, master=link_index(route, BRIDGE))
                route.link("set", index=index, state="up")
        except BaseException:
            os.close(tap)
            raise
    except (NetlinkError, OSError) as error:
        raise HypervisorError(f"no TAP for the link: {error}") from error
    return tap


def _named(tap: int) -> None:
    asked = struct.pack("16sH", LINK_TAP.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_TUN_EXCL)
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            fcntl.ioctl(tap, _TUNSETIFF, asked)
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            if time.monotonic() > end:
                raise RefusedError("the lab's link has its end here already") from error
        with contextlib.suppress(InterruptedError):
            time.sleep(0.1)
