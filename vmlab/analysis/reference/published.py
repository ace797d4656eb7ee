"""A run beside what was published: every printed figure with the run's own, and every claim with its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vmlab.analysis.comparison.conditions import value_words
from vmlab.analysis.comparison.difference import Verdict, in_form
from vmlab.analysis.document import run_document, unrun_document
from vmlab.analysis.figures.figure import Figure
from vmlab.analysis.figures.intent import WRITTEN, stored_scenario, variables_of
from vmlab.analysis.figures.reading import Reading, find
from vmlab.analysis.figures.table_layout import layout_of
from vmlab.analysis.record.accelerators import accelerator_of
from vmlab.analysis.reference.claims import AnsweredClaim, answer_claim
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import Spread
from vmlab.model.errors import StoreError, UsageError
from vmlab.model.jsonable import picked
from vmlab.model.ordered import ordered_words
from vmlab.model.scenarios.reference import (
    Place,
    PrintedNumber,
    PublishedFigure,
    Reference,
    printed_number,
    unit_factor,
)
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.scenario_file.loading import read
from vmlab.store.reader import RunReader

SCHEMA = "vmlab.reference/1"
AS_PUBLISHED = ("full", "published")
"""Sizes with the amounts of the scenario as it is written."""
_PARTS = ("workloads", "guests")


@dataclass(frozen=True, slots=True)
class AnsweredFigure:
    """A printed figure and the run's own.

    `ours` is in the unit of the publication; of a relative figure it is calculated from the run's measured ones.
    `percent` is ours in percent of theirs, None for relative figures and where amounts differ. `reason` says why the
    run has none. `accelerator` is that of the guests behind it, None where only the host worked. `ordered` has the
    words for parts of the host that were not its own.
    """

    published: PublishedFigure
    printed: PrintedNumber
    ours: Figure
    percent: float | None = None
    cells: tuple[int, ...] = ()
    reason: str = ""
    accelerator: str | None = None
    ordered: tuple[str, ...] = ()

    def json_fields(self) -> dict[str, Any]:
        """The figure as it stands in ``vmlab.reference/1``."""
        figure, behind = self.published, picked(self, "cells", "reason", "accelerator", "ordered")
        printed = {"printed": figure.value, "value": self.printed.value}
        return {
            **picked(figure, "metric", "rows", "columns", "where", "kind", "relative", "unit"),
            "published": {**printed, **picked(figure, "corrected", "why")},
            "measured": {**self.ours.json_fields(), **behind},
            "percent_of_published": self.percent,
        }


@dataclass(frozen=True, slots=True)
class BesideReference:
    """A run beside its reference. `departures` are amounts in which it differs; figures do not compare then.

    Without a run the document has no cells, and nothing compares.
    """

    document: RunDocument
    reference: Reference
    departures: tuple[str, ...]
    figures: tuple[AnsweredFigure, ...]
    claims: tuple[AnsweredClaim, ...]

    @property
    def has_run(self) -> bool:
        """Whether there is a run, and not the publication alone."""
        return bool(self.document.run.id)

    def json_fields(self) -> dict[str, Any]:
        """The document ``vmlab.reference/1``."""
        run = self.document.run
        named = picked(run, "id", "scenario", "size", "outcome", "started", "accelerator")
        return {
            "schema": SCHEMA,
            "scenario": run.scenario,
            "run": named if self.has_run else None,
            **picked(self.reference, "source", "host", "here"),
            "compares": self.has_run and not self.departures,
            **picked(self, "departures", "figures", "claims"),
            "unasked": [finding.model_dump() for finding in self.reference.unasked],
            "tables": self.document.tables,
            "notes": self.reference.notes,
        }


def beside_reference(reader: RunReader, reference: Reference | None = None) -> BesideReference:
    """A run beside what its scenario says was published, or beside another `reference`, such as today's.

    Raises UsageError where the scenario names no publication, StoreError for a damaged store.
    """
    document, texts = run_document(reader), reader.documents()
    reference = reference or _reference_of(texts)
    if reference is None:
        raise UsageError(f"run {document.run.id}: its scenario names no publication")
    return _beside(document, reference, tuple(departures_of(texts, document.run.size)))


def _reference_of(texts: Mapping[str, str]) -> Reference | None:
    """What was published, as the stored scenario has it; None where it names no publication.

    Raises StoreError where it is not what the lab writes.
    """
    said = stored_scenario(texts).get("reference")
    if said is None:
        return None
    try:
        return Reference.model_validate_json(json.dumps(_percents(said)))
    except (ValidationError, ValueError) as error:
        raise StoreError("the stored scenario has a reference of an unknown form") from error


def _percents(said: Any) -> Any:
    """Percent as the language writes them: a scenario is stored with plain numbers."""
    if not isinstance(said, dict):
        return said
    claims = said.get("claims")
    named = [
        {
            key: f"{value:.10g} %" if key in ("tolerance", "by") and isinstance(value, int | float) else value
            for key, value in claim.items()
            if value is not None
        }
        for claim in (claims if isinstance(claims, list) else [])
        if isinstance(claim, dict)
    ]
    return {**said, "claims": named}


def published_alone(scenario: Scenario) -> BesideReference:
    """What was published, without a run. Raises UsageError where the scenario names no publication."""
    if scenario.reference is None:
        raise UsageError(f"scenario {scenario.name} names no publication")
    document = unrun_document(scenario.name, {"scenario": scenario.model_dump_json(by_alias=True)})
    return _beside(document, scenario.reference, ())


def _beside(document: RunDocument, reference: Reference, departures: tuple[str, ...]) -> BesideReference:
    figures = tuple(_answered(document, figure, compares=not departures) for figure in reference.figures)
    claims = tuple(answer_claim(document, claim) for claim in reference.claims)
    return BesideReference(document, reference, departures, figures, claims)


def _answered(document: RunDocument, figure: PublishedFigure, *, compares: bool) -> AnsweredFigure:
    answered = _figure(document, figure, compares=compares)
    run, behind = document.run, (cell for cell in document.cells if cell.cell in answered.cells)
    ordered = ordered_words(run.host) if answered.cells else ()
    return replace(answered, accelerator=accelerator_of(run, behind), ordered=ordered)


def _figure(document: RunDocument, figure: PublishedFigure, *, compares: bool) -> AnsweredFigure:
    printed = printed_number(figure.value)
    best_of = layout_of(document).best_of
    found = find(document, figure.place, figure.metric, figure.statistic, best_of)
    if figure.relative is not None:
        return _relative(document, figure, printed, found, best_of)
    factor = unit_factor(figure.unit, found.unit) if found.unit else 1.0
    if factor is None:
        reason = f"the run measures {figure.metric} in {found.unit}, which cannot be converted to {figure.unit}"
        return AnsweredFigure(figure, printed, Figure("missing"), reason=reason)
    ours = _scaled(found.figure, factor)
    percent = None
    if compares and ours.comparable is not None and printed.value != 0:
        percent = 100 * ours.comparable.mean / printed.value
    return AnsweredFigure(figure, printed, ours, percent, found.cells, found.reason)


def _relative(
    document: RunDocument, figure: PublishedFigure, printed: PrintedNumber, found: Reading, best_of: int | None
) -> AnsweredFigure:
    """The run's own ratio, from its measured figures."""
    base: Place = {**figure.place, **(figure.to or _baseline(document, figure))}
    before = find(document, base, figure.metric, figure.statistic, best_of)
    reason = found.reason or before.reason
    cells = (*before.cells, *(cell for cell in found.cells if cell not in before.cells))
    if reason:
        return AnsweredFigure(figure, printed, Figure("missing"), cells=cells, reason=reason)
    one, other = before.figure, found.figure
    value = _derived(one, other, figure, more=found.more_is_better)
    if value is None or other.spread is None:
        state = Verdict.NOT_DELIVERED if one.undelivered or other.undelivered else one.state
        return AnsweredFigure(figure, printed, Figure(other.state if other.state != "passed" else state), cells=cells)
    return AnsweredFigure(figure, printed, Figure("passed", Spread(value, None, other.spread.count)), cells=cells)


