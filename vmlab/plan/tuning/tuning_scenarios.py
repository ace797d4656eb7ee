"""The scenarios of `vmlab tune`: a screening of the levers of one data disk, its confirmation, and the one that won.

Each is an ordinary scenario with one axis of named points. What the analysis needs beside the figures is kept in the
text, under `KEPT`, so that it needs a run's document alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from vmlab.model.errors import ScenarioError, UsageError
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.axis import PointName
from vmlab.model.scenarios.scenario import Guest, Name, Scenario
from vmlab.model.scenarios.scenario_part import ScenarioPart
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS
from vmlab.plan.changes import apply_overrides, apply_size
from vmlab.plan.checking import Checked, read_cell, read_scenario
from vmlab.plan.control_cells import one_point
from vmlab.plan.placing import place_axes, points
from vmlab.plan.scenario_file.loading import ScenarioFile, read
from vmlab.plan.scenario_file.problems import meant, shorten
from vmlab.plan.scenario_file.written_text import written_text
from vmlab.plan.scenario_file.yaml_text import parse
from vmlab.plan.terms import Overrides
from vmlab.plan.tuning.data_levers import Asked, Keys, TwoLevels, chosen_levers, level_words
from vmlab.plan.tuning.screening_design import DEFAULT, Levels, letter_of, screening, setting_name, usual_blocks
from vmlab.workloads.registry import kinds

KEPT = "x-tune"
"""The key of the scenario's text under which it says what is tuned."""
AXIS = "setting"
"""The only axis of what is generated; its points are named by the letters of the levers that they change."""
GENERATED = Path("<vmlab tune>")
"""In place of the file that a scenario comes from."""
_LEFT_OUT = ("name", "summary", "repeats", "until", "order", "warm_up", "targets")
_LONGEST_NAME = 31


class LeverNote(ScenarioPart):
    """The keys of the guest that a lever sets at both levels."""

    default: dict[str, Any]
    other: dict[str, Any]


class TuningNote(ScenarioPart):
    """What a generated scenario says of itself; `settings` has by point the levers that it changes."""

    step: Literal["screening", "confirmation"]
    guest: Name
    workload: Name
    metric: str
    levers: Annotated[dict[str, LeverNote], Field(min_length=1)]
    settings: Annotated[dict[PointName, tuple[str, ...]], Field(min_length=2)]
    screening: str = ""
    """Of a confirmation the id of the screening's run."""

    @model_validator(mode="after")
    def _of_known_levers(self) -> TuningNote:
        if not all(set(changed) <= self.levers.keys() for changed in self.settings.values()):
            raise ValueError("has a setting of an unknown lever")
        if self.settings.get(DEFAULT) != ():
            raise ValueError("lacks the default setting")
        return self

    def levels(self, changed: Sequence[str]) -> Levels:
        """The level of each lever in a setting that changes some of them."""
        return tuple(1 if lever in changed else -1 for lever in self.levers)

    def words(self, changed: Sequence[str]) -> str:
        """``cache=none, queues=2``: what a setting changes; ``the default`` for nothing."""
        keys = {key: one for lever in changed for key, one in self.levers[lever].other.items()}
        return level_words(keys) or f"the {DEFAULT}"

    def keys(self, changed: Sequence[str]) -> dict[str, Any]:
        """Every key of the levers with its value in a setting that changes some of them."""
        sides = ((one.other if lever in changed else one.default) for lever, one in self.levers.items())
        return {key: value for side in sides for key, value in side.items()}


@dataclass(frozen=True, slots=True)
class ScreeningPlan:
    """The scenario of a screening, what it says of itself, how often all settings are measured, and the levers that
    have no effect here, with why.
    """

    file: ScenarioFile
    note: TuningNote
    blocks: int
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TuningRequest:
    """What a user asks for beside the scenario; None is for the usual."""

    levers: Sequence[str] | None = None
    guest: str | None = None
    metric: str | None = None
    blocks: int | None = None


