"""Hosts of a fleet without SSH and without guests: real launchers, inits and runners, whose cells only take a while.

A line is a pipe to the program that a host runs for its controller. It can be cut, and a host can be switched off.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import asyncssh

from tests.lab.faked import CELL_SECONDS, LOAD, ROOT, VMLAB, Home
from tests.lab.programs import CLOCK
from vmlab.fleet.controller import Controller
from vmlab.fleet.hosts_file import FleetRequest, HostEntry
from vmlab.fleet.link import HostLink, HostLost
from vmlab.lab.process.prepared import RunRequest, write_request
from vmlab.lab.process.run_ending import Verdict
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.event import Event
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides
from vmlab.store.reader import RunReader
from vmlab.store.writer import FleetWriter
from vmlab.workloads.assets import read_assets

FACTS = HostFacts(2**34, 2**34, 2**40, 2, "tcg")
SCENARIO = """
name: probe
guests: {one: {memory: 128 MiB}}
workloads: {primes: {kind: cpu, on: one, threads: 1, max_prime: 1000, events: 10}}
axes: {cache: [none, writeback]}
"""


_COVERED = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')


SUITE = """
name: probe
guests: {one: {memory: 512 MiB}}
workloads: {ub: {kind: unixbench, on: one}}
axes: {cache: [none, writeback]}
"""
"""Its guest needs a copy of a suite."""


class _Pipe:
    """What `HostLink` needs of an SSH connection."""

    def __init__(self, process: asyncio.subprocess.Process, host: LocalHost) -> None:
        self.process = process
        self._host = host

    async def run(self, command: str, *, stdin: str, encoding: None) -> Any:
        """Take a file; the line is cut where the host's `spoil` has shortened it."""
        words, sent = shlex.split(command)[1:], Path(stdin).read_bytes()
        assert words[:2] == ["hosts", "take-asset"] and encoding is None
        data = self._host.spoil.pop()(sent) if self._host.spoil else sent
        process = await self._host.spawned(*words)
        stdout, stderr = await process.communicate(data)
        if len(data) < len(sent):
            self.abort()
            raise asyncssh.ConnectionLost("the line was cut")
        return SimpleNamespace(returncode=process.returncode, stdout=stdout, stderr=stderr)

    def abort(self) -> None:
        """Cut it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def end(self) -> None:
        """Cut it, and wait until its process and its pipes are gone."""
        self.abort()
        # Reads what is left of its output, without which the transport stays open.
        await asyncio.wait_for(self.process.communicate(), 30)


@dataclass
class LocalHost(Home):
    """A host: its state and the processes of its runs are its own."""

    name: str = ""
    seconds: float = 0.1
    clock: float = 0.0
    """How far ahead its clocks are, in seconds."""
    load: str = "{}"
    """What tiles take of the latency in seconds, by cache mode, as JSON; see `LOAD`."""
    off: bool = False
    hidden: Path | None = None
    """A folder of the controller that this host does not have."""
    packages: Path | None = None
    """A folder of packages that add to its vmlab."""
    spoil: list[Callable[[bytes], bytes]] = field(default_factory=list)
    """What becomes of files on their way to it, the last one first."""
    lines: list[_Pipe] = field(default_factory=list)

    async def connect(self) -> HostLink:
        """A line to it."""
        if self.off:
            raise HostLost(f"host {self.name} does not answer")
        process = await self.spawned("hosts", "serve")
        pipe = _Pipe(process, self)
        self.lines.append(pipe)
        return HostLink(self.name, cast(asyncssh.SSHClientConnection, pipe), process, "vmlab")

    async def spawned(self, *words: str) -> asyncio.subprocess.Process:
        """Its vmlab with these words, in mounts of its own where something is hidden from it."""
        covered = () if self.hidden is None else (*_COVERED, str(self.hidden))
        said = {CELL_SECONDS: str(self.seconds), CLOCK: str(self.clock), LOAD: self.load}
        if self.packages is not None:
            said["PYTHONPATH"] = f"{ROOT}{os.pathsep}{self.packages}"
        end = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *(*covered, *VMLAB, *words), env=self.environment(**said), cwd=ROOT, stdin=end, stdout=end, stderr=end
        )

    def cut(self) -> None:
        """Cut its line."""
        self.lines[-1].abort()

    async def hang_up(self) -> None:
        """End what is left of its lines while there is a loop to do it in."""
        for line in self.lines:
            await line.end()

    def kill_runner(self) -> None:
        """Kill the runner of its newest run."""
        os.kill(self.pid("runner_pid"), signal.SIGKILL)


@dataclass
class LocalFleet:
    """Hosts and a controller, whose state folder is `folder`."""

    folder: Path
    hosts: dict[str, LocalHost]
    controller: Controller | None = None

    @classmethod
    def at(cls, place: Path, seconds: float = 0.1) -> LocalFleet:
        """Three hosts and a controller in the folder `place`."""
        names = ("hv1", "hv2", "hv3")
        (place / "controller").mkdir(exist_ok=True)
        for name in names:
            (place / name / "host").mkdir(parents=True, exist_ok=True)
        hosts = {name: LocalHost(place / name, place / name / "host", name=name, seconds=seconds) for name in names}
        return cls(place / "controller", hosts)

    async def connect(self, name: str, entry: HostEntry) -> HostLink:
        """A line to the host of that name."""
        return await self.hosts[name].connect()

    def prepared(
        self,
        *,
        spread: bool = False,
        together: bool = False,
        in_turn: bool = False,
        reconnect: float = 3.0,
        hold: float = 60.0,
        text: str = SCENARIO,
        number: int = 1,
        **overrides: Any,
    ) -> RunFolder:
        """The folder of a run that is to be carried out, of the scenario `text`; several have a `number` each.

        A short `reconnect` is for lines that stay cut: on a busy machine another line takes seconds to open.
        """
        file = read(self.folder / "probe.yaml", text)
        asked = Overrides(hosts=None if spread else tuple(self.hosts), seed=1, **overrides)
        facts = replace(FACTS, assets=read_assets(asked.assets))
        plan = make_plan(file, asked, facts)
        name = f"20261125-120000-probe-{number:04}"
        folder = RunFolder(name, self.folder / name)
        os.close(folder.make())
        write_request(folder, RunRequest(folder.id, str(file.path), asked, plan.seed), file.text, facts)
        entries = {name: HostEntry(address=name) for name in self.hosts}
        how = {"spread": spread, "together": together, "in_turn": in_turn}
        request = FleetRequest(hosts=entries, **how, reconnect=reconnect, hold=hold)
        request.write(folder)
        FleetWriter(folder.store).close()
        return folder

    async def carried_out(self, folder: RunFolder) -> Verdict:
        """Run it."""
        self.controller = Controller(folder, self.connect)
        return await self.controller.run()

    @contextlib.asynccontextmanager
    async def under_way(self, folder: RunFolder) -> AsyncIterator[asyncio.Task[Verdict]]:
        """The run, while the block does something to it; it must have ended with the block."""
        task = asyncio.create_task(self.carried_out(folder))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def events_of(folder: RunFolder) -> list[Event]:
    """What the run's record has."""
    with RunReader(folder.store) as reader:
        return [event for _, event in reader.events()]
