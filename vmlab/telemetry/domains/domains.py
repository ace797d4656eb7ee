"""The host's own guests as a group of the recorder: figures of each, and who they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vmlab.model.domain import UNKNOWN, Domain
from vmlab.model.sample import DOMAIN_READ_LENGTH
from vmlab.telemetry.domains.domain_rates import (
    METRICS,
    OF_DISK,
    OF_PROCESS,
    Values,
    disk_targets,
    is_passed_over,
    libvirt_rates,
    process_rates,
    unseen_process_rates,
)
from vmlab.telemetry.domains.libvirt_reader import DomainStats, LibvirtReader, domain_of_xml, is_of_a_lab
from vmlab.telemetry.domains.open_disks import OpenFile, with_open_files
from vmlab.telemetry.domains.qemu_processes import (
    ProcessCounters,
    QemuProcess,
    QemuProcesses,
    accelerator_of,
    shown_names,
)
from vmlab.telemetry.guests import Poller
from vmlab.telemetry.source import NAN, Roots
from vmlab.telemetry.told_once import once

HOST_NAMES = ("domains_seen", "domains_of_labs", "domain_questions_stuck")
_PATIENCE_SECONDS = 3.0
"""How long an answer of libvirt may take until it is asked again; NOWAIT then passes over a domain that hangs."""
_STAND_SECONDS = 10.0
"""How long libvirt's figures stand until the next ones."""
_WAIT_SECONDS = 0.1
_MOST_XML = 4
_Process = tuple[QemuProcess, ProcessCounters]


