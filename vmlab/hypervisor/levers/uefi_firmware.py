"""The UEFI firmware that this host has for QEMU, by the files that libvirt reads too (docs/interop/firmware.json)."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDERS = (Path("/etc/qemu/firmware"), Path("/usr/share/qemu/firmware"))
"""The host's own before those of packages; of two files of one name the first one counts."""
_MOST_BYTES = 2**16
_SECURE = {"secure-boot", "requires-smm", "enrolled-keys"}
_BOARDS = ("pc-i440fx-", "pc-q35-")


def uefi_loader() -> Path | None:
    """The flash image of the first one that is for both boards and does without Secure Boot; None without any."""
    files = {file.name: file for folder in reversed(FOLDERS) for file in folder.glob("*.json")}
    for _, file in sorted(files.items()):
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            if (found := _flash_of(file)) is not None:
                return found
    return None


def _flash_of(file: Path) -> Path | None:
    with file.open("rb") as opened:
        described: dict[str, Any] = json.loads(opened.read(_MOST_BYTES))
    boards = [m for one in described["targets"] if one["architecture"] == "x86_64" for m in one["machines"]]
    mapping = described["mapping"]
    fits = "uefi" in described["interface-types"] and mapping["device"] == "flash"
    fits = fits and mapping.get("mode") != "combined" and mapping["executable"].get("format") == "raw"
    fits = fits and all(any(one.startswith(board) for one in boards) for board in _BOARDS)
    if not fits or not _SECURE.isdisjoint(described["features"]):
        return None
    flash = Path(mapping["executable"]["filename"])
    return flash if flash.is_file() else None