def plan_screening(file: ScenarioFile, overrides: Overrides, cpus: int, request: TuningRequest) -> ScreeningPlan:
    """The screening of one point of a scenario, on a host of so many CPUs: of the table's baseline, or else of the
    first value of each axis.

    Raises UsageError for what cannot be tuned, and ScenarioError for what is wrong in the scenario.
    """
    values, checked = _base(file, overrides)
    name = _guest(checked.scenario, request.guest)
    workload, metric = _figure(file, checked, name, request.metric)
    asked = _asked(checked, name, cpus)
    levers, left_out = chosen_levers(values["guests"][name], asked, request.levers)
    settings = {setting_name(levels): _changed(levers, levels) for levels in sorted(screening(len(levers)))}
    note = TuningNote(
        step="screening",
        guest=name,
        workload=workload,
        metric=metric,
        levers={one.name: LeverNote(default=dict(one.default), other=dict(one.other)) for one in levers},
        settings=settings,
    )
    blocks = request.blocks or usual_blocks(len(levers))
    origin = file.scenario.name
    summary = f"Screening of the data disk of guest {name}, in {workload} of {origin}: {legend(note)}."
    text = _text({"name": f"tune-{origin}"[:_LONGEST_NAME].rstrip("-"), "summary": summary, **values}, note, blocks)
    return ScreeningPlan(read(GENERATED, text, {}, files=file.files), note, blocks, tuple(left_out))


def confirmation_file(
    text: str,
    screening_run: str,
    settings: Iterable[Sequence[str]],
    repeats: int,
    files: Mapping[str, str] = MappingProxyType({}),
) -> ScenarioFile:
    """The scenario that compares settings with the default, by the `text` and the kept `files` of their screening."""
    values, note = _read_kept(text)
    names = {setting_name(note.levels(changed)): tuple(changed) for changed in [(), *settings]}
    step = {"step": "confirmation", "settings": names, "screening": screening_run}
    confirmation = note.model_copy(update=step)
    words = "; ".join(f"{name} {note.words(changed)}" for name, changed in names.items() if changed)
    values = {**values, "summary": f"Confirmation of run {screening_run}: {words}, against the default."}
    return read(GENERATED, _text(values, confirmation, repeats), {}, files=files)


def winning_text(text: str, changed: Sequence[str], run: str) -> str:
    """The scenario of a screening or a confirmation with one setting, as `run` confirmed it, and without its axis."""
    values, note = _read_kept(text)
    values["guests"] = {**values["guests"], note.guest: _with_keys(values, note, changed)}
    values["summary"] = f"With {note.words(changed)}, as run {run} confirmed."
    values["name"] = f"tuned-{str(values['name']).removeprefix('tune-')}"[:_LONGEST_NAME].rstrip("-")
    axes = {name: axis for name, axis in values.pop("axes").items() if name != AXIS}
    for key in ("repeats", "table", KEPT):
        values.pop(key, None)
    return written_text({**values, **({"axes": axes} if axes else {})})


def winning_guest(text: str, changed: Sequence[str]) -> Guest:
    """The guest of a screening or a confirmation whose data disk is tuned, with one setting."""
    return Guest.model_validate_json(json.dumps(_with_keys(*_read_kept(text), changed)))


def note_of_text(text: str) -> TuningNote | None:
    """What a scenario's text says of tuning; None where it says nothing. Raises UsageError for what is damaged."""
    value = parse(text, GENERATED, {}).value
    kept = value.get(KEPT) if isinstance(value, dict) else None
    if kept is None:
        return None
    try:
        return TuningNote.model_validate_json(json.dumps(kept))
    except ValidationError as error:
        raise UsageError(f"what its scenario says of tuning is damaged: {error.errors()[0]['msg']}") from None


def legend(note: TuningNote) -> str:
    """``a cache=none, b queues=2``: the letters of the levers, with their other levels."""
    return ", ".join(f"{letter_of(number)} {level_words(one.other)}" for number, one in enumerate(note.levers.values()))


def _base(file: ScenarioFile, overrides: Overrides) -> tuple[dict[str, Any], Checked]:
    """One point of the scenario as plain values without axes, sizes and layout, and the same checked."""
    document = apply_overrides(apply_size(file.document, overrides.size), overrides)
    scenario = read_scenario(document)
    if HOST_PLACE in scenario.axes:
        raise UsageError("tuning is of one host, and this scenario has the axis host")
    point = next(iter(points(document, one_point(scenario, place_axes(document, scenario)))), None)
    if point is None:
        raise UsageError(f"{scenario.name}: every axis value is marked absent")
    values = {key: value for key, value in point.document.value.items() if key not in _LEFT_OUT}
    if point.tiles > 1:
        values["axes"] = {"tiles": {"values": [point.tiles]}}
    return values, read_cell(point.document)


