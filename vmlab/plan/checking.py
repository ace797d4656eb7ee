"""A document to a scenario: its structure first, then everything that a cell needs to be run, its targets and
the metrics that its table names among it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import ValidationError

from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.names import DATA_FOLDER, HOST_PLACE
from vmlab.model.quantities import format_bytes
from vmlab.model.scenarios.memory_levers import pages_host_conflict
from vmlab.model.scenarios.scenario import Scenario, WorkloadEntry
from vmlab.plan.data_places import of_data_places
from vmlab.plan.host_lacks import missing_parts, of_added_images, of_bare_guests, unused_tunnels
from vmlab.plan.image_layers import of_packages
from vmlab.plan.scenario_file.paths import known_keys
from vmlab.plan.scenario_file.problems import Place, Problem, meant, shorten
from vmlab.plan.scenario_file.scenario_document import Document
from vmlab.plan.scenario_file.wording import KnownKeys, problems_of
from vmlab.plan.terms import CellPlan, Plan, WorkloadPlan
from vmlab.system.entry_points import WORKLOADS
from vmlab.system.entry_points import broken as left_out
from vmlab.workloads.metrics import SHARES
from vmlab.workloads.pace import DELIVERED
from vmlab.workloads.registry import kinds
from vmlab.workloads.target_limits import Target, judgeable, limit_of
from vmlab.workloads.workload_steps import AnyWorkload, WorkloadParams

_PURPOSES = {"from": "its client runs", "to": "its server runs", "on": "it runs, or host"}
_KEYS = {one.alias or name: one for name, one in Scenario.model_fields.items()}.keys()


@dataclass(frozen=True, slots=True)
class Checked:
    """A scenario of one point of the axes, with the parameters of every workload by its name."""

    scenario: Scenario
    params: dict[str, WorkloadParams]


def read_scenario(document: Document) -> Scenario:
    """Check the structure: keys, types, units, bounds, names. Raises ScenarioError with every problem."""
    if not isinstance(document.value, dict):
        raise document.error(Problem((), "a scenario is a mapping: keys such as name, guests and workloads"))
    if document.value and not document.value.keys() & _KEYS:
        # The name may lead to any file, such as one with passwords: none of it is printed.
        raise document.error(Problem((), f"is no scenario: it has none of its keys, which are {', '.join(_KEYS)}"))
    try:
        # JSON is the form that YAML's values have, and pydantic's strict mode takes arrays for tuples only from it.
        scenario = Scenario.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        problems = problems_of(error, (), _keys_of(document))
        # The name of a guest that is wrong may be right where a workload has it.
        guests_known = all(one.place[:1] != ("guests",) or len(one.place) > 2 for one in problems)
        document.raise_problems([*problems, *_workload_problems(document, guests_known=guests_known)])
        raise
    if scenario.until is not None and "repeats" in scenario.model_fields_set:
        message = "`until` and `repeats` exclude each other; `at_least` of `until` is the least number of repeats"
        raise document.error(Problem(("until",), message, True))
    return scenario


def with_looks(document: Document, scenario: Scenario) -> Scenario:
    """The scenario with what it is looked at by, where it has planned looks. Raises ScenarioError for nothing."""
    until = scenario.until
    if until is None or until.looks is None:
        return scenario
    if until.looks_at == "claims" and not scenario.claims:
        raise document.error(Problem(("until", "looks"), "`looks` at claims needs a `reference` with claims"))
    looks_at = until.looks_at or ("claims" if scenario.claims else "table")
    if looks_at == "table" and all(len(axis.values) < 2 for axis in scenario.axes.values()):
        raise document.error(Problem(("until", "looks"), "`looks` at a table needs an axis with two values"))
    return scenario.model_copy(update={"until": until.model_copy(update={"looks_at": looks_at})})


def _keys_of(document: Document) -> KnownKeys:
    return lambda place: known_keys(document, place)


def _workload_problems(document: Document, *, guests_known: bool) -> Iterator[Problem]:
    """What is wrong with workloads in a document whose structure is wrong elsewhere."""
    entries = document.value.get("workloads")
    for name, written in entries.items() if isinstance(entries, dict) else ():
        try:
            entry = WorkloadEntry.model_validate_json(json.dumps(written))
        except ValidationError:
            continue
        if (kind := kinds().get(entry.kind)) is None:
            yield _no_kind(name, entry)
        else:
            if guests_known:
                yield from _places(document.value.get("guests"), name, entry, kind)
            yield from _params(document, name, entry, kind)[1]


def _no_kind(name: str, entry: WorkloadEntry) -> Problem:
    message = f"there is no kind of workload {shorten(entry.kind)!r}; {meant(entry.kind, kinds())}"
    for one in left_out():
        if (one.entry.group, one.entry.name) == (WORKLOADS, entry.kind):
            message = f"the {one.entry.words} is left out, as it cannot be used"
    return Problem(("workloads", name, "kind"), message)


def _params(
    document: Document, name: str, entry: WorkloadEntry, kind: type[AnyWorkload]
) -> tuple[WorkloadParams | None, list[Problem]]:
    """A workload's parameters, or None with what is wrong with them."""
    problems: list[Problem] = []
    given = entry.params
    if "pace" in given and not kind.paced:
        problems.append(Problem(("workloads", name, "pace"), _no_pace(entry.kind), True))
        del given["pace"]
    try:
        around = {"files": document.files, "alone": entry.on is not None}
        return kind.Params.model_validate_json(json.dumps(given), strict=True, context=around), problems
    except ValidationError as error:
        return None, [*problems, *problems_of(error, ("workloads", name), _keys_of(document))]


