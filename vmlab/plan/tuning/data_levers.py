"""The levers of a data disk that `vmlab tune` compares, in one table: the keys that each sets at its two levels.

Keys of which one value excludes values of another, as O_DIRECT and the modes that go without it, are one lever. A
lever of which a guest or its work can have no effect says why, and so does one whose other level the guest's other keys
exclude.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmlab.model.axes import axis_word
from vmlab.model.errors import UsageError
from vmlab.model.run import AxisValue
from vmlab.model.scenarios.scenario import Guest
from vmlab.plan.scenario_file.problems import meant, shorten
from vmlab.plan.tuning.screening_design import FEWEST_LEVERS
from vmlab.workloads.kinds.fio import FioParams
from vmlab.workloads.workload_steps import WorkloadParams

Keys = Mapping[str, Any]
"""Keys of a guest with values as a scenario writes them; None leaves a choice to the guest's kernel."""
_OF_DATA = "data_"
_QUEUES, _IO = "data_queues", "data_io"
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


def _allocated_otherwise(asked: Asked) -> str:
    guest, place = asked.guest, asked.guest.data_place
    if place is not None and place.kind in ("lvm", "rbd"):
        return f"{guest.backing} allocates its room in its own way"
    return "a qcow2 disk is not allocated as a raw one is" if guest.data_format == "qcow2" else ""


@dataclass(frozen=True, slots=True)
class DataLever:
    """A lever: the keys of a guest that says nothing of them (`usual`), and at its `other` level.

    `useless` says in words why it can have no effect; empty where it can. Its other level does not go with that of the
    lever `without`.
    """

    name: str
    usual: Keys
    other: Keys
    useless: Callable[[Asked], str] = lambda asked: ""
    without: str = ""


DATA_LEVERS = (
    DataLever("cache", {"data_cache": "writeback", _IO: "threads"}, {"data_cache": "none", _IO: "native"}),
    DataLever("iothread", {"data_iothread": False}, {"data_iothread": True}),
    DataLever("bus", {"data_bus": "virtio"}, {"data_bus": "scsi"}),
    DataLever("queues", {_QUEUES: 1}, {_QUEUES: 4}, _one_cpu),
    DataLever("read_ahead", {"read_ahead": None}, {"read_ahead": "4 MiB"}, _reads_ahead_nothing),
    DataLever("format", {"data_format": "raw"}, {"data_format": "qcow2"}),
    DataLever("allocation", {"allocation": "thin"}, {"allocation": "full"}, _allocated_otherwise, without="format"),
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

    Raises UsageError for a name that there is not, a lever that can have no effect or that the guest's other keys
    exclude, and too few of them.
    """
    known = {lever.name: lever for lever in DATA_LEVERS}
    for name in names or ():
        if name not in known:
            raise UsageError(f"--levers: there is no lever {shorten(name)!r}; {meant(name, known)}")
        if why := known[name].useless(asked):
            raise UsageError(f"--levers: {name} can have no effect here: {why}")
        if why := _excluded(known[name], written, asked):
            raise UsageError(f"--levers: the guest excludes {name}: {why}")
        if known[name].without in (names or ()):
            raise UsageError(f"--levers: {name} and {known[name].without} exclude each other")
    wanted = [lever for lever in DATA_LEVERS if names is None or lever.name in names]
    reasons = {lever.name: lever.useless(asked) or _excluded(lever, written, asked) for lever in wanted}
    left_out = {name: why for name, why in reasons.items() if why}
    for lever in wanted:
        if lever.without in {one.name for one in wanted} - left_out.keys():
            left_out.setdefault(lever.name, f"it does not go with {lever.without}; --levers names one of them")
    found = [two_levels(lever, written, asked) for lever in wanted if lever.name not in left_out]
    if len(found) < FEWEST_LEVERS:
        raise UsageError(
            f"--levers: a screening takes {FEWEST_LEVERS} levers or more; one alone can be an axis of a scenario"
        )
    return found, [*left_out.items()]


def two_levels(lever: DataLever, written: Keys, asked: Asked) -> TwoLevels:
    """What a guest `written` so has of a lever, against its other level, or the usual one where it has that.

    The first key of the lever tells which it has.
    """
    usual, other = ({k: v for k, v in side.items() if _has(asked, k)} for side in (lever.usual, lever.other))
    if _QUEUES in other:
        other[_QUEUES] = min(other[_QUEUES], asked.vcpus)
    own = {key: _got(written, key) if key.startswith(_OF_DATA) else written.get(key, usual[key]) for key in usual}
    if _QUEUES in own:
        own[_QUEUES] = min(own[_QUEUES], asked.vcpus)
    first = next(iter(other))
    has_other = _got(written, first) == _got({**written, **other}, first)
    return TwoLevels(lever.name, own, usual if has_other else other)


def _excluded(lever: DataLever, written: Keys, asked: Asked) -> str:
    """Why a guest `written` so cannot have the other level; empty where it can."""
    guest = _guest({**written, **two_levels(lever, written, asked).other})
    return next((why for _, why in guest.conflicts()), "")


def _has(asked: Asked, key: str) -> bool:
    """Whether the guest's data disk can have a key; QEMU itself talks to a pool."""
    return key != _IO or asked.guest.pool is None


def _got(written: Keys, key: str) -> Any:
    """What the data disk of a guest `written` so has of a key; as the first disk where nothing is said."""
    guest = _guest(written)
    found, of_all = getattr(guest, _FIELDS[key]), key.removeprefix(_OF_DATA)
    return getattr(guest, of_all) if found is None and of_all != key else found


def _guest(written: Keys) -> Guest:
    return Guest.model_validate_json(json.dumps(dict(written)))


def level_words(keys: Keys) -> str:
    """``cache=none, io=native``: what a level sets, in the words of QEMU and libvirt."""
    return ", ".join(f"{key.removeprefix(_OF_DATA)}={_value_word(value)}" for key, value in keys.items())


def _value_word(value: AxisValue | None) -> str:
    return "kernel's" if value is None else axis_word(value)
