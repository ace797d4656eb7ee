"""Which claims of a publication a host and a size can answer at all: known before anything is measured.

A plan is asked, and a run's document afterwards, by the same rules: those of a claim's `needs`, and that guests under
emulation answer nothing about what virtualization costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmlab.model.names import HOST_PLACE
from vmlab.model.quantities import format_bytes, format_seconds, parse_bytes, parse_seconds
from vmlab.model.run import EMULATED, AxisValue
from vmlab.model.scenarios.axis import Scalar
from vmlab.model.scenarios.reference import Claim, Place, every_place, is_named, place_axes
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.scenario_file.problems import Problem, meant, shorten
from vmlab.plan.terms import AbsentPoint, CellPlan, HostFacts, Unanswerable
from vmlab.workloads.registry import kinds

_OF_EMULATION = f"emulated guests ({EMULATED}) show what emulation costs"


@dataclass(frozen=True, slots=True)
class ClaimHost:
    """What of a host decides which claims it can answer: its size, or the one that was ordered. None is not known."""

    accelerator: str | None
    cpus: int | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class ClaimCell:
    """A cell by its values of axes and its settings (`settings_of`); `virtual` if virtual machines take part."""

    axes: Mapping[str, AxisValue]
    settings: Mapping[str, Any]
    virtual: bool


def claims_without_answer(
    scenario: Scenario, once: Sequence[CellPlan], absent: Sequence[AbsentPoint], host: HostFacts
) -> dict[str, Unanswerable]:
    """Those of the scenario's claims that `once`, a cell of each point, cannot answer on this host, by sentence."""
    size = ClaimHost(
        host.accelerator_guess,
        scenario.host.cpus or host.cpus,
        scenario.host.memory_bytes or host.memory_total_bytes,
    )
    cells = [ClaimCell(cell.axes, settings_of(cell), bool(cell.guests)) for cell in once] if scenario.claims else []
    found = {claim.say: unanswerable(claim, cells, absent, size) for claim in scenario.claims}
    return {say: why for say, why in found.items() if why.because}


def unanswerable(
    claim: Claim, cells: Sequence[ClaimCell], absent: Sequence[AbsentPoint], host: ClaimHost
) -> Unanswerable:
    """Why the claim cannot be answered on this host with these cells; without a reason where it may be."""
    places = list(every_place(claim))
    at = [[cell for cell in cells if is_named(place, cell.axes)] for place in places]
    there = [cell for found in at for cell in found]
    if lacking := dict.fromkeys(_absent(places, absent)):
        # It says why already, such as for lack of CPUs.
        return Unanswerable(tuple(lacking))
    emulated = list(_emulated(claim, at, host))
    others = (*_too_few_cpus(claim, host), *_no_shortage(claim, there, host), *_too_small(claim, there))
    return Unanswerable((*emulated, *others), bool(emulated))


def _absent(places: Sequence[Place], absent: Sequence[AbsentPoint]) -> Iterator[str]:
    for axes in map(place_axes, places):
        yield from (str(one) for one in absent if one.axis in axes and axes[one.axis] == one.value)


def _emulated(claim: Claim, at: Sequence[Sequence[ClaimCell]], host: ClaimHost) -> Iterator[str]:
    if host.accelerator != EMULATED:
        return
    virtual = [[cell.virtual for cell in found] for found in at]
    if claim.needs.virtualization:
        yield f"it needs guests under KVM, and {_OF_EMULATION}"
        return
    size = len(claim.places)
    together = (virtual[first : first + size] for first in range(0, len(virtual), size))
    if not claim.is_of_levels and any(any(map(any, one)) and not all(map(all, one)) for one in together):
        yield f"it compares guests with the host, and {_OF_EMULATION}"


def _too_few_cpus(claim: Claim, host: ClaimHost) -> Iterator[str]:
    least, most = claim.needs.least_cpus, claim.needs.most_cpus
    if host.cpus is None:
        return
    if least is not None and host.cpus < least:
        yield f"it needs {least} CPUs at least, and there are {host.cpus}"
    if most is not None and host.cpus > most:
        yield f"it needs {most} CPUs at most, and there are {host.cpus}: nothing competes for them"


def _no_shortage(claim: Claim, cells: Sequence[ClaimCell], host: ClaimHost) -> Iterator[str]:
    if not claim.needs.memory_shortage or host.memory_bytes is None:
        return
    for given in map(_memory_of, cells):
        if given <= host.memory_bytes:
            there = format_bytes(host.memory_bytes)
            yield f"it needs guests with more memory than the host; they have {format_bytes(given)}, and it has {there}"
            return


def _memory_of(cell: ClaimCell) -> int:
    """What the virtual machines of all tiles are given together, in bytes."""
    guests = cell.settings.get("guests", {}).values()
    one_tile = sum(guest.get("memory_bytes") or 0 for guest in guests if guest.get("on") != HOST_PLACE)
    return int(one_tile * (cell.settings.get("tiles") or 1))


def _too_small(claim: Claim, cells: Sequence[ClaimCell]) -> Iterator[str]:
    for name, least in claim.needs.amounts.items():
        workload, _, key = name.partition(".")
        wanted, words = _amount(least)
        for cell in cells:
            entry = cell.settings.get("workloads", {}).get(workload, {})
            given = entry.get("params", {}).get(key)
            size = len(given) if isinstance(given, list | tuple) else given
            if isinstance(size, int | float) and size < wanted:
                yield f"the amounts are too small: {name} is {words(size)}, and it takes {words(wanted)} at least"
                break


def _amount(written: Scalar) -> tuple[float, Callable[[float], str]]:
    """An amount as a number, and how such a number is written. Raises ValueError for what is none."""
    if not isinstance(written, str):
        return float(written), lambda number: f"{number:g}"
    try:
        return parse_bytes(written), format_bytes
    except ValueError:
        return parse_seconds(written), format_seconds


def check_amounts(scenario: Scenario) -> Iterator[Problem]:
    """What is wrong with the `amounts` of claims."""
    for index, claim in enumerate(scenario.claims):
        for name, least in claim.needs.amounts.items():
            place = ("reference", "claims", index, "needs", "amounts", name)
            workload, _, key = name.partition(".")
            entry = scenario.workloads.get(workload)
            if entry is None:
                message = f"there is no workload {shorten(workload)!r}; {meant(workload, scenario.workloads)}"
                yield Problem(place, message, True)
                continue
            params = kinds()[entry.kind].Params.model_fields
            known = [field.alias or own for own, field in params.items()]
            if key not in known:
                yield Problem(place, f"kind {entry.kind} has no {shorten(key)!r}; {meant(key, known)}", True)
                continue
            try:
                _amount(least)
            except ValueError:
                words = "needs a number, a size such as 25 MB, or a duration such as 5 s"
                yield Problem(place, f"{words}, not {shorten(str(least))!r}")
