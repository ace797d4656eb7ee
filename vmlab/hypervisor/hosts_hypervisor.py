"""The host's own libvirtd, where the lab's guests are beside those of others and seen by its tools.

Their QEMUs are outside of the lab's PID namespace: no descriptor stands for such a process, and the lab's init does not
reap it. They are watched by libvirt's events, and by looks at the host's /proc.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import libvirt
from lxml import etree

from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.isolation.init import Change
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.lab_network import require_dhcp
from vmlab.hypervisor.libvirt.calls import ASK, OPEN, call
from vmlab.hypervisor.libvirt.domain_watch import DomainEvents, DomainWatch, _Guest
from vmlab.hypervisor.libvirt.domain_xml import OnHost, domain_name
from vmlab.hypervisor.libvirt.libvirt_root import hosts_places, require_daemon
from vmlab.hypervisor.libvirt.marked import UNDO_SECONDS, is_marked, make_network, name_of, serve
from vmlab.hypervisor.libvirt_hypervisor import LibvirtHypervisor
from vmlab.hypervisor.protocols import LabNetwork
from vmlab.model.errors import HypervisorError, HypervisorUnavailable
from vmlab.model.names import HELPER_CHANNEL
from vmlab.model.results import NetworkCounts
from vmlab.system.processes import state_of
from vmlab.telemetry.domains.libvirt_reader import SYSTEM

_CONFINING = ("apparmor", "selinux")
_ROTATED = 3
"""How many older parts of a console's log virtlogd keeps."""


class _OfOthers(HypervisorError):
    """A domain that does not carry the lab's mark."""


class HostsHypervisor(LibvirtHypervisor):
    """`protocols.Hypervisor` by ``qemu:///system``; to be used in `namespace.run_isolated` with the host's network."""

    _start_flags = LibvirtHypervisor._start_flags | libvirt.VIR_DOMAIN_START_AUTODESTROY
    _seconds_to_clear = LibvirtHypervisor._seconds_to_clear + UNDO_SECONDS

    def __init__(
        self,
        disks: Path,
        lab: str,
        on_notice: Callable[[str], None] | None = None,
        *,
        kernel: Path | None = None,
        journal: Journal | None = None,
    ) -> None:
        places = hosts_places()
        watch = HostsWatch(places, self._console_of)
        super().__init__(places, disks, lab, on_notice, watch, kind=SYSTEM, kernel=kernel, journal=journal)
        self.watch: HostsWatch = watch
        self._network: LabNetwork | None = None
        self._on_host: OnHost = OnHost(name_of(lab))
        self._domains: dict[str, Any] = {}
        self._helpers: dict[str, Path] = {}
        self._served: dict[str, str] = {}
        self._begun: set[str] = set()

    @property
    def network(self) -> LabNetwork:
        """libvirt's isolated network of this lab, whose bridge is on the host."""
        if self._network is None:
            raise HypervisorError("the lab has no network yet")
        return self._network

    async def open(self) -> None:
        """Connect and have libvirt make the lab's network. Raises HypervisorUnavailable."""
        try:
            require_daemon()
            self._connection = await call("opening the host's libvirt", OPEN, self._opened, self.watch.begin())
            loop = asyncio.get_running_loop()
            self._connection.registerCloseCallback(self._closed, loop)
            self._network = await call("making the lab's network", OPEN, make_network, self._connection, self._lab)
        except HypervisorUnavailable:
            raise
        except (HypervisorError, OSError) as error:
            raise HypervisorUnavailable(f"{SYSTEM}: {error}", remedy="vmlab doctor") from error

    def _opened(self, events: DomainEvents) -> Any:
        self.journal.add(JournalEntry("libvirt", self._lab))
        connection = events.connect(SYSTEM)
        models = {
            one.text or "" for one in etree.fromstring(connection.getCapabilities()).iterfind(".//secmodel/model")
        }
        self._on_host = OnHost(name_of(self._lab), tuple(model for model in _CONFINING if model in models))
        return connection

    def _closed(self, _connection: Any, _reason: int, loop: asyncio.AbstractEventLoop) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self.watch.lose_all, "the connection with the host's libvirt was lost")

    async def network_counts(self, specs: list[DomainSpec]) -> NetworkCounts:
        """Never asked: networks that are counted are refused by the plan."""
        raise HypervisorError(f"{SYSTEM} has no tunnels and limits to count")

    def helper_socket(self, name: str) -> Path | None:
        """Where libvirt has put the channel of the guest's helper."""
        return self._helpers.get(name)

    async def _serve(self, addresses: Mapping[str, str]) -> None:
        fresh = {mac: address for mac, address in addresses.items() if self._served.get(mac) != address}
        if fresh:
            require_dhcp()
            await call("giving guests their addresses", OPEN, self._serve_now, fresh)

    def _serve_now(self, fresh: Mapping[str, str]) -> None:
        network = self._connection.networkLookupByName(name_of(self._lab))
        for mac, address in fresh.items():
            serve(network, mac, address)
            self._served[mac] = address

    def _about_to_start(self, name: str) -> None:
        self._begun.add(name)
        self.journal.add(JournalEntry("log", domain_name(self._lab, name)))
        for file in self._rotated(name):
            self.journal.add(JournalEntry("file", str(file)))

    async def _started(self, spec: DomainSpec, domain: Any) -> None:
        self._domains[spec.name] = domain
        text = await call(f"{spec.name}: its description", ASK, domain.XMLDesc, 0)
        path = etree.fromstring(text).xpath(
            "string(devices/channel[target/@name=$name]/source/@path)", name=HELPER_CHANNEL
        )
        if path:
            self._helpers[spec.name] = Path(str(path))

    def _all_stats(self, which: int, flags: int) -> list[tuple[Any, dict[str, Any]]]:
        domains = list(self._domains.values())
        found: list[tuple[Any, dict[str, Any]]] = []
        if domains:
            found = self._connection.domainListGetStats(domains, which, flags)
        return found

    def _lookup(self, name: str) -> Any:
        """The domain of this name, where it carries the lab's mark: others may have one of the same name."""
        domain = super()._lookup(name)
        if not is_marked(domain, self._lab):
            raise _OfOthers(f"{name}: the domain {domain.name()} is not this lab's")
        return domain

    def _stop(self, name: str) -> None:
        self._domains.pop(name, None)
        self._helpers.pop(name, None)
        with contextlib.suppress(_OfOthers):
            super()._stop(name)

    def _forget(self, name: str) -> None:
        if name not in self._begun:
            # Somebody else's domain may have that name, and its log.
            return
        super()._forget(name)
        self.journal.strike(JournalEntry("log", domain_name(self._lab, name)))
        for file in self._rotated(name):
            self._remove(file)

    def _rotated(self, name: str) -> list[Path]:
        console = self._console_of(name)
        return [console.with_name(f"{console.name}.{part}") for part in range(_ROTATED)]


