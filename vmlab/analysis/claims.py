"""Checks a publication's claims against a run: reproduced, not reproduced, or cannot be decided."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from vmlab.analysis.figure import workloads_of
from vmlab.analysis.lookup import Found, Lookup
from vmlab.analysis.reading import NOT_TOGETHER, Asked, read
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics import Spread
from vmlab.model.axes import axes_words
from vmlab.model.printed import printed_number
from vmlab.model.reference import Claim, Place, place_axes
from vmlab.model.table import Statistic
from vmlab.model.written import written

Answer = Literal["reproduced", "not", "cannot tell"]
_ASSUMED = 10.0
"""By how many percent single readings may differ by chance, where the run has no repeats that show it."""
_GRAVITY: tuple[Answer, ...] = ("reproduced", "cannot tell", "not")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place that a claim compares, and the run's figure there."""

    place: Place
    found: Found

    def to_json(self) -> dict[str, Any]:
        """The place with its figure, and the cells behind it."""
        reading = self.found.reading
        return {
            "place": self.place,
            **reading.figure.to_json(),
            "unit": reading.unit,
            "cells": list(self.found.cells),
            "reason": self.found.reason,
        }


@dataclass(frozen=True, slots=True)
class AnsweredClaim:
    """A claim with its answer, a sentence that gives the reason, and the figures."""

    claim: Claim
    answer: Answer
    because: tuple[str, ...]
    evidence: tuple[Evidence, ...]

    def to_json(self) -> dict[str, Any]:
        """The claim as it stands in ``vmlab.reference/1``."""
        return {
            "say": self.claim.say,
            "where": self.claim.where,
            "answer": self.answer,
            "because": list(self.because),
            "evidence": [one.to_json() for one in self.evidence],
        }


def answer_claim(document: RunDocument, claim: Claim) -> AnsweredClaim:
    """The answer of a run. A claim for each of several values holds where it holds for all of them."""
    combinations = [dict(zip(claim.each, chosen, strict=True)) for chosen in itertools.product(*claim.each.values())]
    answers: list[tuple[Answer, str]] = []
    evidence: list[Evidence] = []
    for each in combinations:
        found = [_evidence(document, claim, {**each, **place}) for place in claim.places]
        evidence += found
        for one, other in _pairs(claim, found):
            answers.append(_compared(document, claim, one, other))
    overall = max((answer for answer, _ in answers), key=_GRAVITY.index)
    return AnsweredClaim(claim, overall, tuple(why for _, why in answers), tuple(evidence))


def _evidence(document: RunDocument, claim: Claim, place: Place) -> Evidence:
    metric = str(place.get("metric", claim.metric))
    statistic = cast(Statistic, place.get("statistic", claim.statistic))
    return Evidence(place, Lookup(document).find(place_axes(place), metric, statistic))


def _pairs(claim: Claim, found: Sequence[Evidence]) -> Iterator[tuple[Evidence, Evidence]]:
    """The pairs to compare: neighbours in a chain, or each with the first where all should be equal."""
    if claim.equal_within is not None:
        return ((found[0], other) for other in found[1:])
    return itertools.pairwise(found)


def _compared(document: RunDocument, claim: Claim, one: Evidence, other: Evidence) -> tuple[Answer, str]:
    for side in (one, other):
        if (doubt := _doubt(side)) is not None:
            return "cannot tell", doubt
    first, second = cast(Spread, one.found.reading.figure.spread), cast(Spread, other.found.reading.figure.spread)
    if one.found.reading.unit != other.found.reading.unit or second.mean == 0:
        return "cannot tell", "the figures cannot be set against each other"
    uncertain, how = _uncertainty(document, claim, first, second)
    wanted = printed_number(claim.value).value if claim.value is not None else 1.0
    off = 100 * (first.mean / second.mean / wanted - 1)
    if claim.less is not None or claim.greater is not None:
        return _ordered(claim, off, uncertain, f"{_told(one)} against {_told(other)}, {off:+.1f} %, {how}")
    words = f"{_told(one)} over {_told(other)} is {first.mean / second.mean:.3f}, {how}"
    return _equal(claim.tolerance, abs(off), uncertain, how, words)


def _ordered(claim: Claim, off: float, uncertain: float, words: str) -> tuple[Answer, str]:
    beyond = (off if claim.greater is not None else -off) - claim.by
    if abs(beyond) <= uncertain:
        return "cannot tell", words
    return ("reproduced" if beyond > 0 else "not"), words


def _equal(tolerance: float, off: float, uncertain: float, how: str, words: str) -> tuple[Answer, str]:
    known = not how.endswith(_NOT_KNOWN)
    if off <= tolerance and (not known or uncertain <= tolerance):
        return "reproduced", words
    return ("not" if off - uncertain > tolerance else "cannot tell"), words


def _doubt(side: Evidence) -> str | None:
    """Why a side cannot be compared; None where it can."""
    if side.found.reason:
        return side.found.reason
    reading = side.found.reading
    if reading.figure.comparable is None:
        return f"{axes_words(side.place)}: the figure is {reading.figure.state}"
    if reading.apart:
        return f"{axes_words(side.place)}: {NOT_TOGETHER}"
    return None


def _told(side: Evidence) -> str:
    spread = cast(Spread, side.found.reading.figure.spread)
    cells = ", ".join(map(str, side.found.cells))
    figure = _written(spread.mean, side.found.reading.unit)
    return (
        f"{axes_words(side.place)}: {figure} (n {spread.count}, cell{'s' if len(side.found.cells) > 1 else ''} {cells})"
    )


def _written(value: float, unit: str) -> str:
    """A figure with its unit, with four digits or all before the point."""
    form = written(unit)
    value *= form.factor
    digits = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{digits} {form.unit}".rstrip()


_NOT_KNOWN = "between single readings is taken for chance"


def _uncertainty(document: RunDocument, claim: Claim, one: Spread, other: Spread) -> tuple[float, str]:
    """How much of the difference may be chance, in percent of the second figure, and the source of that figure.

    The half widths of both 95 % intervals, added; of a single reading the largest relative one of the run's other
    figures of the metric; and 10 % where no cell was repeated.
    """
    repeated = one.half_width is not None and other.half_width is not None
    known = None if repeated else _known_spread(document, claim)
    halves = []
    for side in (one, other):
        if side.half_width is not None:
            halves.append(side.half_width)
        elif known is not None:
            halves.append(known * abs(side.mean))
        else:
            return _ASSUMED, f"up to {_ASSUMED:.0f} % {_NOT_KNOWN}"
    percent = 100 * math.fsum(halves) / abs(other.mean)
    whose = (
        "both 95 % intervals" if one.half_width is not None and other.half_width is not None else "repeats elsewhere"
    )
    return percent, f"± {percent:.1f} % by {whose}"


def _known_spread(document: RunDocument, claim: Claim) -> float | None:
    """The largest half width of the run's figures of a metric, relative to its mean; None without repeats."""
    places = {tuple(sorted(cell["axes"].items(), key=str)) for cell in document["cells"]}
    found: list[float] = []
    for place in places:
        cells = [cell for cell in document["cells"] if tuple(sorted(cell["axes"].items(), key=str)) == place]
        for workload in workloads_of(cells):
            spread = read(cells, Asked(claim.metric, workload, claim.statistic)).figure.comparable
            if spread is not None and spread.half_width is not None and spread.mean != 0:
                found.append(spread.half_width / abs(spread.mean))
    return max(found, default=None)
