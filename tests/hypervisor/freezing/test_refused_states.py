"""Whatever has to read a snapshot and refuses it, the snapshot is named, so that it is made again."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import Saved, spec
from vmlab.hypervisor import frozen_guest, libvirt_hypervisor
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.model.errors import DeadlineExceeded, HypervisorError, RefusedError, SnapshotError, VmlabError
from vmlab.model.names import RAM

IMAGE = BootImage(Path("/none"), Path("/none"), Path("/none"), "")


class DomainWatch:
    """Knows of no kill."""

    def pid_of(self, _name: str, _domain: object) -> int:
        return 1

    async def kill_of(self, _pid: int) -> None:
        return None


class Refusing(EmbeddedHypervisor):
    """Refuses at one step of a restore; there is no libvirt below it."""

    def __init__(self, folder: Path, step: str, error: VmlabError) -> None:
        super().__init__(folder / "r", folder / "disks", "lab")
        self.watch = DomainWatch()  # type: ignore[assignment]
        self.step = step
        self.error = error
        self.destroyed: list[str] = []

    async def _ready_for(self, *_arguments: Any) -> Any:
        return None

    async def facts(self) -> dict[str, Any]:
        return {}

    async def destroy(self, names: list[str]) -> None:
        self.destroyed += names

    async def _start(self, *_arguments: Any) -> Any:
        if self.step == "start":
            raise self.error
        return None


def refusing(
    monkeypatch: pytest.MonkeyPatch, folder: Path, step: str, error: VmlabError
) -> tuple[Refusing, Coroutine[Any, Any, None]]:
    async def read_state(*_arguments: Any) -> None:
        raise error

    monkeypatch.setattr(frozen_guest, "layout", lambda *_arguments: {})
    monkeypatch.setattr(frozen_guest, "require_fitting", lambda *_arguments: None)
    monkeypatch.setattr(libvirt_hypervisor, "read_state", read_state)
    saved = folder / "web-123"
    saved.mkdir()
    (saved / RAM).touch()
    hypervisor = Refusing(folder, step, error)
    return hypervisor, hypervisor.restore(IMAGE, [spec()], {spec().name: Saved.now(saved)})


@pytest.mark.parametrize("step", ["start", "load"])
@pytest.mark.parametrize(
    "error",
    [
        HypervisorError("unable to execute QEMU command 'cont': cannot allocate 1073741824 bytes for jit buffer"),
        HypervisorError("XML error: name 'a b' cannot contain a line break"),
        HypervisorError("qemu-img could not make it: Could not open backing file: Too many open files"),
        HypervisorError("load of migration failed: Cannot allocate memory"),
        DeadlineExceeded("loading took longer than 180 s"),
    ],
    ids=["no memory to start", "libvirt refuses the XML", "open files", "no memory to load", "deadline"],
)
async def test_a_fault_of_the_surroundings_leaves_the_snapshot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str, error: VmlabError
) -> None:
    hypervisor, restoring = refusing(monkeypatch, tmp_path, step, error)
    with pytest.raises(HypervisorError, match=f"web-1: cannot be restored from web-123: {error}") as caught:
        await restoring
    assert not isinstance(caught.value, SnapshotError) and hypervisor.destroyed == ["web-1"]


@pytest.mark.parametrize("step", ["start", "load"])
@pytest.mark.parametrize(
    "error",
    [
        HypervisorError("qemu-img could not make it: Image is not in qcow2 format"),
        HypervisorError("load of migration failed: Input/output error"),
    ],
)
async def test_a_refusal_names_the_snapshot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str, error: VmlabError
) -> None:
    hypervisor, restoring = refusing(monkeypatch, tmp_path, step, error)
    with pytest.raises(SnapshotError, match=f"web-1: snapshot web-123 does not load: {error}") as caught:
        await restoring
    assert caught.value.snapshot == "web-123" and hypervisor.destroyed == ["web-1"]


async def test_damage_keeps_its_own_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    damage = SnapshotError("snapshot web-123 is damaged: ram is not what it was", snapshot="web-123")
    _, restoring = refusing(monkeypatch, tmp_path, "load", damage)
    with pytest.raises(SnapshotError) as caught:
        await restoring
    assert caught.value is damage


async def test_a_full_disk_is_not_the_snapshots_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, restoring = refusing(monkeypatch, tmp_path, "start", RefusedError("no room for guests' disks"))
    with pytest.raises(RefusedError, match="no room"):
        await restoring