EVERY = 0.5
"""Seconds between two looks, and so how far off the length of a stop may be."""
_STOPPED = ("T", "t")


class HostsWatch(DomainWatch):
    """As `DomainWatch`, for guests of the host's own libvirt."""

    _looking: asyncio.Task[None] | None = None
    _failure = ""

    def begin(self) -> DomainEvents:
        """Begin to look; the listener to libvirt, to be registered with a connection."""
        self._looking = asyncio.ensure_future(self._look_on())
        self._looking.add_done_callback(self._looked)
        return super().begin()

    def end(self) -> None:
        """Stop watching all guests."""
        if self._looking is not None:
            self._looking.cancel()
        super().end()

    def lose_all(self, cause: str) -> None:
        """Every guest is lost, as nothing more is heard of any."""
        for name in self._guests:
            self._losses.report(name, cause)

    def pids(self, names: Collection[str]) -> dict[str, int]:
        """None: the numbers of the host's processes mean others in the lab's PID namespace."""
        return {}

    def pids_outside(self, names: Collection[str]) -> dict[str, int]:
        """The process of each of these guests that is watched, as the host numbers it."""
        return super().pids(names)

    def host_pids(self) -> list[int]:
        """The processes of all guests that are watched, as the host numbers them; for any thread."""
        return [guest.pid for guest in tuple(self._guests.values())]

    async def _look_on(self) -> None:
        while True:
            for name, guest in list(self._guests.items()):
                self._look(name, guest)
            await asyncio.sleep(EVERY)

    def _looked(self, looking: asyncio.Task[None]) -> None:
        if not looking.cancelled():
            self._failure = f"the watch of its QEMU failed: {looking.exception()!r}"
            self.lose_all(self._failure)

    def _look(self, name: str, guest: _Guest) -> None:
        state = self._state(guest.pid)
        if state is None:
            self._find_cause(name)
        else:
            guest.stand(time.monotonic(), still=state in _STOPPED)

    def _state(self, pid: int) -> str | None:
        """As proc(5) has it; None for a process that has ended."""
        state = state_of(pid, self._places.proc)
        return None if state == "Z" else state

    def _attend(self, name: str, guest: _Guest) -> bool:
        if self._failure:
            self._losses.report(name, self._failure)
        return self._state(guest.pid) is not None

    def _on_child(self, change: Change) -> None:
        """A child of the lab's init is no guest here."""

    def _is_of_libvirt(self, words: str) -> bool:
        return any(f"{daemon})" in words for daemon in ("libvirtd", "virtqemud"))
