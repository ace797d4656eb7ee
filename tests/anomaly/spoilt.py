"""The fakes with a point of the injector before each of their calls."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import asyncssh

from tests.anomaly.injector import Injector, unspoilt
from tests.fakes.guest_stops import is_watch
from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.scripted_guest import Script, ScriptedGuest
from vmlab.guests.channel import Channel
from vmlab.hypervisor.disks.host_files import host_data
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.protocols import DiskLatency, DiskRequests, LabNetwork, SavedGuest
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_side import HostTiles
from vmlab.model.errors import DeadlineExceeded, GuestError, HypervisorError
from vmlab.model.results import CacheProof, CpuUse, Drained, LeverProof, NetworkCounts
from vmlab.model.run import Accelerator, CacheMode
from vmlab.telemetry.guest_readings import GuestAnswer
from vmlab.workloads.shell import RUN_DEADLINE, Completed, Shell

_TABLES = {"events": "event", "raw_outputs": "raw", "samples": "sample", "layouts": "sample", "documents": "document"}


class SpoiltHypervisor:
    """`protocols.Hypervisor`: every method of it has a deadline of its own, so one that hangs ends with that."""

    def __init__(self, inner: FakeHypervisor, injector: Injector) -> None:
        self._inner = inner
        self._injector = injector

    async def _point(self, method: str) -> None:
        point = f"hypervisor.{method}"
        await self._injector.awaited(
            point,
            lambda: HypervisorError(f"{method}: libvirt refused"),
            lambda: DeadlineExceeded(f"{method} took longer than 9 s"),
        )

    @property
    def guest_disks(self) -> Self:
        """Itself, as of the fake."""
        return self

    statistics = watch = guest_disks

    async def open(self) -> None:
        await self._point("open")
        await self._inner.open()

    async def accelerator(self) -> Accelerator:
        await self._point("accelerator")
        return await self._inner.accelerator()

    async def facts(self) -> dict[str, Any]:
        await self._point("facts")
        return await self._inner.facts()

    def helper_socket(self, name: str) -> Path | None:
        """As of the inner one, which calls nobody for it."""
        return self._inner.helper_socket(name)

    async def create(self, image: BootImage, specs: list[DomainSpec]) -> None:
        await self._point("create")
        await self._inner.create(image, specs)

    async def save(self, name: str, folder: Path) -> None:
        try:
            await self._point("save")
            await self._inner.save(name, folder)
        finally:
            # A guest that was to be saved is gone, whatever comes of it.
            await self._inner.destroy([name])

    async def restore(self, image: BootImage, specs: list[DomainSpec], saved: Mapping[str, SavedGuest]) -> None:
        await self._point("restore")
        await self._inner.restore(image, specs, saved)

    async def plug_data_disks(self, specs: list[DomainSpec]) -> None:
        await self._point("plug_data_disks")
        await self._inner.plug_data_disks(specs)

    async def prove_cache(self, specs: Sequence[DomainSpec]) -> list[CacheProof]:
        await self._point("prove_cache")
        return await self._inner.prove_cache(specs)

    async def prove_levers(
        self, specs: Sequence[DomainSpec], keys: Collection[str], inside: Mapping[str, Mapping[str, str]]
    ) -> list[LeverProof]:
        await self._point("prove_levers")
        return await self._inner.prove_levers(specs, keys, inside)

    async def live_settings(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        await self._point("live_settings")
        return await self._inner.live_settings(names)

    async def network_counts(self, specs: list[DomainSpec]) -> NetworkCounts:
        await self._point("network_counts")
        return await self._inner.network_counts(specs)

    async def begin_latency(self, name: str) -> None:
        await self._point("begin_latency")
        await self._inner.begin_latency(name)

    async def disk_latency(self, name: str) -> DiskLatency:
        await self._point("disk_latency")
        return await self._inner.disk_latency(name)

    async def disk_requests(self, name: str) -> dict[str, DiskRequests]:
        await self._point("disk_requests")
        return await self._inner.disk_requests(name)

    async def drain_disks(self, specs: Sequence[DomainSpec], deadline: float) -> Drained:
        await self._point("drain_disks")
        return await self._inner.drain_disks(specs, deadline)

    async def switch_cache(self, specs: Sequence[DomainSpec], mode: CacheMode) -> dict[str, float]:
        await self._point("switch_cache")
        return await self._inner.switch_cache(specs, mode)

    async def make_mergeable(self, names: list[str], mergeable: bool) -> dict[str, float]:
        await self._point("make_mergeable")
        return await self._inner.make_mergeable(names, mergeable)

    async def agent(
        self, name: str, command: str, arguments: dict[str, Any] | None = None, *, deadline: float = 10.0
    ) -> Any:
        await self._point(command)
        return await self._inner.agent(name, command, arguments, deadline=deadline)

    async def cpu_seconds(self, names: Collection[str]) -> dict[str, float]:
        await self._point("cpu_seconds")
        return await self._inner.cpu_seconds(names)

    async def cpu_use(self, names: Collection[str]) -> dict[str, CpuUse]:
        await self._point("cpu_use")
        return await self._inner.cpu_use(names)

    async def domain_stats(self, *, whole: bool = False) -> GuestAnswer[dict[str, dict[str, int]]]:
        await self._point("domain_stats")
        return await self._inner.domain_stats(whole=whole)

    async def until_lost(self, names: Collection[str]) -> NoReturn:
        await self._inner.until_lost(names)

    async def standstill(self, names: Collection[str]) -> dict[str, float]:
        await self._point("standstill")
        return await self._inner.standstill(names)

    @property
    def network(self) -> LabNetwork:
        return self._inner.network

    def tuned(self, names: Collection[str]) -> dict[str, list[str]]:
        return self._inner.tuned(names)

    def host_pids(self) -> list[int]:
        return self._inner.host_pids()

    def pids(self, names: Collection[str]) -> dict[str, int]:
        return self._inner.pids(names)

    def pids_outside(self, names: Collection[str]) -> dict[str, int]:
        return self._inner.pids_outside(names)

    async def destroy(self, names: list[str]) -> None:
        await self._point("destroy")
        await self._inner.destroy(names)

    async def close(self) -> None:
        await self._point("close")
        await self._inner.close()


@dataclass(frozen=True, slots=True)
class SpoiltChannel:
    """`guests.channel.Channel`. A line that does not come is waited for until somebody calls that off."""

    inner: Channel
    injector: Injector
    named: str = ""

    async def _point(self, method: str, late: str | None) -> None:
        await self.injector.awaited(
            f"channel.{self.named}{method}",
            lambda: GuestError(f"{method}: connection lost"),
            None if late is None else lambda: DeadlineExceeded(late),
        )

    async def send(self, line: str) -> None:
        await self._point("send", "a line was not taken within 30 s")
        await self.inner.send(line)

    async def receive(self) -> str:
        await self._point("receive", None)
        return await self.inner.receive()

    async def close(self) -> None:
        await self._point("close", "a channel did not close within 5 s")
        await self.inner.close()


class SpoiltShell:
    """`guests.channel.GuestShell`: all that it does has a deadline of its own."""

    def __init__(self, inner: ScriptedGuest, injector: Injector) -> None:
        self._inner = inner
        self._injector = injector

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def address(self) -> str:
        return self._inner.address

    async def _point(self, method: str, late: str) -> None:
        await self._injector.awaited(
            f"shell.{method}",
            lambda: GuestError(f"{self.name}: {method} failed"),
            lambda: DeadlineExceeded(f"{self.name}: {late}"),
        )

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        await self._point("run", f"{argv[0]} took longer than {deadline:.0f} s")
        return await self._inner.run(argv, stdin=stdin, deadline=deadline, check=check)

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        await self._point("write", f"writing {path} took longer than 60 s")
        await self._inner.write(path, content, mode=mode)

    async def launch(self, argv: list[str]) -> Channel:
        named = "watch-" if is_watch(argv) else ""
        await self._point(f"{named}launch", f"{argv[0]} did not start within 60 s")
        return SpoiltChannel(await self._inner.launch(argv), self._injector, named)

    async def close(self) -> None:
        await self._inner.close()


@dataclass(frozen=True, slots=True)
class SpoiltConnect:
    """`lab.guest_set.Connect`, whose guests print `output`; they are remembered in `opened`."""

    injector: Injector
    output: str
    opened: list[ScriptedGuest]

    async def __call__(
        self, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> SpoiltShell:
        await self.injector.awaited(
            "shell.connect",
            lambda: GuestError(f"{name}: another machine answers at {address}"),
            lambda: DeadlineExceeded(f"{name}: SSH did not answer within {deadline:.0f} s"),
        )
        self.opened.append(ScriptedGuest(name, address, Script(self.output)))
        return SpoiltShell(self.opened[-1], self.injector)


@contextlib.contextmanager
def spoilt_host(folder: RunFolder, injector: Injector, output: str) -> Iterator[Shell]:
    """`parts.host_place`: a file in the place of the mounted root, which stands in the journal while it is there."""
    root = folder.disks / "host-root"
    with Journal(folder.journal).kept(JournalEntry("file", str(root))):
        injector.blocking("host.mount", lambda: HypervisorError("cannot mount root.raw for workloads on the host"))
        with unspoilt():
            root.touch()
        try:
            yield SpoiltShell(ScriptedGuest("host", "10.0.0.1", Script(output)), injector)
        finally:
            with unspoilt():
                root.unlink(missing_ok=True)


@contextlib.contextmanager
def spoilt_host_tiles(injector: Injector, folder: RunFolder, host: Shell, tiles: Sequence[int]) -> Iterator[HostTiles]:
    """`parts.host_tiles`: real folders, in which a workload has left a file, and no mounts."""
    with host_data(folder.disks, folder.id, Journal(folder.journal), tiles) as data:
        injector.blocking("host.bind", lambda: HypervisorError("cannot mount host.data for workloads on the host"))
        with unspoilt():
            for place in data.values():
                (place / "laid-out").write_bytes(b"blocks")
        yield HostTiles(dict.fromkeys(tiles, host), tuple(data.values()))


def spoilt_connect(injector: Injector) -> Callable[..., sqlite3.Connection]:
    """`sqlite3.connect`, whose connections have a point before each statement: what a full disk makes SQLite say."""

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            injector.blocking(_point_of(statement), lambda: sqlite3.OperationalError("database or disk is full"))
            return super().execute(statement, *arguments)

        def executescript(self, script: str) -> sqlite3.Cursor:
            injector.blocking("store.tables", lambda: sqlite3.OperationalError("database or disk is full"))
            return super().executescript(script)

    def connect(path: Path, **options: Any) -> sqlite3.Connection:
        return sqlite3.connect(path, factory=Connection, **options)

    return connect


def _point_of(statement: str) -> str:
    words = statement.split()
    if words[0] == "INSERT":
        return f"store.{_TABLES[words[words.index('INTO') + 1]]}"
    if "wal_checkpoint" in statement:
        return "store.checkpoint"
    return "store.sample" if words[0] == "SELECT" else "store.set_up"
