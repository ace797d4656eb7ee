"""A lab that freezes one real guest and starts clones of it; tells what it sees as one line of JSON."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Awaitable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests.hypervisor.conftest import Saved, spec
from tests.hypervisor.programs.made import made
from tests.integrity.damage import flip
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
from vmlab.model.errors import HypervisorError

PREPARED = "/srv/prepared"
PROGRAMS = "qemu-system"


class Lab:
    """The hypervisor, one frozen guest and what is done with it."""

    def __init__(self, runtime: Path, folder: Path) -> None:
        built = ensure(lambda _text: None)
        self.image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
        self.disks = folder / "disks"
        self.hypervisor = made(runtime, self.disks, self.image.kernel)
        self.saved = folder / "saved"
        self.specs = [replace(spec(f"clone-{at}"), mac=f"52:54:00:00:02:0{at}") for at in range(1, 4)]
        self.keys = RunKeys.generate(one.name for one in self.specs)
        self.shells: dict[str, SshShell] = {}

    async def freeze(self) -> dict[str, Any]:
        """Boot, prepare and save one guest."""
        template = replace(spec("template"), network=False)
        await self.hypervisor.create(self.image, [template])
        call: AgentCall = partial(self.hypervisor.agent, template.name)
        await wait_for_agent(call, template.name, 400)
        await begin_template(call)
        shell = AgentShell(template.name, call)
        await shell.write(PREPARED, bytes(range(256)) * 400)
        said = (await shell.run(["cat", "/etc/hostname", "/sys/class/block/vda/size"])).stdout
        await empty_template(call)
        await settle_template(call)
        self.saved.mkdir()
        await self.hypervisor.save(template.name, self.saved)
        return {
            "said": said.split(),
            "cards": (await self.hypervisor.statistics.domain_stats()).quick.found,
            "files": sorted(path.name for path in self.saved.iterdir()),
            "machine": json.loads((self.saved / "machine.json").read_text())["layout"],
            "overlays": self.overlays(),
        }

    async def clone(self) -> dict[str, Any]:
        """Three clones, each made itself, side by side."""
        began = time.monotonic()
        await self.hypervisor.restore(self.image, self.specs, self._saved_for_all())
        seconds = time.monotonic() - began
        told = await asyncio.gather(*(self._awaken(at, one) for at, one in enumerate(self.specs)))
        proofs = await self.hypervisor.guest_disks.prove_cache(self.specs)
        return {"seconds": seconds, "guests": told, "proofs": [asdict(proof) for proof in proofs]}

    async def _awaken(self, at: int, one: DomainSpec) -> dict[str, Any]:
        call: AgentCall = partial(self.hypervisor.agent, one.name)
        await wait_for_agent(call, one.name, 60)
        address = f"198.18.0.{at + 2}"
        key = self.keys.hosts[one.name]
        own = Identity(
            one.name, address, 15, self.keys.host_private(one.name), self.keys.authorized_line(), "198.18.0.9 other\n"
        )
        clock = await identify(call, own, "test", 120)
        random = await AgentShell(one.name, call).run(["od", "-An", "-tx1", "-N32", "/dev/urandom"])
        shell = await SshShell.connect(one.name, address, key=self.keys.client, host_key=key, deadline=60)
        self.shells[one.name] = shell
        prepared = await shell.run(["sha256sum", PREPARED])
        return {
            "clock_close": clock.close,
            "random": random.stdout.split(),
            "machine_id": await self._line(shell, "cat /etc/machine-id"),
            "hostname": await self._line(shell, "hostname"),
            "host_key": await self._line(shell, "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key"),
            "journal": await self._line(shell, "ls /run/log/journal"),
            "boots": await self._line(shell, "journalctl --no-pager -q | grep -c 'Linux version' || :"),
            "mac": await self._line(shell, "cat /sys/class/net/eth0/address"),
            "hosts": await self._line(shell, "cat /etc/hosts"),
            "prepared": prepared.stdout.split()[0],
        }

    async def _line(self, shell: SshShell, command: str) -> str:
        return (await shell.run(["sh", "-c", command])).stdout.strip()

    async def write_apart(self) -> dict[str, Any]:
        """One clone writes to its disk, to the very end; another, and the saved disk, know nothing of it."""
        before = digest(self.saved / "disk.qcow2")
        first, second = (self.shells[one.name] for one in self.specs[:2])
        await first.run(["sh", "-c", f"echo mine > {PREPARED}; echo mine > /srv/own; sync"])
        seen = await second.run(["sh", "-c", f"test -e /srv/own && echo theirs; sha256sum {PREPARED}"])
        return {"seen": seen.stdout.split(), "saved_disk_stays": digest(self.saved / "disk.qcow2") == before}

    async def refusals(self) -> dict[str, Any]:
        """What a damaged, a foreign and a called-off state say, and what is left of them."""
        good, bad = self.specs[:2]
        foreign = replace(good, resources=good.resources.model_copy(update={"cache": "writethrough", "vcpus": 2}))
        saved = self._saved_for_all()
        # The first is given digests of what it is now, so that QEMU itself has to find out.
        cut = self._copy("cut")
        os.truncate(cut / "ram", (cut / "ram").stat().st_size * 2 // 3)
        damaged = {"truncated": Saved.now(cut)}
        for name, file, offset in (("flipped", "ram", None), ("headless", "disk.qcow2", 0)):
            damaged[name] = Saved.now(self._copy(name))
            flip(damaged[name].folder / file, offset)
        return {
            **{
                name: await self._refused(self.hypervisor.restore(self.image, [good, bad], {**saved, bad.name: one}))
                for name, one in damaged.items()
            },
            "foreign": await self._refused(self.hypervisor.restore(self.image, [foreign], saved)),
            "called_off": await self._refused(self._called_off(saved)),
        }

    def _saved_for_all(self) -> dict[str, Saved]:
        return dict.fromkeys((one.name for one in self.specs), Saved.now(self.saved))

    def _copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.saved, self.saved.with_name(name)))

    async def _called_off(self, saved: dict[str, Saved]) -> None:
        restoring = asyncio.ensure_future(self.hypervisor.restore(self.image, self.specs, saved))
        await asyncio.sleep(0.3)
        restoring.cancel()
        try:
            await restoring
        except asyncio.CancelledError:
            raise HypervisorError("called off") from None

    async def _refused(self, attempt: Awaitable[None]) -> dict[str, Any]:
        try:
            await attempt
        except HypervisorError as error:
            left = sorted((await self.hypervisor.statistics.domain_stats()).quick.found)
            return {
                "error": type(error).__name__,
                "said": str(error),
                "running": left,
                "overlays": self.overlays(),
                "snapshot": getattr(error, "snapshot", None),
            }
        return {"error": "", "said": "it worked"}

    def overlays(self) -> list[str]:
        """Guests' disks that are there."""
        return sorted(path.name for path in self.disks.glob("*.qcow2"))


def digest(file: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def holdings() -> dict[str, int]:
    """What this process holds: descriptors and QEMUs."""
    qemus = [process for process in psutil.process_iter(["name"]) if process.info["name"].startswith(PROGRAMS)]
    return {"descriptors": psutil.Process().num_fds(), "qemus": len(qemus)}


async def main(runtime: str, folder: str) -> None:
    """Freeze, clone, write, be refused; one line of JSON."""
    lab = Lab(Path(runtime), Path(folder))
    await lab.hypervisor.open()
    said: dict[str, Any] = {"frozen": await lab.freeze()}
    before = holdings()
    said["cloned"] = await lab.clone()
    said["apart"] = await lab.write_apart()
    for shell in lab.shells.values():
        await shell.close()
    await lab.hypervisor.destroy([one.name for one in lab.specs])
    said["refused"] = await lab.refusals()
    said["held"] = [before, holdings()]
    await lab.hypervisor.close()
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
