"""Closing and calling off where something goes wrong meanwhile: nothing stays open, and nothing runs on beside it."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from vmlab.hypervisor import embedded, libvirt_hypervisor
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.libvirt.libvirt_root import LibvirtRoot
from vmlab.model.errors import HypervisorError


class Connection:
    """libvirt's, without libvirt and without guests."""

    closed = False

    def getAllDomainStats(self, *_arguments: Any) -> list[Any]:
        return []

    def close(self) -> None:
        self.closed = True


async def test_a_full_cache_disk_costs_a_notice_and_nothing_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_root: LibvirtRoot, known: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(known))

    gone: list[str] = []
    notices: list[str] = []
    monkeypatch.setattr(LibvirtRoot, "remember", refuses)
    monkeypatch.setattr(embedded, "remove_bridge", lambda: gone.append("bridge"))
    monkeypatch.setattr(libvirt_hypervisor, "sweep", lambda *_arguments: gone.append("journal"))
    hypervisor = EmbeddedHypervisor(tmp_path / "r", tmp_path / "d", "lab", notices.append)
    connection = hypervisor._connection = Connection()
    await hypervisor.close()
    assert connection.closed
    assert gone == ["bridge", "journal"]
    (notice,) = notices
    assert notice.startswith("what libvirt learned about QEMU cannot be kept: ") and "No space left" in notice


async def test_guests_of_a_start_that_failed_are_gone_before_a_cancellation_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def takes_a_while(_hypervisor: EmbeddedHypervisor, _names: list[str]) -> None:
        begun.set()
        await asyncio.sleep(0.2)
        gone.set()

    async def does_not_start() -> None:
        raise HypervisorError("web-1: starting: no room")

    monkeypatch.setattr(EmbeddedHypervisor, "destroy", takes_a_while)
    hypervisor = EmbeddedHypervisor(tmp_path / "r", tmp_path / "d", "lab")
    starting = asyncio.ensure_future(hypervisor._all_or_none([], [does_not_start()]))
    await begun.wait()
    for _ in range(2):
        starting.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert gone.is_set()