def _derived(one: Figure, other: Figure, figure: PublishedFigure, *, more: bool | None) -> float | None:
    """What the means of two figures give, as a publication calculates it; None where they cannot be compared."""
    before, after = one.comparable, other.comparable
    if before is None or after is None or before.mean == 0 or figure.relative is None:
        return None
    return in_form(100 * (after.mean - before.mean) / before.mean, more, figure.relative)


def _baseline(document: RunDocument, figure: PublishedFigure) -> Place:
    """The baseline of the run's table, as far as the figure's place has its parts."""
    return {part: value for part, value in layout_of(document).baseline.items() if part in figure.place}


def _scaled(figure: Figure, factor: float) -> Figure:
    """A figure in another unit, of which `factor` make one of its own."""
    spread = figure.spread
    if spread is None:
        return figure
    half = None if spread.half_width is None else spread.half_width / factor
    return replace(figure, spread=Spread(spread.mean / factor, half, spread.count), readings=())


def departures_of(texts: Mapping[str, str], size: str) -> list[str]:
    """A line for each amount of workloads and guests that a size or an option changed.

    `texts` are a run's stored documents, `size` the one that it ran at. Axes and repeats do not count as amounts.
    """
    asked = stored_scenario(texts)
    try:
        written = read(Path(WRITTEN), texts[WRITTEN], variables_of(texts)).scenario.model_dump(
            mode="json", by_alias=True
        )
    except (KeyError, UsageError):
        # Without the text, or with one that this version does not read, the size is all that is known.
        return [] if size in AS_PUBLISHED else [f"the run has the size {size}, and what was published is full"]
    return list(_lines(written, asked))


def _lines(written: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    for part in _PARTS:
        for name, keys in (asked.get(part) or {}).items():
            before = (written.get(part) or {}).get(name, {})
            for key, value in keys.items():
                if key in before and before[key] != value:
                    yield f"{part}.{name}.{key} is {value_words(value)}, and {value_words(before[key])} at size full"
