"""A hypervisor in memory: domains are names in a dictionary, agents answer from a script. For unit tests alone."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.libvirt.domain_watch import Losses
from vmlab.hypervisor.protocols import DiskLatency, DiskRequests, LabNetwork, SavedGuest
from vmlab.model.errors import HypervisorError, SnapshotError, VmlabError
from vmlab.model.names import BRIDGE, NETWORK
from vmlab.model.results import CacheProof, CpuUse, Drained, LeverProof, NetworkCounts
from vmlab.model.run import Accelerator, CacheMode
from vmlab.system.removal import make_marked
from vmlab.telemetry.guest_readings import GuestAnswer, Timed

T = TypeVar("T")
_WHOLE = "whole"
_FILES = ("ram", "disk.qcow2", "machine.json")
_FLAGS: dict[CacheMode, tuple[bool, bool, bool]] = {
    "none": (True, True, False),
    "directsync": (False, True, False),
    "writeback": (True, False, False),
    "writethrough": (False, False, False),
    "unsafe": (True, False, True),
}
"""What QEMU says of each cache mode: write cache, direct, no flush. Written down here and not taken from the program,
so that a mistake there shows."""

AgentAnswer = Callable[[str, str, dict[str, Any]], Any]
"""``(guest name, command, arguments)`` to the agent's return value; it may raise."""


def obliging_agent(_name: str, command: str, arguments: dict[str, Any]) -> Any:
    """An agent that does everything at once and successfully."""
    if command == "guest-get-time":
        return time.time_ns()
    if command == "guest-exec":
        return {"pid": 1}
    if command == "guest-exec-status":
        return {"exited": True, "exitcode": 0, "out-data": "b2sK"}
    return {}


def _next(answers: list[dict[str, T]]) -> dict[str, T]:
    """The first of them, which goes unless it is the last one; nothing where there are none."""
    return answers.pop(0) if len(answers) > 1 else next(iter(answers), {})


