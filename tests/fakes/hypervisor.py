"""A hypervisor in memory: domains are names in a dictionary, agents answer from a script. For unit tests alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vmlab.hypervisor.cache_proof import EXPECTED
from vmlab.hypervisor.contract import BootImage, DomainSpec
from vmlab.hypervisor.frozen import FILES
from vmlab.model.errors import HypervisorError, SnapshotError
from vmlab.model.run import Accelerator, CacheProof

_WHOLE = "whole"

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


@dataclass
class FakeHypervisor:
    """`contract.Hypervisor`, without one. `fail_create` names a guest that does not start, `fail_save` one that is not
    saved. A saved state loads as long as nobody has touched its files.

    `lying` names guests whose files are not open as their cache mode says. `calls` remembers methods in order. Where
    the folder `disks` exists, guests have empty disk files in it.
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

    async def open(self) -> None:
        """Remember that it is open."""
        self._called("open")
        self.is_open = True

    async def accelerator(self) -> Accelerator:
        """What the test says."""
        return self.accelerated_by

    async def facts(self) -> dict[str, Any]:
        """Facts that nobody takes for real ones."""
        return {"hypervisor": "fake", "accelerator": self.accelerated_by}

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
        self.running.update({spec.name: spec for spec in specs})
        if self.disks.is_dir():
            for spec in specs:
                (self.disks / f"{spec.name}.qcow2").touch()

    async def save(self, name: str, folder: Path) -> None:
        """Three small files; the guest is gone, whatever comes of it."""
        self._called("save")
        spec = self._running(name)
        await asyncio.sleep(0)
        del self.running[name]
        if spec.network or name == self.fail_save:
            raise HypervisorError(f"{name}: saving: no room")
        for file in FILES:
            (folder / file).write_text(_WHOLE)

    async def restore(self, image: BootImage, specs: list[DomainSpec], saved: Mapping[str, Path]) -> None:
        """Start all or none."""
        self._called("restore")
        for spec in specs:
            for file in (saved[spec.name] / name for name in FILES):
                if not file.is_file() or file.read_text() != _WHOLE:
                    raise SnapshotError(f"{spec.name}: snapshot {file.parent.name} does not load: {file.name}")
        await self._begin(specs)

    async def prove_cache(self, specs: list[DomainSpec]) -> list[CacheProof]:
        """A proof each; those of `lying` guests do not agree."""
        self._called("prove_cache")
        return [self._proof(spec) for spec in specs]

    def _proof(self, spec: DomainSpec) -> CacheProof:
        flags = EXPECTED[spec.cache]
        honest = self._running(spec.name).guest not in self.lying
        return CacheProof(
            guest=spec.guest,
            file=str(self.disks / f"{spec.name}.qcow2"),
            o_direct=flags.direct is honest,
            writeback=flags.writeback,
            direct=flags.direct is honest,
            no_flush=flags.no_flush,
            expected=spec.cache,
            agrees=honest,
        )

    async def agent(
        self, name: str, command: str, arguments: dict[str, Any] | None = None, *, deadline: float = 10.0
    ) -> Any:
        """What the test's agent answers."""
        self._running(name)
        return self.agent_answer(name, command, arguments or {})

    async def cpu_seconds(self, names: list[str]) -> dict[str, float]:
        """Every time it is asked, each guest has used more, in proportion to its shares."""
        self._called("cpu_seconds")
        asked = self.calls.count("cpu_seconds")
        return {name: asked * (self._running(name).cpu_shares or 1024) / 1024 for name in names}

    async def domain_stats(self) -> dict[str, dict[str, int]]:
        """A few of libvirt's numbers for each."""
        return {name: {"state.state": 1, "cpu.time": 10**9, "vcpu.0.delay": 0} for name in self.running}

    async def destroy(self, names: list[str]) -> None:
        """Forget them; unknown ones are no error."""
        self._called("destroy")
        for name in names:
            self.running.pop(name, None)

    async def close(self) -> None:
        """Forget everything."""
        self._called("close")
        self.running.clear()
        self.is_open = False

    def _running(self, name: str) -> DomainSpec:
        try:
            return self.running[name]
        except KeyError:
            raise HypervisorError(f"{name}: Domain not found") from None

    def _called(self, method: str) -> None:
        self.calls.append(method)
