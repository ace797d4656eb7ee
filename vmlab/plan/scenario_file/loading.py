"""From a path, or the name of a shipped scenario, to a scenario file that was read and checked, with the layout
of its results: the table's sides, and the places of published figures and claims.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from vmlab.model.axes import axis_word
from vmlab.model.errors import ScenarioError, UsageError
from vmlab.model.places import shipped_scenarios
from vmlab.model.scenarios.axis import Scalar
from vmlab.model.scenarios.reference import TILE, Reference
from vmlab.model.scenarios.reference import place_axes as parts_of_a_place
from vmlab.model.scenarios.scenario import Scenario
from vmlab.model.scenarios.table import Table
from vmlab.model.scenarios.table_words import METRICS, STATISTICS, WORKLOADS, Statistic
from vmlab.plan.changes import check_sizes
from vmlab.plan.checking import read_cell, read_scenario
from vmlab.plan.placing import place_axes, points
from vmlab.plan.scenario_file.files_beside import FilesBeside
from vmlab.plan.scenario_file.problems import Place, Problem, ScenarioErrors, meant, raise_all, shorten
from vmlab.plan.scenario_file.scenario_document import Document
from vmlab.plan.scenario_file.yaml_text import MOST_BYTES, decoded, parse, read_text, without_kept

STANDARD_INPUT = "-"
"""Stands for standard input in place of a scenario; ``./-`` is a file of that name."""
_NONE: Mapping[str, str] = MappingProxyType({})
_PIPED = Path("<standard input>")


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario as it was found: `path` and `text`, its values with their positions, and its checked structure."""

    path: Path
    text: str
    document: Document
    scenario: Scenario

    @property
    def variables(self) -> dict[str, str]:
        """The values that the text's variables have."""
        return self.document.tree.variables

    @property
    def files(self) -> dict[str, str]:
        """The files beside it that its workloads send, as `FilesBeside` keeps them."""
        return self.document.files.kept


def load(reference: str, variables: Mapping[str, str] = _NONE) -> ScenarioFile:
    """Read and check a scenario by path, by the name of a shipped one (``tile``, ``tile.yaml``), or from `-`.

    The environment is read for variables that the scenario lists. Raises UsageError when there is no such file, and
    ScenarioError with file, line and column for what is wrong in it.
    """
    if reference == STANDARD_INPUT:
        return read(_PIPED, decoded(_piped(), _PIPED), variables, os.environ)
    path = find(reference)
    try:
        return read(path, read_text(path), variables, os.environ)
    except ScenarioError as error:
        if path != Path(reference) or _shipped(reference) is None:
            raise
        problems = error.problems if isinstance(error, ScenarioErrors) else (error,)
        words = f"{reference} is a file in this folder, which was read instead of the shipped scenario of that name"
        raise ScenarioErrors([*problems, UsageError(words)]) from None


def load_kept(path: Path, variables: Mapping[str, str] | None, files: Mapping[str, str] | None) -> ScenarioFile:
    """The scenario of a run, by its kept text, `variables` and `files`; None for runs of before there were any."""
    found = find(str(path))
    return read(found, read_text(found), variables, files=files or {})


def read(
    path: Path,
    text: str,
    variables: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = _NONE,
    files: Mapping[str, str] | None = None,
) -> ScenarioFile:
    """Check a scenario's text as if it had been read from `path`. Raises ScenarioError, and UsageError for one of the
    `variables` that it does not use.

    The `files` that its workloads send are as a run has kept them; with None they lie beside `path`.
    """
    tree = parse(text, path, variables, environment)
    beside = FilesBeside(path.parent) if files is None else FilesBeside(None, files)
    document = Document(path, tree, without_kept(tree.value), files=beside)
    scenario = read_scenario(document)
    wrong = [*_found(lambda: check_sizes(document)), *_found(lambda: check_layout(document, scenario))]
    if wrong:
        # The cells are checked later where all else is in order; here their mistakes join the others.
        raise_all([*wrong, *_found(lambda: _first_cell(document, scenario))])
    return ScenarioFile(path, text, document, scenario)


