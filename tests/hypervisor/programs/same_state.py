"""The guests of one cell restored twice, as two runs would; tells what each guest holds as one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from vmlab.guests.channel import GuestShell
from vmlab.guests.helper_shell import HelperShell
from vmlab.guests.image.building import ensure
from vmlab.guests.image.catalog import load as load_image
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.lab.provision.disk_integrity import Integrity
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.lab.provision.snapshot_provider import SnapshotProvider
from vmlab.model.concurrency import run_all
from vmlab.plan.hosting import read_host_facts
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load
from vmlab.plan.terms import Overrides, Plan
from vmlab.workloads.services import DATABASE

_DUMPS = {
    # pg_dump writes a random word into each dump, for psql to check.
    "postgresql": rf"cd /; runuser -u postgres -- pg_dump {DATABASE} | grep -vE '^\\(un)?restrict '",
    "mariadb": "mysqldump --all-databases --skip-dump-date --order-by-primary",
}
_SUMS = {
    "data": "find /srv /home/lab -type f -print0 | sort -z | xargs -0r sha256sum",
    "packages": "dpkg-query -W",
    "settings": "find /etc -xdev -type f ! -name machine-id ! -path '/etc/ssh/*' ! -name hosts ! -name hostname"
    " -print0 | sort -z | xargs -0r sha256sum",
}
_OWN = {"machine_id": "cat /etc/machine-id", "host_key": "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key"}


async def look(shell: GuestShell, roles: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 of what a guest holds, by what it is, and what is its own."""
    sums = dict(_SUMS)
    if "database" in roles:
        sums["postgresql"] = _DUMPS["postgresql"]
    if "web" in roles:
        sums["mariadb"] = _DUMPS["mariadb"]
    found = {}
    for what, command in sums.items():
        script = f"set -o pipefail; ({command}) | tee >(wc -c >&2) | sha256sum"
        said = await shell.run(["bash", "-c", script], deadline=240)
        found[what] = f"{said.stdout.split()[0]} of {said.stderr.strip()} bytes"
    for what, command in _OWN.items():
        found[what] = (await shell.run(["sh", "-c", command])).stdout.strip()
    return found


async def one_run(name: str, plan: Plan, hypervisor: EmbeddedHypervisor, image: BootImage) -> dict[str, Any]:
    """Restore the guests of the plan's first cell and look into each."""
    cell = plan.cells[0]
    guests = GuestSet(name, cell, hypervisor, image, lambda _guest, _state: None)
    integrity = Integrity(load_image(image.disk.parent), lambda _event: None)
    snapshot_provider = SnapshotProvider(hypervisor, image, plan.seed, lambda _event: None, integrity)
    async with snapshot_provider.frozen(cell, guests.specs) as snapshots:
        await guests.restore(snapshots)
        shells = [guests.shells[guest.key] for guest in cell.guests]
        assert all(isinstance(shell, HelperShell) for shell in shells)
        looks = (look(shell, guest.roles) for shell, guest in zip(shells, cell.guests, strict=True))
        held = await run_all(looks)
        await guests.destroy()
    return {
        guest.guest: {"snapshot": snapshots[guest.key].sha256, **found}
        for guest, found in zip(cell.guests, held, strict=True)
    }


async def main(runtime: str, folder: str, scenario: str) -> None:
    """Two runs of one cell; one line of JSON."""
    built = ensure(lambda _text: None)
    image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    plan = make_plan(load(scenario), Overrides(size="smoke", cache=("none",)), read_host_facts(Path(folder)))
    hypervisor = EmbeddedHypervisor(Path(runtime), Path(folder) / "disks", "test", kernel=image.kernel)
    await hypervisor.open()
    runs = [await one_run(f"run-{number}", plan, hypervisor, image) for number in (1, 2)]
    await hypervisor.close()
    sys.stdout.write(json.dumps(runs) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
