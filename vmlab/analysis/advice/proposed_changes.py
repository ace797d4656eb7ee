"""What a run that copied a load proposes to change of the VM, and what is lost with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vmlab.analysis.advice.likeness import Copied
from vmlab.model.jsonable import jsonable
from vmlab.model.run import CACHE_FLAGS, CACHE_MODES, CacheMode

_LOST = {
    "cached": "the host's page cache no longer keeps what the guest reads again, and gives that memory back",
    "safe": "a write is on the disk only once the guest has flushed it; before, each was there when it was answered",
    "direct": "data that the guest has not flushed are lost if the host crashes, as with a disk's own cache; with a "
    "QEMU from before 4.0 libvirt refuses to migrate the running guest unless it is told --unsafe, and newer ones drop "
    "the host's cache of the disk at the end of a migration",
}
"""By what the mode of before had and the new one has not."""


@dataclass(frozen=True, slots=True)
class Change:
    """A `setting` that answered better: the attributes of the disk's ``<driver>``, and what is `lost`, in sentences."""

    setting: str
    driver: Mapping[str, str]
    lost: tuple[str, ...]


def changes_of(found: Copied) -> list[Change]:
    """One for each setting that is `better`."""
    return [_change(setting, found.changed.get(setting, {}), found.mode) for setting in found.better]


def _change(setting: str, keys: Mapping[str, Any], before: CacheMode | None) -> Change:
    driver = {name: str(keys[f"data_{name}"]) for name in ("cache", "io") if keys.get(f"data_{name}") is not None}
    after = next((mode for mode in CACHE_MODES if mode == driver.get("cache")), None)
    lost = () if before is None or after is None else tuple(lost_words(before, after))
    return Change(setting, driver, lost)


def lost_words(before: CacheMode, after: CacheMode) -> Iterator[str]:
    """What is lost where a disk has another cache mode than before."""
    was, is_now = CACHE_FLAGS[before], CACHE_FLAGS[after]
    lost = {
        "cached": is_now.direct and not was.direct,
        "safe": is_now.writeback and not was.writeback,
        "direct": was.direct and not is_now.direct,
    }
    yield from (words for name, words in _LOST.items() if lost[name])


def copied_document(found: Copied) -> dict[str, Any]:
    """The document ``vmlab.advice/1`` of a run that copied a load."""
    recorded = found.recorded
    ways = [{**asdict(one), "alike": one.alike} for one in found.ways]
    return {
        "schema": "vmlab.advice/1",
        "run": found.run,
        "copied": {
            "recording": recorded.run,
            "domain": recorded.domain,
            "disk": recorded.disk,
            "advice": recorded.advice,
            "is_likeness": found.is_likeness,
            "ways": ways,
            "answers": [jsonable(one) for one in found.answers],
            "changes": [jsonable(one) for one in changes_of(found)],
        },
    }
