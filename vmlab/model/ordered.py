"""The words behind figures of a host that is not as it was bought: what a scenario ordered in place of a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

EMULATED_DISK = "emulated disk"


def ordered_words(host: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands behind every figure of a run on `host`, the facts of its document; nothing for a host as it is."""
    disk = host.get("disk") or {}
    return (EMULATED_DISK,) if disk.get("emulated") else ()


def all_ordered_words(hosts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The words of several hosts, each once."""
    return tuple(dict.fromkeys(word for host in hosts for word in ordered_words(host)))


def ordered_title(title: str, words: Sequence[str]) -> str:
    """The title of a chart, with the words behind its figures."""
    return ", ".join([title, *words])


def ordered_sentences(host: Mapping[str, Any]) -> tuple[str, ...]:
    """The same as sentences, for a heading."""
    disk = host.get("disk") or {}
    if not disk.get("emulated"):
        return ()
    return (f"{EMULATED_DISK} {disk['profile']}: figures of disks describe a model of a disk, not the host's own",)
