"""A run's assets on their way to its hosts: each is sent to those that lack it, as one file for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from vmlab.fleet.host_answers import Lacking
from vmlab.fleet.link import HostLink
from vmlab.guests.sent_assets import id_of
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.asset import Asset
from vmlab.model.errors import CommandFailed
from vmlab.model.visible import visible_line
from vmlab.system.removal import named
from vmlab.workloads.assets import packed

_READ_SECONDS = 600.0
"""How long a host may take to read its own copies."""


class AssetFiles:
    """Archives in the folder `disks` of the controller's run; they are in its journal, which is swept at its end."""

    def __init__(self, folder: RunFolder, assets: Iterable[Asset]) -> None:
        self._folder = folder
        self._assets = {one.name: one for one in assets}
        self._written: dict[str, Path] = {}
        self._writing = asyncio.Lock()

    @property
    def described(self) -> list[dict[str, str]]:
        """What a host needs to find them."""
        return [{"name": one.name, "path": one.path, "sha256": one.sha256} for one in self._assets.values()]

    async def send_lacking(self, link: HostLink, notice: Callable[[str], object]) -> None:
        """Send a host what it lacks; `notice` takes a line for each.

        Raises HostLost, CommandFailed where the host does not keep it, WorkloadError where the user's copy has changed
        since the run was asked for, StoreError and OSError where it cannot be written here.
        """
        if not self._assets:
            return
        lacking = await link.ask(Lacking, "lacking", assets=self.described, deadline=_READ_SECONDS)
        for name in dict.fromkeys(lacking.names):
            if name not in self._assets:
                raise CommandFailed(f"host {link.name} answered nonsense to lacking: names: {visible_line(name[:80])}")
            file = await self._file(self._assets[name])
            notice(f"asset {name} is sent to host {link.name}")
            await link.send("asset", id_of(name, self._assets[name].sha256), file)

    async def _file(self, asset: Asset) -> Path:
        async with self._writing:
            if asset.name not in self._written:
                path = self._folder.disks / f"{asset.name}.tar"
                await asyncio.to_thread(self._write, path, asset)
                self._written[asset.name] = path
        return self._written[asset.name]

    def _write(self, path: Path, asset: Asset) -> None:
        Journal(self._folder.journal).add(JournalEntry("file", str(path)))
        with named(path):
            path.write_bytes(packed(asset))