class XmlKeeper:
    """What the XML of each domain says, read once and again when its disks have changed, in threads that may hang."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Domain, Mapping[str, Any]]] = {}
        self._asking: set[str] = set()
        self._failed: dict[str, object] = {}
        self._labs: set[str] = set()

    def is_of_a_lab(self, uuid: str) -> bool:
        """Whether the domain is a lab's in the host's own libvirt, as far as its XML was read."""
        return uuid in self._labs

    def of(self, stats: DomainStats) -> Domain | None:
        """What is known now; asks where it is nothing, or of another set of disks."""
        known = self._known.get(stats.uuid)
        if known is not None and is_passed_over(stats.figures, known[2]):
            return known[1]
        mark = _mark(stats.figures)
        if (known is None or known[0] != mark) and self._failed.get(stats.uuid, self) != mark:
            self._ask(stats, mark)
        return None if known is None else known[1]

    def keep(self, running: Collection[str]) -> None:
        """Forget those that do not run: one that is started again may be another."""
        self._known = {uuid: known for uuid, known in self._known.items() if uuid in running}
        self._failed = {uuid: mark for uuid, mark in self._failed.items() if uuid in running}
        self._labs.intersection_update(running)

    def _ask(self, stats: DomainStats, mark: object) -> None:
        if stats.uuid in self._asking or len(self._asking) >= _MOST_XML:
            return
        self._asking.add(stats.uuid)

        def work() -> None:
            try:
                text = stats.read_xml()
                if is_of_a_lab(text):
                    self._labs.add(stats.uuid)
                self._known[stats.uuid] = mark, _with_paths(domain_of_xml(text), stats.figures), stats.figures
            except Exception:  # noqa: BLE001 - the domain has ended, or its XML is strange: its process tells the rest
                self._failed[stats.uuid] = mark
            self._asking.discard(stats.uuid)

        threading.Thread(target=work, name="domain-xml", daemon=True).start()


class LibvirtFigures:
    """The newest rates of each domain by uuid, which stand until the next answer, for a while."""

    def __init__(self, reader: LibvirtReader) -> None:
        self._reader = reader
        self._processes_seen = True
        self._poller: Poller[list[DomainStats], list[DomainStats]] = Poller(
            self._ask, lambda found: found, _PATIENCE_SECONDS
        )
        self._before: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._rates: dict[str, tuple[float, Values, Values, dict[str, Values]]] = {}
        self._lengths: dict[str, float] = {}
        self.stats: Sequence[DomainStats] = ()

    @property
    def stuck(self) -> int:
        """How many questions have no answer yet."""
        return self._poller.stuck

    def read(self, processes_seen: bool) -> None:
        """Ask, and take the newest answer. Raises ValueError where libvirt refuses."""
        self._lengths = {}
        if not self._reader.is_there():
            self.stats = ()
            return
        self._processes_seen = processes_seen
        answer = self._poller.answer(_WAIT_SECONDS)
        if answer is not None and answer.error is not None:
            self.stats = ()
            raise ValueError(str(answer.error)) from answer.error
        if answer is not None and answer.counters is not None:
            self._take(answer.counters.found, answer.counters.read_at)

    def read_length(self, uuid: str) -> float:
        """`DOMAIN_READ_LENGTH` in this tick; NaN for a domain that libvirt does not know."""
        return self._lengths.get(uuid, 0.0) if uuid in self._rates else NAN

    def rates(self, uuid: str, now: float) -> tuple[Values, Values, dict[str, Values]]:
        """Those of `OF_PROCESS` as libvirt knows them, the rest of `METRICS`, and those of each disk."""
        found = self._rates.get(uuid)
        rest = len(METRICS) - len(OF_PROCESS)
        if found is None:
            return [NAN] * len(OF_PROCESS), [NAN] * rest, {}
        at, process, own, disks = found
        if now - at > _STAND_SECONDS:
            return [NAN] * len(OF_PROCESS), [NAN] * rest, {name: [NAN] * len(OF_DISK) for name in disks}
        return process, own, disks

    def _ask(self, deliver: Callable[[list[DomainStats] | Exception], None], anew: bool) -> None:
        def work() -> None:
            try:
                found: list[DomainStats] | Exception = self._reader.statistics(processes_seen=self._processes_seen)
            except Exception as error:  # noqa: BLE001 - whatever libvirt raises is said by the group
                found = error
            deliver(found)

        threading.Thread(target=work, name="domain-statistics", daemon=True).start()

    def _take(self, stats: Sequence[DomainStats], read_at: float) -> None:
        self.stats = stats
        for one in stats:
            at, before = self._before.get(one.uuid, (read_at, {}))
            if is_passed_over(one.figures, before):
                # Its next rates are over the time since it last answered.
                continue
            length = self._lengths[one.uuid] = read_at - at
            own, disks = libvirt_rates(one.figures, before, length)
            self._rates[one.uuid] = read_at, unseen_process_rates(one.figures, before, length), own, disks
            self._before[one.uuid] = read_at, one.figures
        there = {one.uuid for one in stats}
        self._before = {uuid: kept for uuid, kept in self._before.items() if uuid in there}
        self._rates = {uuid: kept for uuid, kept in self._rates.items() if uuid in there}


class Domains:
    """Figures of each domain, and how many questions to libvirt hang. `domains` says who they are, for any thread."""

    title = "the host's own guests"

    def __init__(
        self,
        roots: Roots,
        reader: LibvirtReader | None = None,
        notify: Callable[[str], None] = lambda line: None,
        clock_ns: Callable[[int], int] = time.clock_gettime_ns,
    ) -> None:
        self._processes = QemuProcesses(roots, clock_ns)
        self._libvirt = LibvirtFigures(reader or LibvirtReader())
        self._tell_once = once(notify)
        self._xml = XmlKeeper()
        self._before: dict[int, tuple[float, ProcessCounters]] = {}
        self._made: dict[str, tuple[tuple[Domain, tuple[OpenFile, ...], str], Domain]] = {}
        self.domains: tuple[Domain, ...] = ()
        self.names: tuple[str, ...] = HOST_NAMES

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`. What libvirt refuses is said once, and the processes tell the rest."""
        processes = self._processes.read(mono)
        by_uuid = {one[0].domain.uuid: one for one in processes if one[0].domain.uuid}
        # Without a guest there is nothing to ask: a libvirtd that sleeps is not woken.
        if processes or self._libvirt.stats:
            known = (one.uuid in by_uuid or self._xml.is_of_a_lab(one.uuid) for one in self._libvirt.stats)
            self._ask(all(known))
        self._xml.keep({one.uuid for one in self._libvirt.stats})
        domains: dict[str, Domain] = {}
        values: dict[str, tuple[Values, dict[str, Values]]] = {}
        labs = set()
        for stats in self._libvirt.stats:
            process = by_uuid.pop(stats.uuid, None)
            if self._xml.of(stats) is not None and self._xml.is_of_a_lab(stats.uuid):
                labs.add(stats.uuid)
                continue
            domain = self._of_libvirt(stats, process, mono)
            domain = replace(domain, name=_free(domain.name, domain, domains))
            domains[domain.name], values[domain.name] = domain, self._values(stats.uuid, process, mono)
        told = {domain.pid for domain in domains.values()}
        for process in processes:
            if process[0].pid not in told and process[0].domain.uuid not in labs:
                domain = self._proved(process[0].domain, process[0], mono)
                domain = replace(domain, name=_free(domain.name, domain, domains))
                domains[domain.name], values[domain.name] = domain, self._values("", process, mono)
        self._before = {process.pid: (mono, counters) for process, counters in processes}
        self._made = {key: made for key, made in self._made.items() if made[1].pid in self._before}
        return self._laid_out(domains, values, len(labs))

    def _ask(self, processes_seen: bool) -> None:
        try:
            self._libvirt.read(processes_seen)
        except ValueError as error:
            self._tell_once("libvirt", str(error))

    def _of_libvirt(self, stats: DomainStats, process: _Process | None, mono: float) -> Domain:
        known = self._xml.of(stats)
        if process is None:
            return known or Domain(stats.name, "libvirt", uuid=stats.uuid)
        own = process[0].domain
        domain = replace(own if known is None else known, source="libvirt", pid=process[0].pid, name=stats.name)
        return self._proved(domain, process[0], mono)

    def _proved(self, domain: Domain, process: QemuProcess, mono: float) -> Domain:
        """With what its open files and threads prove; the same object as long as nothing has changed."""
        opened = process.open_files(mono)
        basis = domain, opened, process.proof
        made = self._made.get(f"{process.pid}")
        if made is not None and made[0] == basis:
            return made[1]
        # libvirt knows of disks that were added at run time.
        named = process.words if domain.source == "process" else None
        disks = with_open_files(domain.disks, opened, process.folder, named)
        proved = replace(domain, disks=disks, accelerator=accelerator_of(domain.accelerator, process.proof))
        self._made[f"{process.pid}"] = basis, proved
        return proved

    def _values(self, uuid: str, process: _Process | None, mono: float) -> tuple[Values, dict[str, Values]]:
        unseen, own, disks = self._libvirt.rates(uuid, mono)
        own = [*own, self._libvirt.read_length(uuid)]
        if process is None:
            return [*unseen, *own], disks
        before = self._before.get(process[0].pid)
        last, length = (None, 0.0) if before is None else (before[1], mono - before[0])
        return [*process_rates(process[1], last, length), *own], disks

    def _laid_out(
        self, domains: Mapping[str, Domain], values: Mapping[str, tuple[Values, dict[str, Values]]], of_labs: int
    ) -> list[float]:
        order = sorted(domains)
        names = list(HOST_NAMES)
        laid = [float(len(order)), float(max(self._processes.of_labs, of_labs)), float(self._libvirt.stuck)]
        for name in order:
            own, disks = values[name]
            names += [f"{metric}[{name}]" for metric in (*METRICS, DOMAIN_READ_LENGTH)]
            laid += own
            for target, figures in disks.items():
                names += [f"{metric}[{name}/{target}]" for metric in OF_DISK]
                laid += figures
        if tuple(names) != self.names:
            self.names = tuple(names)
        found = tuple(domains[name] for name in order)
        if found != self.domains:
            self.domains = found
        return laid


def _mark(figures: Mapping[str, Any]) -> object:
    """Changes when a disk comes, goes or has another file."""
    count = int(figures.get("block.count", 0))
    return tuple((figures.get(f"block.{n}.name"), figures.get(f"block.{n}.path")) for n in range(count)), disk_targets(
        figures
    )


def _with_paths(domain: Domain, figures: Mapping[str, Any]) -> Domain:
    """With the local path that libvirt's figures have of a disk whose XML has none, such as a volume in a pool."""
    count = int(figures.get("block.count", 0))
    paths = {figures.get(f"block.{n}.name"): figures.get(f"block.{n}.path") for n in range(count)}
    named = (
        replace(one, file=path) if one.protocol == UNKNOWN and (path := paths.get(one.target)) else one
        for one in domain.disks
    )
    return replace(domain, disks=tuple(named))


def _free(name: str, domain: Domain, taken: Mapping[str, Domain]) -> str:
    """A name that no other domain has: one may be called as another would be with its process's id."""
    return next(free for free in shown_names(name, domain.pid) if free not in taken)