@dataclass
class FakeHypervisor:
    """`protocols.Hypervisor`, without one. `fail_create` names a guest that does not start, `fail_save` one that is not
    saved. A saved state loads as long as nobody has touched its files.

    `lose` is how a guest dies; `stopped` holds the seconds for which guests' QEMUs stood still so far.

    `lying` names guests whose files are not open as their cache mode says. `calls` remembers methods in order.
    `counts` are what networks have carried, one after the other for each time that they are asked. Where the folder
    `disks` exists, guests have empty disk files in it. With a `journal` these are written down there, and so is a
    folder of `lab` in `runtime`, as by the real one.
    """

    agent_answer: AgentAnswer = obliging_agent
    accelerated_by: Accelerator = "tcg"
    fail_create: str | None = None
    fail_save: str | None = None
    lying: frozenset[str] = frozenset()
    running: dict[str, DomainSpec] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    is_open: bool = False
    disks: Path = Path("/fake")
    stopped: dict[str, float] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)
    hosts_processes: dict[str, int] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    waited: float = 3600.0
    asked: Counter[str] = field(default_factory=Counter)
    losses: Losses = field(default_factory=Losses)
    journal: Journal | None = None
    runtime: Path | None = None
    lab: str = "lab"
    may_drain: asyncio.Event = field(default_factory=asyncio.Event)
    """Where a test clears it, dirty pages are written until it is set."""
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when dirty pages are being written."""
    drain_fault: VmlabError | None = None
    switch_fault: VmlabError | None = None
    counts: list[NetworkCounts] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    """What QEMU shows of a guest's attributes, by their names; of others it shows nothing."""
    inside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What files of guests held when levers were proved at last."""
    given: list[dict[str, dict[str, str]]] = field(default_factory=list)
    """What libvirt gives guests, by their names, one after the other for each time that it is asked."""
    undescribed: set[str] = field(default_factory=set)
    """The guests that it does not describe in time."""
    changes: list[dict[str, list[str]]] = field(default_factory=list)
    """The same for what it was asked to change of them."""
    merge_fault: VmlabError | None = None
    latency_fault: VmlabError | None = None
    requests_fault: VmlabError | None = None
    requests: dict[str, dict[str, DiskRequests]] = field(default_factory=dict)
    """What guests' disks have answered and taken, by the guest's name."""
    _asked_for_latency: dict[str, int] = field(default_factory=dict)
    unmergeable: set[str] = field(default_factory=set)
    """The guests whose memory may not be merged now."""
    helpers: dict[str, Path] = field(default_factory=dict)
    files_of_its_own: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered whenever it touches a file that is not the journal."""

    def __post_init__(self) -> None:
        """Dirty pages are written at once unless a test says otherwise."""
        self.may_drain.set()

    @property
    def guest_disks(self) -> Self:
        """Itself: one fake answers for all parts."""
        return self

    statistics = watch = guest_disks

    async def open(self) -> None:
        """Remember that it is open."""
        self._called("open")
        self.is_open = True
        if self.runtime is not None:
            root = self.runtime / "v"
            self._write_down(JournalEntry("folder", str(root)))
            with self.files_of_its_own():
                make_marked(root, self.lab)

    async def accelerator(self) -> Accelerator:
        """What the test says."""
        return self.accelerated_by

    async def facts(self) -> dict[str, Any]:
        """Facts that nobody takes for real ones."""
        compared = {"qemu": "0", "libvirt": "0", "machine_type": "fake", "cpu_model": "fake", "host_cpu_flags": None}
        return {"hypervisor": "fake", "accelerator": self.accelerated_by, **compared}

    async def create(self, image: BootImage, specs: list[DomainSpec]) -> None:
        """Start all or none."""
        self._called("create")
        await self._begin(specs)

    async def _begin(self, specs: list[DomainSpec]) -> None:
        await asyncio.sleep(0)
        for spec in specs:
            if spec.name == self.fail_create:
                raise HypervisorError(f"{spec.name}: starting: no room")
            if spec.name in self.running:
                raise HypervisorError(f"{spec.name}: starting: it runs already")
        try:
            for spec in specs:
                self._start(spec)
        except BaseException:
            for spec in specs:
                self._end(spec.name)
            raise

    def _start(self, spec: DomainSpec) -> None:
        overlay = self._overlay(spec.name)
        self._write_down(JournalEntry("file", str(overlay)))
        self.running[spec.name] = spec
        self.losses.forget(spec.name)
        with self.files_of_its_own():
            if self.disks.is_dir():
                overlay.touch()

    def _end(self, name: str) -> None:
        self.running.pop(name, None)
        with self.files_of_its_own():
            self._overlay(name).unlink(missing_ok=True)
        if self.journal is not None:
            self.journal.strike(JournalEntry("file", str(self._overlay(name))))

    def _overlay(self, name: str) -> Path:
        return self.disks / f"{name}.qcow2"

    def _write_down(self, entry: JournalEntry) -> None:
        if self.journal is not None:
            self.journal.add(entry)

    async def save(self, name: str, folder: Path) -> None:
        """Three small files; the guest is gone, whatever comes of it."""
        self._called("save")
        spec = self._running(name)
        await asyncio.sleep(0)
        self._end(name)
        if spec.network or name == self.fail_save:
            raise HypervisorError(f"{name}: saving: no room")
        with self.files_of_its_own():
            for file in _FILES:
                (folder / file).write_text(_WHOLE)

    async def restore(self, image: BootImage, specs: list[DomainSpec], saved: Mapping[str, SavedGuest]) -> None:
        """Start all or none."""
        self._called("restore")
        for spec in specs:
            for file in (saved[spec.name].folder / name for name in _FILES):
                with self.files_of_its_own():
                    whole = file.is_file() and file.read_text() == _WHOLE
                if not whole:
                    id = file.parent.name
                    raise SnapshotError(f"{spec.name}: snapshot {id} does not load: {file.name}", snapshot=id)
        await self._begin(specs)

    async def plug_data_disks(self, specs: list[DomainSpec]) -> None:
        """Remember it, and fail for a guest that does not run."""
        self._called("plug_data_disks")
        for spec in specs:
            self._running(spec.name)

    async def prove_cache(self, specs: Sequence[DomainSpec]) -> list[CacheProof]:
        """A proof each; those of `lying` guests do not agree."""
        self._called("prove_cache")
        return [self._proof(spec) for spec in specs]

    def _proof(self, spec: DomainSpec) -> CacheProof:
        running = self._running(spec.name)
        writeback, direct, no_flush = _FLAGS[running.resources.cache]
        honest = running.guest not in self.lying
        return CacheProof(
            guest=spec.guest,
            file=str(self.disks / f"{spec.name}.qcow2"),
            o_direct=direct is honest,
            writeback=writeback,
            direct=direct is honest,
            no_flush=no_flush,
            expected=spec.resources.cache,
            agrees=honest and running.resources.cache == spec.resources.cache,
        )

    async def prove_levers(
        self, specs: Sequence[DomainSpec], keys: Collection[str], inside: Mapping[str, Mapping[str, str]]
    ) -> list[LeverProof]:
        """A proof for each guest and key that the test has a value of in `shown`; others cannot be seen."""
        self._called("prove_levers")
        self.inside = inside
        return [
            LeverProof(
                spec.guest, spec.tile, key, asked := str(getattr(spec.resources, key)), found, asked == found, "a fake"
            )
            for spec in specs
            for key, found in self.shown.items()
            if key in keys
        ]

    async def live_settings(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """As the test says, one after the other; at last what it has said last, and nothing otherwise."""
        self._called("live_settings")
        given = _next(self.given)
        return {name: given.get(name, {}) for name in names if name in self.running.keys() - self.undescribed}

    async def network_counts(self, specs: list[DomainSpec]) -> NetworkCounts:
        """As the test says, one after the other; at last, and where it says nothing, no bytes anywhere."""
        self._called("network_counts")
        for spec in specs:
            self._running(spec.name)
        return self.counts.pop(0) if self.counts else NetworkCounts(None, None, {})

    async def begin_latency(self, name: str) -> None:
        """Nothing is counted yet."""
        self._called("begin_latency")
        self._running(name)
        self._asked_for_latency[name] = 0

    async def disk_latency(self, name: str) -> DiskLatency:
        """Between two questions each guest reads once in bin 5, and writes twice in bin 20; or as the test says."""
        self._called("disk_latency")
        self._running(name)
        if self.latency_fault is not None:
            raise self.latency_fault
        times = self._asked_for_latency[name] = self._asked_for_latency[name] + 1
        read, written = ([0] * 72 for _ in range(2))
        read[5], written[20] = times, 2 * times
        return {"root": {"read": read, "write": written, "flush": [0] * 72}}

    async def disk_requests(self, name: str) -> dict[str, DiskRequests]:
        """As the test says; without its word each disk answers one more each time, and nothing waits."""
        self._called("disk_requests")
        self._running(name)
        if self.requests_fault:
            raise self.requests_fault
        return self.requests.get(name) or {"root": DiskRequests(self.calls.count("disk_requests"), 0)}

    async def drain_disks(self, specs: Sequence[DomainSpec], deadline: float) -> Drained:
        """At once, or when the test lets it; a thousand bytes for each guest."""
        self._called("drain_disks")
        if self.drain_fault is not None:
            raise self.drain_fault
        self.draining.set()
        await self.may_drain.wait()
        return Drained(0.5, 1000 * len(specs))

    async def switch_cache(self, specs: Sequence[DomainSpec], mode: CacheMode) -> dict[str, float]:
        """All of them; 5 ms each, but 400 ms for a guest called ``slow``."""
        self._called("switch_cache")
        if self.switch_fault is not None:
            raise self.switch_fault
        for spec in specs:
            running = self._running(spec.name)
            self.running[spec.name] = replace(running, resources=running.resources.with_cache(mode))
        return {spec.name: 0.4 if spec.guest == "slow" else 0.005 for spec in specs}

    async def make_mergeable(self, names: list[str], mergeable: bool) -> dict[str, float]:
        """All of them; 5 ms each, but 400 ms for a guest called ``slow``."""
        self._called("make_mergeable")
        if self.merge_fault is not None:
            raise self.merge_fault
        self.unmergeable = set() if mergeable else set(names)
        return {name: 0.4 if self._running(name).guest == "slow" else 0.005 for name in names}

    async def agent(
        self, name: str, command: str, arguments: dict[str, Any] | None = None, *, deadline: float = 10.0
    ) -> Any:
        """What the test's agent answers."""
        self._running(name)
        return self.agent_answer(name, command, arguments or {})

    def helper_socket(self, name: str) -> Path | None:
        """These guests have no channel to a helper, unless a test gives them one."""
        return self.helpers.get(name)

    async def cpu_seconds(self, names: Collection[str]) -> dict[str, float]:
        """Every time it is asked, each guest has used more, in proportion to its shares."""
        self._called("cpu_seconds")
        asked = self.calls.count("cpu_seconds")
        return {name: asked * (self._running(name).resources.cpu_shares or 1024) / 1024 for name in names}

    async def cpu_use(self, names: Collection[str]) -> dict[str, CpuUse]:
        """Guests in memory have no CPU and wait for one all the time, unless the test says otherwise.

        From each question to the next one, a guest uses what the test put into `used`.
        """
        found = {}
        for name in names:
            self.asked[name] += 1
            found[name] = CpuUse(self.used.get(name, 0.0) * self.asked[name], self.waited * self.asked[name])
        return found

    async def domain_stats(self, *, whole: bool = False) -> GuestAnswer[dict[str, dict[str, int]]]:
        """A few of libvirt's numbers for each, and nothing of their disks."""
        now = time.monotonic()
        found = {name: {"state.state": 1, "cpu.time": 10**9, "vcpu.0.delay": 0} for name in self.running}
        return GuestAnswer(Timed(now, now, found), Timed(now, now, {name: {} for name in self.running}))

    def lose(self, name: str, cause: str = "its QEMU died: killed by SIGKILL", *, crashed: bool = False) -> None:
        """Guest `name` dies, and is found out at once."""
        self._running(name)
        del self.running[name]
        self.losses.report(name, cause, crashed=crashed)

    async def until_lost(self, names: Collection[str]) -> NoReturn:
        """Raise GuestLost when `lose` is called for one of them, or was."""
        await self.losses.until_lost(names)

    async def standstill(self, names: Collection[str]) -> dict[str, float]:
        """What the test put into `stopped`."""
        return {name: self.stopped.get(name, 0.0) for name in names}

    @property
    def network(self) -> LabNetwork:
        """As of an embedded one."""
        return LabNetwork(BRIDGE, NETWORK)

    def tuned(self, names: Collection[str]) -> dict[str, list[str]]:
        """As `live_settings`."""
        asked = _next(self.changes)
        return {name: asked.get(name, []) for name in names if name in self.running}

    def host_pids(self) -> list[int]:
        """None."""
        return []

    def pids(self, names: Collection[str]) -> dict[str, int]:
        """What the test put into `processes`."""
        return {name: self.processes[name] for name in names if name in self.processes}

    def pids_outside(self, names: Collection[str]) -> dict[str, int]:
        """What the test put into `hosts_processes`."""
        return {name: self.hosts_processes[name] for name in names if name in self.hosts_processes}

    async def destroy(self, names: list[str]) -> None:
        """Forget them; unknown ones are no error."""
        self._called("destroy")
        for name in names:
            self._end(name)
            self.losses.forget(name)

    async def close(self) -> None:
        """Forget everything."""
        self._called("close")
        for name in list(self.running):
            self._end(name)
        self.is_open = False
        if self.journal is not None:
            await asyncio.to_thread(sweep, self.journal.path, self.disks, self.lab)

    def _running(self, name: str) -> DomainSpec:
        try:
            return self.running[name]
        except KeyError:
            raise HypervisorError(f"{name}: Domain not found") from None

    def _called(self, method: str) -> None:
        self.calls.append(method)
