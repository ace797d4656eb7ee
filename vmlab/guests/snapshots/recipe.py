"""What a frozen guest depends on. Its key is a digest of this and of nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from vmlab.guests.image.catalog import FILES, IMAGES

FORMAT = 1
"""Increased when guests are frozen in another way that the other fields do not show."""

_PROGRAMS = ("identity.pl", "empty.sh", "settle.sh")
"""What runs in every guest before it is frozen, apart from its preparation."""


@dataclass(frozen=True, slots=True)
class SnapshotRecipe:
    """All that a frozen guest depends on.

    `image` is the digest of its root disk, see `image_digest`. `machine` describes its hardware, and `preparation` what
    was done to it and by which code, both as JSON values. `roles` are its own, sorted by this class; they name it, too.
    """

    image: str
    machine: Mapping[str, Any]
    roles: tuple[str, ...]
    preparation: Any

    def described(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return {
            "format": FORMAT,
            "settled_by": _settled_by(),
            "image": self.image,
            "machine": dict(self.machine),
            "roles": sorted(self.roles),
            "preparation": self.preparation,
        }

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        canonical = json.dumps(self.described(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def id(self) -> str:
        """The roles and twelve digits of the key, such as ``mail-web-0a1b2c3d4e5f``; the name of its folder."""
        return f"{'-'.join(sorted(self.roles)) or 'plain'}-{self.key[:12]}"


def image_digest(disk: Path) -> str:
    """SHA-256 of an image's root disk, as its manifest has it: an image that is built again keeps its old id.

    Raises ImageError where the manifest beside `disk` cannot be read.
    """
    return str(IMAGES.read(disk.parent)["files"][FILES[0]]["sha256"])


@cache
def _settled_by() -> str:
    digest = hashlib.sha256()
    for name in _PROGRAMS:
        digest.update(resources.files("vmlab.guests.payload").joinpath(name).read_bytes())
    return digest.hexdigest()
