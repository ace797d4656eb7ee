"""The levers of a data disk that `vmlab tune` compares, in one table: the keys that each sets at its two levels.

Keys of which one value excludes values of another, as O_DIRECT and the modes that go without it, are one lever. A
lever of which a guest or its work can have no effect says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmlab.model.errors import UsageError
from vmlab.model.scenarios.scenario import Guest
from vmlab.plan.scenario_file.problems import meant, shorten
from vmlab.plan.tuning.screening_design import FEWEST_LEVERS
from vmlab.workloads.contract import WorkloadParams
from vmlab.workloads.kinds.fio import FioParams

Keys = Mapping[str, Any]
"""Keys of a guest with values as a scenario writes them; None leaves a choice to the guest's kernel."""
_QUEUES = "data_queues"
_CACHE = "data_cache"
_FIELDS = {field.alias or name: name for name, field in Guest.model_fields.items()}


@dataclass(frozen=True, slots=True)
class Asked:
    """The guest whose data disk is tuned, how many CPUs it has, and the parameters of the workloads that use it."""

    guest: Guest
    vcpus: int
    params: Sequence[WorkloadParams]


def _one_cpu(asked: Asked) -> str:
    return "" if asked.vcpus > 1 else "a guest uses at most one queue for each of its CPUs, and this one has one"


def _reads_ahead_nothing(asked: Asked) -> str:
    if all(isinstance(one, FioParams) and (one.direct or one.writes) for one in asked.params):
        return "a guest's kernel reads ahead of buffered reads alone, and there are none"
    return ""


def _in_pool(asked: Asked) -> str:
    return "" if asked.guest.pool is None else "an image in a pool is allocated by Ceph as it is written"


def _always(asked: Asked) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class DataLever:
    """A lever: the keys of a guest that says nothing of them (`usual`), and at its `other` level.

    `useless` says in words why it can have no effect; empty where it can.
    """

    name: str
    usual: Keys
    other: Keys
    useless: Callable[[Asked], str] = _always


DATA_LEVERS = (
    DataLever("cache", {_CACHE: "writeback"}, {_CACHE: "none"}),
    DataLever("queues", {_QUEUES: 1}, {_QUEUES: 4}, _one_cpu),
    DataLever("read_ahead", {"read_ahead": None}, {"read_ahead": "4 MiB"}, _reads_ahead_nothing),
    DataLever("allocation", {"allocation": "thin"}, {"allocation": "full"}, _in_pool),
)
"""All of them, the ones that users ask about most first."""


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """A lever as it is compared in one guest: what the guest has (`default`), and what stands against it."""

    name: str
    default: Keys
    other: Keys


def chosen_levers(
    written: Keys, asked: Asked, names: Sequence[str] | None
) -> tuple[list[TwoLevels], list[tuple[str, str]]]:
    """The levers that are named, or all that can have an effect in a guest `written` so; and those left out, with why.

    Raises UsageError for a name that there is not, a lever that can have no effect, and too few of them.
    """
    known = {lever.name: lever for lever in DATA_LEVERS}
    for name in names or ():
        if name not in known:
            raise UsageError(f"--levers: there is no lever {shorten(name)!r}; {meant(name, known)}")
        if why := known[name].useless(asked):
            raise UsageError(f"--levers: {name} can have no effect here: {why}")
    wanted = [lever for lever in DATA_LEVERS if names is None or lever.name in names]
    found = [two_levels(lever, written, asked.vcpus) for lever in wanted if not lever.useless(asked)]
    left_out = [(lever.name, why) for lever in wanted if (why := lever.useless(asked))]
    if len(found) < FEWEST_LEVERS:
        raise UsageError(
            f"--levers: a screening takes {FEWEST_LEVERS} levers or more; one alone can be an axis of a scenario"
        )
    return found, left_out


def two_levels(lever: DataLever, written: Keys, vcpus: int) -> TwoLevels:
    """What a guest `written` so has of a lever, against its other level, or the usual one where it has that."""
    guest = _guest(written, {})
    own = {key: guest.data_mode if key == _CACHE else written.get(key, usual) for key, usual in lever.usual.items()}
    other = {key: min(value, vcpus) if key == _QUEUES else value for key, value in lever.other.items()}
    has_other = _seen(written, {}, other) == _seen(written, other, other)
    return TwoLevels(lever.name, own, dict(lever.usual) if has_other else other)


def _guest(written: Keys, changed: Keys) -> Guest:
    return Guest.model_validate_json(json.dumps({**written, **changed}))


def _seen(written: Keys, changed: Keys, keys: Keys) -> tuple[object, ...]:
    """The values that a guest has of some keys."""
    guest = _guest(written, changed)
    return tuple(guest.data_mode if key == _CACHE else getattr(guest, _FIELDS[key]) for key in keys)


def level_words(keys: Keys) -> str:
    """``cache=none, io=native``: what a level sets, in the words of QEMU and libvirt."""
    return ", ".join(f"{key.removeprefix('data_')}={_value_word(value)}" for key, value in keys.items())


def _value_word(value: object) -> str:
    if value is None:
        return "kernel's"
    return str(value).lower() if isinstance(value, bool) else str(value)