def _found(check: Callable[[], object]) -> list[UsageError]:
    """What `check` raises for a scenario, one error for each problem."""
    try:
        check()
    except ScenarioErrors as several:
        return [one for one in several.problems if isinstance(one, UsageError)]
    except UsageError as error:
        return [error]
    return []


def _first_cell(document: Document, scenario: Scenario) -> None:
    """Check the axes, and the cell of their first values. Raises ScenarioError."""
    for point in points(document, place_axes(document, scenario)):
        read_cell(point.document)
        return


def find(reference: str) -> Path:
    """The file that is meant. Raises UsageError.

    A word without a slash that names a shipped scenario is that one, unless a file that can be one stands here under
    that word: not a folder, an empty file, a dangling link or the like, which `./WORD` names.
    """
    path = Path(reference)
    if "\0" in reference or not reference:
        raise UsageError(f"{shorten(reference)!r} is not a scenario")
    shipped = _shipped(reference)
    try:
        if shipped is not None and not (path.is_file() and path.stat().st_size):
            return shipped
        is_there, is_folder = path.exists(), path.is_dir()
    except OSError as error:
        if shipped is not None:
            return shipped
        raise UsageError(f"cannot read {shorten(reference, 200)}: {error.strerror}") from error
    if is_folder:
        raise UsageError(f"{reference} is a folder, not a scenario")
    if is_there:
        return path
    if path.is_symlink():
        raise UsageError(f"{shorten(reference, 200)} is a link to a file that is not there")
    if path.name == reference:
        raise UsageError(f"there is no scenario {shorten(reference)!r}; {meant(path.stem, shipped_names())}")
    raise UsageError(f"there is no file {shorten(reference, 200)}")


def _shipped(word: str) -> Path | None:
    """The shipped scenario of that name, with or without its ending; None where there is none, or for a path."""
    name = word.removesuffix(".yaml")
    return shipped_scenarios() / f"{name}.yaml" if name in shipped_names() else None


def shipped_names() -> list[str]:
    """Names of the scenarios that come with the program, in alphabetical order."""
    return sorted(path.stem for path in shipped_scenarios().glob("*.yaml"))


def _piped() -> bytes:
    """What comes by standard input. Raises UsageError for a terminal, where nobody knows that it waits for them."""
    file = sys.stdin
    if file is None or file.isatty():
        words = "standard input is closed" if file is None else "standard input is a terminal"
        raise UsageError(f"{words}; `-` reads a scenario from a pipe or a file: vmlab plan - < FILE")
    try:
        return file.buffer.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from error


_STATISTICS: tuple[str, ...] = get_args(Statistic)


def check_layout(document: Document, scenario: Scenario) -> None:
    """Check table and reference. Raises ScenarioError with every problem."""
    problems: list[Problem] = []
    if scenario.table is not None:
        problems += _table(scenario, scenario.table)
    if scenario.reference is not None:
        problems += _reference(scenario, scenario.reference)
    document.raise_problems(problems)


def _table(scenario: Scenario, table: Table) -> Iterator[Problem]:
    known = [*scenario.axes, WORKLOADS]
    seen: dict[str, str] = {}
    for key, side in (("columns", table.columns), ("rows", table.rows)):
        for index, part in enumerate(side):
            place: Place = ("table", key, index) if len(side) > 1 else ("table", key)
            if part not in (*known, METRICS, STATISTICS):
                yield Problem(place, f"there is no axis {shorten(part)!r}; {meant(part, known)}")
            elif part in seen:
                words = f"columns and rows are both {part}" if seen[part] != key else f"{key} has {part} twice"
                yield Problem(place, words)
            seen[part] = key
    if STATISTICS in seen and not table.statistics:
        yield Problem(("table",), "a side of statistics needs `statistics`, such as statistics: [mean, sd, sum]")
    yield from _baseline(scenario, table)