def read_cell(document: Document) -> Checked:
    """Check what one cell runs: kinds, their parameters, places, roles. Raises ScenarioError with every problem."""
    scenario = read_scenario(document)
    problems: list[Problem] = []
    params: dict[str, WorkloadParams] = {}
    for name, entry in scenario.workloads.items():
        kind = kinds().get(entry.kind)
        if kind is None:
            problems.append(_no_kind(name, entry))
            continue
        problems.extend(_sides(scenario, name, entry, kind))
        found, wrong = _params(document, name, entry, kind)
        problems.extend(wrong)
        if found is not None:
            params[name] = found
    problems.extend(check_targets(scenario, params))
    problems.extend(_unsafe(scenario))
    problems.extend(_guest_keys(scenario))
    problems.extend(of_data_places(scenario))
    problems.extend(_too_large(scenario, params))
    problems.extend(of_added_images(scenario))
    problems.extend(of_packages(scenario, params))
    problems.extend(of_bare_guests(scenario))
    problems.extend(unused_tunnels(scenario))
    problems.extend(missing_parts(scenario))
    document.raise_problems(problems)
    return Checked(scenario, params)


def _no_pace(kind: str) -> str:
    able = ", ".join(f"{name} ({one.paced})" for name, one in kinds().items() if one.paced)
    return f"kind {kind} takes no pace: its client works as fast as it can; kinds that take one are {able}"


def _unsafe(scenario: Scenario) -> Iterator[Problem]:
    if scenario.allow.unsafe_cache:
        return
    for name, guest in scenario.guests.items():
        for key in ("cache", "data_cache"):
            if getattr(guest, key) != "unsafe":
                continue
            yield Problem(
                ("guests", name, key),
                "cache mode unsafe may lose guests' data; say so with --allow-unsafe or allow: {unsafe_cache: true}",
            )


def _guest_keys(scenario: Scenario) -> Iterator[Problem]:
    for name, guest in scenario.guests.items():
        yield from (Problem(("guests", name, key), why, True) for key, why in guest.conflicts())
        if (why := pages_host_conflict(guest, scenario.host)) is not None:
            yield Problem(("guests", name, "huge_pages"), why, True)
        for key in guest.without_data_disk():
            message = f"{key} is of a data disk, which guest {name} does not have; give it one, such as data: 10 GiB"
            yield Problem(("guests", name, key), message, True)


def _too_large(scenario: Scenario, params: Mapping[str, WorkloadParams]) -> Iterator[Problem]:
    """Files and tables that cannot fit the disk of their guest, with those of earlier workloads."""
    used: Counter[tuple[str, bool]] = Counter()
    for name, given in params.items():
        entry = scenario.workloads[name]
        for one in kinds()[entry.kind](given).stored():
            place = entry.on or {"source": entry.source, "target": entry.target}[one.side]
            guest = None if place is None else scenario.guests.get(place)
            if place is None or guest is None:
                continue
            on_data = guest.data_bytes is not None and PurePosixPath(one.folder).is_relative_to(DATA_FOLDER)
            size = guest.data_bytes if on_data and guest.data_bytes is not None else guest.disk_bytes
            used[place, on_data] += one.bytes
            if used[place, on_data] > size:
                what = f"{format_bytes(used[place, on_data])} of files and tables do not fit"
                disk = "data disk" if on_data else "disk"
                yield Problem(("workloads", name, one.key), f"{what} the {disk} of guest {place}: {format_bytes(size)}")


