"""A dummy of /sys with the host's KSM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.settings_keeper import SettingsKeeper, Tell
from vmlab.lab.cell.live_switch import HostKsm
from vmlab.lab.process.run_folder import RunFolder
from vmlab.telemetry.source import Roots

KSM = "kernel/mm/ksm"
BEFORE = {"run": "0", "pages_to_scan": "100", "sleep_millisecs": "500", "pages_sharing": "0"}


class Sys:
    """A dummy of /sys, and keepers of its settings."""

    def __init__(self, folder: Path) -> None:
        self.roots = Roots(sys=folder / "sys")
        self._folder = folder
        (folder / "sys" / KSM).mkdir(parents=True)
        for name, value in BEFORE.items():
            self.write(name, value)

    def write(self, name: str, value: str) -> None:
        (self.roots.sys / KSM / name).write_text(value)

    def now(self, name: str = "run") -> str:
        return (self.roots.sys / KSM / name).read_text()

    def ksm(self, **others: Any) -> HostKsm:
        return HostKsm(self.keeper(Journal(self._folder / "journal.jsonl"), self._folder, list, list), **others)

    def keeper(self, journal: Journal, folder: Path, tell: Tell, warn: Tell) -> SettingsKeeper:
        return SettingsKeeper(journal, folder, tell, warn, self.roots)

    def of_run(self, folder: RunFolder, tell: Tell, warn: Tell) -> SettingsKeeper:
        return self.keeper(Journal(folder.journal), folder.disks, tell, warn)
