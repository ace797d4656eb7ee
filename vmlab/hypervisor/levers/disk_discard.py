"""`data_discard`: whether what a guest discards is given back to the host.

QMP does not say it. So the guest writes some megabytes to the empty disk and discards them (`data_disk.sh`), and the
host looks whether its image has them still, before there is a file system.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu
from vmlab.hypervisor.open_files import file_below
from vmlab.model.errors import HypervisorError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import TRIMMED_BYTES, DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_ENOUGH = 30.0


class DiscardLever(GuestLever):
    """The attribute ``discard`` of a disk's driver."""

    keys = ("data_discard",)
    early = True

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """In place of what follows from the allocation."""
        for driver in disk.iterfind("driver"):
            if place == "data" and asked.data_discard is not None:
                driver.set("discard", asked.data_discard)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the bytes that are left of what was discarded."""
        asked = qemu.asked
        if asked.data_bytes is not None and asked.data_discard is not None:
            file, found = qemu.file_of("data"), MISSING
            if file is not None:
                kept = _has_data(file_below(file.name) or file, qemu.asked.data_format)
                found = "ignore" if kept else "unmap"
            by = f"qemu-img map, after the guest has discarded {format_bytes(TRIMMED_BYTES)}"
            yield qemu.proof("data_discard", asked.data_discard, found, by)


def _has_data(file: Path, kind: str) -> bool:
    """Whether anything of the bytes that were discarded is allocated. Raises HypervisorError, OSError."""
    argv = ["qemu-img", "map", "-U", "-f", kind, "--output=json", f"--max-length={TRIMMED_BYTES}", str(file)]
    try:
        mapped = subprocess.run(argv, capture_output=True, text=True, timeout=_ENOUGH, check=True)
        return any(one["data"] for one in json.loads(mapped.stdout))
    except (subprocess.SubprocessError, ValueError, LookupError) as error:
        raise HypervisorError(f"cannot see what of {file.name} is allocated: {error}") from error


LEVER = DiscardLever()