def _places(guests: object, name: str, entry: WorkloadEntry, kind: type[AnyWorkload]) -> Iterator[Problem]:
    """What is wrong with ``from``, ``to`` and ``on`` of one workload, as far as the names of guests tell it."""
    here: Place = ("workloads", name)
    given = {"from": entry.source, "to": entry.target, "on": entry.on}
    wanted = _wanted(entry, kind)
    misplaced = [key for key, place in given.items() if place is not None and key not in wanted]
    for key in misplaced:
        takes = "on, or from and to, and not both" if kind.takes_pair else f"{' and '.join(wanted)}, not {key!r}"
        yield Problem((*here, key), f"kind {entry.kind} takes {takes}", True)
    for key in wanted:
        place = given[key]
        if place is not None:
            yield from _guest(guests if isinstance(guests, dict) else {}, (*here, key), place, kind)
        elif not misplaced and {"from": "source", "to": "target"}.get(key, key) in entry.model_fields_set:
            words = f"workloads.{name}.{key} is nothing, as null and ~ are; a guest called so needs quotation marks"
            yield Problem((*here, key), words)
        elif not misplaced:
            purpose = _PURPOSES[key].removesuffix(", or host" if kind.needs_guest else "")
            yield Problem(here, f"workloads.{name} needs {key!r}: the guest where {purpose}", True)


def _wanted(entry: WorkloadEntry, kind: type[AnyWorkload]) -> tuple[str, ...]:
    has_pair = kind.takes_pair and "on" not in entry.model_fields_set
    pair = kind.sides == 2 or (has_pair and {"source", "target"} & entry.model_fields_set)
    return ("from", "to") if pair else ("on",)


def _sides(scenario: Scenario, name: str, entry: WorkloadEntry, kind: type[AnyWorkload]) -> Iterator[Problem]:
    """What is wrong with ``from``, ``to`` and ``on`` of one workload, and with the roles of its guests."""
    here: Place = ("workloads", name)
    yield from _places(scenario.guests, name, entry, kind)
    if (kind.sides == 2 or kind.takes_pair) and entry.source in scenario.guests and entry.source == entry.target:
        yield Problem((*here, "to"), f"workloads.{name} runs from {entry.source} to itself; it needs two guests")
    for key, place in (("on", entry.on), ("from", entry.source), ("to", entry.target)) if kind.needs_guest else ():
        if place in scenario.guests and scenario.guests[place].on_host:
            words = f"kind {entry.kind} runs in virtual machines alone, and guest {place} is on the host"
            yield Problem((*here, key), words)
    yield from _roles(scenario, here, entry, kind)


def _guest(guests: Mapping[str, object], where: Place, guest: str, kind: type[AnyWorkload]) -> Iterator[Problem]:
    if guest == HOST_PLACE:
        sides = {"on": not kind.needs_guest, "from": "source" in kind.host_sides, "to": "target" in kind.host_sides}
        if not sides[str(where[-1])]:
            yield Problem(where, f"kind {kind.kind} cannot run on the host here; it needs a guest")
    elif guest not in guests:
        yield Problem(where, f"there is no guest {shorten(guest)!r}; {meant(guest, guests)}")


def _roles(scenario: Scenario, here: Place, entry: WorkloadEntry, kind: type[AnyWorkload]) -> Iterator[Problem]:
    sides = (("on", entry.on), (None, None)) if kind.sides == 1 else (("from", entry.source), ("to", entry.target))
    for (key, name), role in zip(sides, kind.roles, strict=True):
        guest = scenario.guests.get(name) if name is not None else None
        if role is not None and guest is not None and role not in guest.role:
            yield Problem((*here, str(key)), f"guest {name} needs the role {role} for kind {entry.kind}")


_OF_A_CELL = "wall_seconds"
_HOST = "host."
_MOST_SHOWN = 160


