"""The words behind figures that are not those of a host as it was bought: emulated CPUs, or parts that were ordered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vmlab.model.quantities import format_bytes
from vmlab.model.run import EMULATED

EMULATED_DISK = "emulated disk"
ORDERED_HOST = "ordered host"
"""The word of documents (JSON, CSV, JUnit), which programs compare; screens and texts say `LIMITED_HOST`."""
LIMITED_HOST = "limited host"

_NOTES = {
    EMULATED_DISK: "all values are from a host with an emulated disk",
    ORDERED_HOST: "all values are from a limited host: guests had a part of the host's CPUs and memory",
}


def ordered_words(host: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands behind every figure of a run on `host`, the facts of its document; nothing for a host as it is."""
    disk = host.get("disk") or {}
    return (*((EMULATED_DISK,) if disk.get("emulated") else ()), *((ORDERED_HOST,) if host.get("ordered") else ()))


def behind(accelerator: str | None, ordered: Iterable[str]) -> tuple[str, ...]:
    """What stands behind every figure of guests under `accelerator` on a host with these `ordered_words`."""
    return (*([EMULATED] if accelerator == EMULATED else []), *map(shown_word, ordered))


def shown_word(word: str) -> str:
    """How one of `ordered_words` is shown."""
    return LIMITED_HOST if word == ORDERED_HOST else word


def of_emulated_disk(figure: str, words: Sequence[str]) -> bool:
    """Whether the host's `figure` is one of an emulated disk, on a host with these `ordered_words`.

    Such a figure describes the disk's profile only while workloads run: between, its limits are lifted.
    """
    return EMULATED_DISK in words and figure.startswith("disk_")


def ordered_note(word: str) -> str:
    """A sentence on figures of which one of `ordered_words` is true."""
    return _NOTES[word]


def all_ordered_words(hosts: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The words of several hosts, each once."""
    return tuple(dict.fromkeys(word for host in hosts for word in ordered_words(host)))


def ordered_title(title: str, words: Sequence[str]) -> str:
    """The title of a chart, with the words behind its figures."""
    return ", ".join([title, *map(shown_word, words)])


def ordered_sentences(host: Mapping[str, Any]) -> tuple[str, ...]:
    """The same as sentences, for a heading."""
    disk, size = host.get("disk") or {}, host.get("ordered")
    found = []
    if disk.get("emulated"):
        what = "disk metrics describe a model of a disk, not the host's own"
        found.append(f"{EMULATED_DISK} {disk['profile']}: {what}")
    if size:
        found.append(f"{LIMITED_HOST} of {size_words(size['cpus'], size['memory_bytes'])}: all guests share these")
    return tuple(found)


def size_words(cpus: int | None, memory_bytes: int | None) -> str:
    """How large a host is ordered, such as ``2 CPUs and 4 GiB of memory``."""
    parts = [] if cpus is None else [f"{cpus} CPU{'s' * (cpus > 1)}"]
    if memory_bytes is not None:
        parts.append(f"{format_bytes(memory_bytes)} of memory")
    return " and ".join(parts)
