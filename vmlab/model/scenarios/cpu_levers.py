"""The keys of a guest on its virtual CPUs: how many, what they are, on which CPUs of the host they run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, WithJsonSchema

from vmlab.model.scenarios.scenario_part import matched

if TYPE_CHECKING:
    from vmlab.model.scenarios.guest import GuestAttributes


def _vcpus(value: object) -> object:
    if value == "host" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 256):
        return value
    raise ValueError("needs a whole number from 1 to 256, or the word host for as many as the host has")


Vcpus = Annotated[
    int | Literal["host"],
    BeforeValidator(_vcpus),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 256}, {"const": "host"}]}),
]


PIN_KEYS = ("pin", "emulator_pin")
UNPINNED = "none"
WAYS = ("spread", "packed")
"""Ways to pin of which a plan makes sets of CPUs, by the host's cores."""
_CPUS = "[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*"
_ONE_SET = re.compile(f"{UNPINNED}|{_CPUS}", re.ASCII)
_PINNED = re.compile(f"{UNPINNED}|{'|'.join(WAYS)}|{_CPUS}(;{_CPUS})*", re.ASCII)


def _one_set(value: object) -> object:
    return _written(value, _ONE_SET, "needs none, or CPUs of the host as libvirt writes them, such as 0-1,4")


def _pinned(value: object) -> object:
    wanted = "needs none, spread, packed, or CPUs of the host: for all virtual CPUs (0-3), or for each (0;1;2-3)"
    return _written(value, _PINNED, wanted)


def _written(value: object, form: re.Pattern[str], wanted: str, *, ranges: bool = True) -> str:
    # YAML reads a single CPU, and the model 486, as a number.
    text = matched(str(value) if type(value) is int else value, form, wanted)
    for first, last in re.findall(r"([0-9]+)-([0-9]+)", text if ranges else ""):
        if int(first) > int(last):
            raise ValueError(f"{wanted}; {first}-{last} ends before it begins")
    return text


def _schema(form: re.Pattern[str]) -> WithJsonSchema:
    text = {"type": "string", "pattern": f"^({form.pattern})$"}
    return WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, text]})


CpuSet = Annotated[str, BeforeValidator(_one_set), _schema(_ONE_SET)]
Pin = Annotated[str, BeforeValidator(_pinned), _schema(_PINNED)]


def pin_sets(pin: str) -> list[str]:
    """The sets of CPUs in a value of ``pin``: one for all virtual CPUs or one for each; none where it names none."""
    return [] if pin == UNPINNED or pin in WAYS else pin.split(";")


def pin_conflict(guest: GuestAttributes) -> str | None:
    """Why the virtual CPUs cannot have the sets that the key ``pin`` names."""
    sets = pin_sets(guest.pin)
    if len(sets) < 2 or guest.vcpus in (len(sets), "host"):
        return None
    return (
        f"pin has {len(sets)} sets of CPUs, and the guest {guest.vcpus} virtual CPUs; use one set for all, or as many"
    )


def queues_conflict(key: str) -> Callable[[GuestAttributes], str | None]:
    """Why the guest cannot use as many queues as `key` says."""

    def why(guest: GuestAttributes) -> str | None:
        queues = int(getattr(guest, key))
        if guest.vcpus == "host" or queues <= guest.vcpus or (key == "data_queues" and guest.data_bytes is None):
            return None
        return f"{key}: a guest uses at most one queue for each virtual CPU; use {guest.vcpus} or fewer, not {queues}"

    return why


class AskedCpu(NamedTuple):
    """A value of ``cpu``: the model, and the features that are added to it and taken from it."""

    model: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


HOST_CPU, MOST_CPU, LIKE_HOST_CPU = "host", "max", "host-model"
"""The host's own processor (KVM alone), all that QEMU can do, and the nearest model that libvirt knows."""
_FEATURE = "[+-][a-z0-9][a-z0-9_.-]{0,40}"
_CPU = re.compile(f"[A-Za-z0-9][A-Za-z0-9_.-]{{0,40}}( {_FEATURE})*", re.ASCII)


def read_cpu(text: str) -> AskedCpu:
    """The parts of a value of ``cpu``. Raises ValueError where it is not in order."""
    if not _CPU.fullmatch(text):
        raise ValueError(f"{text!r} is no CPU model with features")
    model, *features = text.split(" ")
    added, removed = (tuple(one[1:] for one in features if one[0] == sign) for sign in "+-")
    return AskedCpu(model, added, removed)


def _cpu(value: object) -> str:
    wanted = "needs host, max, host-model or a model of libvirt's, and features after it, such as EPYC -svm +aes"
    text = _written(value, _CPU, wanted, ranges=False)
    names = [one[1:] for one in text.split(" ")[1:]]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{wanted}; {twice[0]} is given twice")
    return text


Cpu = Annotated[str, BeforeValidator(_cpu), _schema(_CPU)]