def check_targets(scenario: Scenario, params: Mapping[str, WorkloadParams]) -> Iterator[Problem]:
    """What is wrong with ``targets``, in one cell; `params` are those of the workloads that are right."""
    for workload, limits in scenario.targets.items():
        entry = scenario.workloads.get(workload)
        if entry is None:
            message = f"there is no workload {shorten(workload)!r}; {meant(workload, scenario.workloads)}"
            yield Problem(("targets", workload), message, True)
            continue
        if workload not in params:
            continue
        kind, given = kinds()[entry.kind], params[workload].model_dump()
        metrics = kind.declared(given)
        for name, said in limits.items():
            metric = metrics.get(name)
            if metric is None:
                known = judgeable(kind, given)
                message = f"kind {entry.kind} has no metric {shorten(name)!r}; {meant(name, known)}"
                yield Problem(("targets", workload, name), message, True)
            elif metric.better is None:
                message = f"{name} only describes the work: neither more nor less of it is better"
                yield Problem(("targets", workload, name), message, True)
            else:
                try:
                    limit_of(metric, said)
                except ValueError as error:
                    yield Problem(("targets", workload, name), f"targets.{workload}.{name}: {error}, not {said!r}")


def check_given(scenario: Scenario, cells: Sequence[CellPlan]) -> Iterator[Problem]:
    """The targets and the table's metrics that no workload gives in any of `cells`."""
    given = _given(cells)
    for workload, limits in scenario.targets.items():
        for name in limits:
            if workload in given and name not in given[workload]:
                yield Problem(("targets", workload, name), _never_given(workload, name, given[workload], cells), True)
    metrics = scenario.table.metrics if scenario.table else ()
    for index, name in enumerate(metrics):
        if not _is_of_cells(name) and all(name not in known for known in given.values()):
            gives = "; ".join(f"{workload} gives {', '.join(known)}" for workload, known in given.items())
            near = meant(name, dict.fromkeys(one for known in given.values() for one in known))
            words = f"{near} " if near.startswith("did you mean") else ""
            message = f"no workload gives {shorten(name)!r} at any point of the axes; {words}{gives}"
            yield Problem(("table", "metrics", index), message)


def not_applicable(scenario: Scenario, cells: Sequence[CellPlan]) -> Iterator[str]:
    """A line for each target, and each metric of the table, that a workload gives at some points of the axes alone."""
    given = _given(cells)
    asked = [(workload, name) for workload, limits in scenario.targets.items() for name in limits]
    table = scenario.table.metrics if scenario.table else ()
    asked += [(workload, name) for workload in given for name in table if name in given[workload]]
    for workload, name in dict.fromkeys(asked):
        without = [cell for cell in cells if not any(name in _gives(one) for one in _of(cell, workload))]
        if without and workload in given:
            at = shorten("; ".join(dict.fromkeys(axes_words(cell.axes) for cell in without)), _MOST_SHOWN)
            yield f"{workload}.{name} is not applicable at {at}: {workload} does not give it there"


def _of(cell: CellPlan, workload: str) -> list[WorkloadPlan]:
    return [one for one in cell.workloads if one.tile == 1 and one.name == workload]


def _gives(workload: WorkloadPlan) -> list[str]:
    """The metrics that a workload gives, in the order of its kind."""
    kind, params = kinds()[workload.kind], workload.params.model_dump()
    left_out = kind.left_out(params)
    return [name for name in kind.declared(params) if name not in left_out]


def _given(cells: Sequence[CellPlan]) -> dict[str, list[str]]:
    """By workload the metrics that it gives in any of the cells."""
    first = (one for cell in cells for one in cell.workloads if one.tile == 1)
    given = grouped((one.name, name) for one in first for name in _gives(one))
    return {workload: list(dict.fromkeys(names)) for workload, names in given.items()}


def _never_given(workload: str, name: str, given: Sequence[str], cells: Sequence[CellPlan]) -> str:
    planned = [one for cell in cells for one in _of(cell, workload)]
    if name == DELIVERED and all(kinds()[one.kind].paced for one in planned):
        return f"{name} is a share of a pace, and {workload} has none; give it one, such as pace: 5/s"
    judged = {known for one in planned for known in judgeable(kinds()[one.kind], one.params.model_dump())}
    gives = ", ".join(one for one in given if one in judged)
    return f"{workload} never gives {name} with these parameters; it gives {gives}"


def _is_of_cells(name: str) -> bool:
    """Whether a metric is of the cell, of its host, or made by the lab for all workloads."""
    return name.startswith(_HOST) or name == _OF_A_CELL or name in SHARES


def plan_targets(plan: Plan) -> tuple[Target, ...]:
    """What every tile of the plan has to deliver; of cells that differ, each target once."""
    return tuple(dict.fromkeys(one for cell in plan.cells for one in cell.targets if one.applicable))