def _baseline(scenario: Scenario, table: Table) -> Iterator[Problem]:
    baseline = table.baseline
    if baseline is None:
        if table.relative is not None:
            yield Problem(("table", "relative"), "needs `baseline`, such as baseline: {setup: host}", True)
        return
    if not isinstance(baseline, dict):
        heads = list(chain.from_iterable(_values(scenario, table, part) for part in (*table.columns, *table.rows)))
        first = _values(scenario, table, table.columns[0]) if table.is_simple else heads
        if not _is_among(baseline, first):
            message = f"no column is {shorten(baseline)!r}; {meant(baseline, map(axis_word, first))}"
            yield Problem(("table", "baseline"), message)
            return
        having = [part for part in (*table.columns, *table.rows) if _is_among(baseline, _values(scenario, table, part))]
        reasons = [_absent(scenario, part, baseline) for part in having]
        if reasons and all(reasons):
            yield _never_measured(("table", "baseline"), baseline, reasons[0])
        return
    yield from _parts(scenario, table, ("table", "baseline"), baseline)
    for part, value in baseline.items():
        if reason := _absent(scenario, part, value):
            yield _never_measured(("table", "baseline", part), value, reason)


def _absent(scenario: Scenario, part: str, value: Scalar) -> str | None:
    """Why a value of an axis has no cells; None where it has some."""
    point = scenario.axes[part].points.get(str(value)) if part in scenario.axes else None
    return point.absent if point else None


def _never_measured(place: Place, value: Scalar, reason: str | None) -> Problem:
    return Problem(place, f"nothing can be compared with {shorten(value)!r}, which is absent: {reason}")


def _is_among(value: Scalar, values: Sequence[Scalar]) -> bool:
    """Whether one of them is the value and of its type: `true` is not 1."""
    return any(isinstance(value, bool) is isinstance(one, bool) and value == one for one in values)


def _values(scenario: Scenario, table: Table | None, part: str) -> Sequence[Scalar]:
    """The values that a part of a table may have."""
    if part in scenario.axes:
        return scenario.axes[part].values
    of_parts: dict[str, Sequence[Scalar]] = {
        WORKLOADS: tuple(scenario.workloads),
        METRICS: table.figures if table else (),
        STATISTICS: _STATISTICS,
    }
    return of_parts.get(part, ())


def _parts(scenario: Scenario, table: Table | None, here: Place, place: Mapping[str, Scalar]) -> Iterator[Problem]:
    """What is wrong with a mapping of parts of a table to their values."""
    known = [*scenario.axes, WORKLOADS, STATISTICS]
    for name, value in place.items():
        if name not in (*known, METRICS):
            yield Problem((*here, name), f"there is no axis {shorten(name)!r}; {meant(name, known)}", True)
            continue
        values = _values(scenario, table, name)
        if name != METRICS and not _is_among(value, values):
            message = f"{name} has no {shorten(value)!r}; {meant(value, map(axis_word, values))}"
            yield Problem((*here, name), message)


def _reference(scenario: Scenario, reference: Reference) -> Iterator[Problem]:
    for index, figure in enumerate(reference.figures):
        here: Place = ("reference", "figures", index)
        for key in ("rows", "columns", "to"):
            yield from _parts(scenario, scenario.table, (*here, key), getattr(figure, key))
    for index, claim in enumerate(reference.claims):
        here = ("reference", "claims", index)
        for name, values in claim.each.items():
            for value in values:
                yield from _parts(scenario, scenario.table, (*here, "each"), {name: value})
        for number, place in enumerate(claim.places):
            yield from _parts(scenario, scenario.table, (*here, claim.kind, number), parts_of_a_place(place))
            tile = place.get(TILE, 1)
            if isinstance(tile, bool) or not isinstance(tile, int) or tile < 1:
                yield Problem((*here, claim.kind, number, TILE), "needs the number of a tile, the first of which is 1")
