"""The words behind figures of a host that is not as it was bought: what a scenario ordered in place of a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EMULATED_DISK = "emulated disk"


def ordered_words(host: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands behind every figure of a run on `host`, the facts of its document; nothing for a host as it is."""
    disk = host.get("disk") or {}
    return (EMULATED_DISK,) if disk.get("emulated") else ()


def ordered_sentences(host: Mapping[str, Any]) -> tuple[str, ...]:
    """The same as sentences, for a heading."""
    disk = host.get("disk") or {}
    if not disk.get("emulated"):
        return ()
    return (f"{EMULATED_DISK} {disk['profile']}: figures of disks describe a model of a disk, not the host's own",)
