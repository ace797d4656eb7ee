"""What QEMU has flushed is on the disk when the power fails, in each cache mode but unsafe."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.disks import loop_devices
from vmlab.telemetry.setting_files import why_no_emulated_disk

pytestmark = pytest.mark.skipif(bool(why_no_emulated_disk()), reason=why_no_emulated_disk() or "there")

FLUSHED, NOT_FLUSHED, NOTHING = [0x5A], [0xA5], [0]


@pytest.mark.parametrize(
    ("mode", "flushed", "other"),
    [
        # The page cache had it, or the disk's own cache.
        ("writeback", FLUSHED, NOTHING),
        ("none", FLUSHED, NOTHING),
        # QEMU flushes after each write.
        ("writethrough", FLUSHED, NOT_FLUSHED),
        # QEMU passes no flush on, which shows that the disk does lose what it was not asked to keep.
        ("unsafe", NOTHING, NOTHING),
    ],
)
def test_a_power_cut_takes_what_was_not_flushed_and_nothing_else(
    isolated: Start, tmp_path: Path, mode: str, flushed: list[int], other: list[int]
) -> None:
    expected = {"flushed": flushed, "not flushed": other, "mounts": []}
    # Any sync on this machine, in the moment before the cut, keeps what would be lost; it cannot lose anything.
    found = [_after_a_cut(isolated, tmp_path / "first", mode)]
    while found[-1] != expected and len(found) < 3:
        found.append(_after_a_cut(isolated, tmp_path / f"again-{len(found)}", mode))
    assert found[-1] == expected
    kept = [name for name in ("flushed", "not flushed") if expected[name] != NOTHING]
    assert all(one[name] == expected[name] for one in found for name in kept)


def _after_a_cut(isolated: Start, folder: Path, mode: str) -> dict[str, Any]:
    for name in ("disks", "runtime"):
        (folder / name).mkdir(parents=True)
    program = isolated("power_cut", str(folder), mode)
    said, complaints = program.communicate(timeout=240)
    assert program.returncode == 0, complaints
    assert loop_devices.marked(loop_devices.mark_of(f"test-{folder.stat().st_ino}")) == []
    found: dict[str, Any] = json.loads(said)
    return found
