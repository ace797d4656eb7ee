"""A lab for benches: real guests in namespaces of their own, frozen and restored without the engine around them."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vmlab.guests.agent import (
    AgentCall,
    AgentShell,
    Identity,
    begin_template,
    empty_template,
    identify,
    settle_template,
    wait_for_agent,
)
from vmlab.guests.image.building import ensure
from vmlab.guests.ssh import RunKeys, SshShell
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.isolation.namespace import host_pids, run_isolated
from vmlab.integrity.digests import FileDigests, describe
from vmlab.model.names import PREFIX, RAM, guest_address
from vmlab.model.scenarios.guest import GuestResources


def isolated(module: str) -> None:
    """Go on only inside a lab's namespaces: outside, run `module` inside with the same arguments, exit as it does."""
    if host_pids() is not None:
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(run_isolated([sys.executable, "-m", module, *sys.argv[1:]], env=os.environ))


def guest(name: str, number: int, memory: int = 512 * 2**20) -> DomainSpec:
    """A guest with one vCPU and a disk of 8 GiB; `number` tells its card from others'."""
    return DomainSpec(
        name=name,
        guest=name,
        tile=1,
        resources=GuestResources(vcpus=1, memory_bytes=memory, disk_bytes=8 * 2**30, cache="none"),
        mac=f"52:54:00:00:03:{number:02x}",
    )


@dataclass(frozen=True)
class Saved:
    """A frozen guest, as `protocols.SavedGuest` wants it."""

    folder: Path
    files: Mapping[str, FileDigests]


@dataclass
class BenchLab:
    """An open hypervisor, its image, and keys for guests named beforehand."""

    hypervisor: EmbeddedHypervisor
    image: BootImage
    folder: Path
    keys: RunKeys

    async def freeze(self, spec: DomainSpec, units: Sequence[str]) -> Saved:
        """Boot `spec`, start `units` in it, save it."""
        template = replace(spec, name="template", network=False)
        call: AgentCall = partial(self.hypervisor.agent, template.name)
        await self.hypervisor.create(self.image, [template])
        await wait_for_agent(call, template.name, 240)
        await begin_template(call)
        if units:
            await AgentShell(template.name, call).run(["systemctl", "start", *units], deadline=240)
        await empty_template(call)
        await settle_template(call)
        saved = self.folder / "saved"
        saved.mkdir()
        await self.hypervisor.save(template.name, saved)
        return Saved(saved, {RAM: describe(saved / RAM)})

    async def reach(self, spec: DomainSpec, number: int) -> SshShell:
        """A running guest's shell, after it was made itself; `number` counts from 0."""
        call: AgentCall = partial(self.hypervisor.agent, spec.name)
        await wait_for_agent(call, spec.name, 240)
        address = guest_address(1, number)
        private, public = self.keys.host_private(spec.name), self.keys.authorized_line()
        await identify(call, Identity(spec.name, address, PREFIX, private, public, ""), "bench", 240)
        key = self.keys.hosts[spec.name]
        return await SshShell.connect(spec.name, address, key=self.keys.client, host_key=key, deadline=240)


@asynccontextmanager
async def bench_lab(
    name: str, guests: Sequence[str], kind: type[EmbeddedHypervisor] = EmbeddedHypervisor
) -> AsyncIterator[BenchLab]:
    """An open lab with keys for `guests`; everything of it goes at the end."""
    built = ensure(lambda words: print(words, file=sys.stderr))
    image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    with tempfile.TemporaryDirectory(prefix=f"vmlab-{name}-", dir="/var/tmp") as scratch:
        folder = Path(scratch)
        runtime = Path(f"/run/vmlab-{name}")
        hypervisor = kind(runtime, folder / "disks", name, kernel=image.kernel)
        await hypervisor.open()
        try:
            yield BenchLab(hypervisor, image, folder, RunKeys.generate(guests))
        finally:
            await hypervisor.close()