def _guest(scenario: Scenario, wanted: str | None) -> str:
    """The guest whose data disk is tuned: the only one that has one and works. Raises UsageError."""
    working = dict.fromkeys(place for entry in scenario.workloads.values() for place in entry.places)
    able = [name for name in working if scenario.guests[name].data_bytes and not scenario.guests[name].on_host]
    if wanted is not None and wanted not in able:
        raise UsageError(f"--guest: {shorten(wanted)!r} has no data disk that a workload uses; {meant(wanted, able)}")
    if not able:
        example = f"; give one, such as --set guests.{next(iter(working))}.data='4 GiB'" if working else ""
        raise UsageError(f"{scenario.name}: no guest has a data disk, whose levers these are{example}")
    if wanted is None and len(able) > 1:
        raise UsageError(f"{scenario.name}: several guests have a data disk; name one with --guest: {', '.join(able)}")
    return wanted or able[0]


def _figure(file: ScenarioFile, checked: Checked, guest: str, wanted: str | None) -> tuple[str, str]:
    """The workload and its metric by which settings are compared. Raises UsageError for what none of them gives.

    Unless it is named it is the first that the scenario's table asks for, else the run time, or the throughput where
    that is fixed.
    """
    table = file.scenario.table
    metrics = [wanted] if wanted else [*(table.metrics if table else ()), RUN_TIME]
    own = [name for name, entry in checked.scenario.workloads.items() if guest in entry.places]
    there: dict[str, None] = {}
    for metric in metrics:
        for workload in own:
            kind, params = kinds()[checked.scenario.workloads[workload].kind], checked.params[workload].model_dump()
            left_out = {*kind.left_out(params), *([RUN_TIME] if kind.is_timed(params) else [])}
            gives = [one for one, about in kind.declared(params).items() if about.better and one not in left_out]
            there.update((f"{workload}.{one}" if "." in metric else one, None) for one in gives)
            bare = metric.removeprefix(f"{workload}.")
            bare = kind.throughput if bare == RUN_TIME and bare in left_out else bare
            if bare in gives:
                return workload, bare
    words = f"no workload of guest {guest} gives it; {meant(metrics[0], there)}"
    raise UsageError(f"--metric {shorten(metrics[0])!r}: {words}")


def _asked(checked: Checked, guest: str, cpus: int) -> Asked:
    found = checked.scenario.guests[guest]
    vcpus = (checked.scenario.host.cpus or cpus) if found.vcpus == "host" else found.vcpus
    using = [checked.params[name] for name, entry in checked.scenario.workloads.items() if guest in entry.places]
    return Asked(found, vcpus, using)


def _changed(levers: Sequence[TwoLevels], levels: Levels) -> tuple[str, ...]:
    return tuple(lever.name for lever, level in zip(levers, levels, strict=True) if level > 0)


def _text(values: Mapping[str, Any], note: TuningNote, repeats: int) -> str:
    """The scenario with the note's settings as points of its axis."""
    axes = {name: axis for name, axis in values.get("axes", {}).items() if name != AXIS}
    sets = {name: _paths(note.guest, note.keys(changed) if changed else {}) for name, changed in note.settings.items()}
    table = {
        "rows": AXIS,
        "columns": [WORKLOADS, METRICS],
        "metrics": [note.metric],
        "relative": "difference",
        "baseline": {AXIS: DEFAULT},
    }
    made = {"axes": {**axes, AXIS: {"points": sets}}, "repeats": repeats, "table": table}
    return written_text({**values, **made, KEPT: note.model_dump(mode="json", exclude_defaults=True)})


def _with_keys(values: Mapping[str, Any], note: TuningNote, changed: Sequence[str]) -> dict[str, Any]:
    guest = {**values["guests"][note.guest], **note.keys(changed)}
    return {key: one for key, one in guest.items() if one is not None}


def _paths(guest: str, keys: Keys) -> dict[str, Any]:
    return {f"guests.{guest}.{key}": value for key, value in keys.items()}


def _read_kept(text: str) -> tuple[dict[str, Any], TuningNote]:
    """The plain values of a text that was generated here, and its note. Raises UsageError for any other."""
    note = note_of_text(text)
    if note is None:
        raise ScenarioError("says nothing of tuning", file=GENERATED)
    values: dict[str, Any] = parse(text, GENERATED, {}).value
    return values, note
