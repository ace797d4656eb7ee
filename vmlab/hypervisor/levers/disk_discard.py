"""`data_discard`: whether what a guest discards is given back to the host.

QMP does not say it. So the guest writes a megabyte near the end of the empty disk and discards it (`data_disk.sh`), and
the host looks whether its image has it still.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.errors import HypervisorError
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import TRIMMED_BYTES, TRIMMED_FROM_END, DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_ENOUGH = 30.0


class DiscardLever(GuestLever):
    """The attribute ``discard`` of a disk's driver."""

    keys = ("data_discard",)

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """In place of what follows from the allocation."""
        for driver in disk.iterfind("driver"):
            if place == "data" and asked.data_discard is not None:
                driver.set("discard", asked.data_discard)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the bytes that are left of what was discarded."""
        asked = qemu.asked
        if asked.data_bytes is not None and asked.data_discard is not None:
            image = qemu.inserted("data")["image"]
            kept = _has_data(_file_of(Path(image["filename"])), image["format"], asked.data_bytes - TRIMMED_FROM_END)
            by = "qemu-img map, after the guest discarded 1 MiB"
            yield qemu.proof("data_discard", asked.data_discard, "ignore" if kept else "unmap", by)


def _file_of(place: Path) -> Path:
    """The file below a loop device; any other place itself."""
    below = Path("/sys/block") / place.name / "loop/backing_file"
    return Path(below.read_text().rstrip("\n")) if place.parent == Path("/dev") and below.exists() else place


def _has_data(file: Path, kind: str, start: int) -> bool:
    """Whether anything of the bytes that were discarded is allocated. Raises HypervisorError, OSError."""
    argv = ["qemu-img", "map", "-U", "-f", kind, "--output=json"]
    argv += [f"--start-offset={start}", f"--max-length={TRIMMED_BYTES}", str(file)]
    try:
        mapped = subprocess.run(argv, capture_output=True, text=True, timeout=_ENOUGH, check=True)
        return any(one["data"] for one in json.loads(mapped.stdout))
    except (subprocess.SubprocessError, ValueError, LookupError) as error:
        raise HypervisorError(f"cannot see what of {file.name} is allocated: {error}") from error


LEVER = DiscardLever()
