"""What a lab has in the host's own libvirt, by its mark alone, and the removal of that.

Nothing is taken for the lab's by its name. What somebody has defined, so that it outlives its end, is not the lab's
either, whatever mark was copied into it: a lab defines nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import libvirt
from lxml import etree

from vmlab.hypervisor.hosts_libvirt.hosts_places import remove_pid_file
from vmlab.hypervisor.libvirt.domain_xml import marked_for
from vmlab.model.errors import HypervisorError
from vmlab.model.names import LAB_NAMESPACE

URI = "qemu:///system"
UNDO_SECONDS = 90.0
_T = TypeVar("_T")
_GONE = (
    libvirt.VIR_ERR_NO_DOMAIN,
    libvirt.VIR_ERR_NO_NETWORK,
    libvirt.VIR_ERR_OPERATION_INVALID,
    libvirt.VIR_ERR_NO_DOMAIN_METADATA,
)


def is_marked(domain: Any, lab: str) -> bool:
    """Whether a domain carries the mark of `lab`; blocks. Raises libvirtError."""
    try:
        # libvirt gives the one element of the lab's namespace, stripped of its namespace.
        mark = etree.fromstring(domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, LAB_NAMESPACE))
        return str(mark.get("id")) == lab
    except libvirt.libvirtError as error:
        if error.get_error_code() in _GONE:
            return False
        raise


def undo(lab: str, seconds: float = UNDO_SECONDS) -> list[str]:
    """End the domains and remove the networks of `lab`; what was removed. Blocks, `seconds` at most.

    Raises HypervisorError where libvirt does not answer or refuses.
    """
    try:
        return _within(seconds, lambda: list(_undone(lab)))
    except libvirt.libvirtError as error:
        raise HypervisorError(f"{URI}: {error.get_error_message()}") from error


def _within(seconds: float, work: Callable[[], _T]) -> _T:
    """What `work` returns or raises, in a thread that is left behind after `seconds`."""
    found: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=run, name="undo", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not found:
        raise HypervisorError(f"{URI} did not answer within {seconds:.0f} s")
    return found[0]


def _undone(lab: str) -> Iterator[str]:
    libvirt.registerErrorHandler(lambda *_: None, None)
    connection = libvirt.open(URI)
    try:
        for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_TRANSIENT):
            if is_marked(domain, lab):
                with _may_be_gone():
                    domain.destroy()
                    yield f"domain {domain.name()}"
        for network in connection.listAllNetworks(libvirt.VIR_CONNECT_LIST_NETWORKS_TRANSIENT):
            with _may_be_gone():
                if marked_for(network.XMLDesc(0)) == lab:
                    network.destroy()
                    remove_pid_file(network.name())
                    yield f"network {network.name()}"
    finally:
        connection.close()


@contextlib.contextmanager
def _may_be_gone() -> Iterator[None]:
    """A domain ends with the connection of a client that was killed, maybe at this moment."""
    try:
        yield
    except libvirt.libvirtError as error:
        if error.get_error_code() not in _GONE:
            raise
