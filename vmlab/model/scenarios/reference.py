"""What a publication printed: its figures, each with its place, and its claims as sentences that a run answers.

Numbers are as publications print them: ``.996``, ``13.0k``, ``6,925``, ``~670``, ``5+`` or ``115m25s``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.model.scenarios.axis import Scalar
from vmlab.model.scenarios.scenario_part import ScenarioPart
from vmlab.model.scenarios.table_words import PARTS, Relative, Statistic
from vmlab.model.units import Percent

_TITLE = re.compile(r'"(?P<title>[^"]+)"')
TILE = "tile"
"""The key of a claim's place that names one tile of the cell, by its number."""
_POINT_WORDS = ("metric", "statistic", TILE)
LEVELS = ("at_least", "at_most")
"""The comparisons that hold each figure by itself against `value`."""
COMPARISONS = ("less", "greater", "equal_within", "ratio", *LEVELS)


def _quoted(value: object) -> object:
    """YAML makes 85.344 of 85.3440, so what is printed must be a text."""
    if isinstance(value, bool | int | float):
        raise ValueError("needs quotation marks, such as '85.3440': a YAML number loses zeros that were printed")
    if isinstance(value, str):
        printed_number(value)
    return value


Printed = Annotated[
    str,
    BeforeValidator(_quoted),
    WithJsonSchema({"type": "string", "description": "A value as it is printed, in quotation marks."}),
]
Place = dict[str, Scalar]


class PublishedFigure(ScenarioPart):
    """One figure as it is printed, and the place in a run's tables that it stands for."""

    metric: str = RUN_TIME
    """Its metric: one of a workload, `wall_seconds`, or `host.NAME`."""
    rows: Place = Field(default_factory=dict)
    """Its place in the table's rows, such as `{threads: 4}`; `workloads: NAME` names a workload."""
    columns: Place = Field(default_factory=dict)
    """Its place in the table's columns."""
    value: Printed
    """The value as it is printed, in quotation marks."""
    unit: str = "1"
    """The unit as it is printed."""
    where: str = ""
    """Where it is printed: table, row and column in the words of the publication, with bars between them."""
    relative: Relative | None = None
    """How a value that was derived from others relates to its baseline."""
    to: Place = Field(default_factory=dict)
    """The baseline of a relative value, if it is not the table's."""
    statistic: Statistic = "mean"
    """Which statistic of tiles or repeats it is; `statistics` in `rows` or `columns` says the same."""
    kind: Literal["measured", "relative", "text"] = "measured"
    """Whether it was measured, derived from measured values, or is part of a sentence."""
    corrected: str | None = None
    """What it should be, if the publication's own values show that it is wrong."""
    why: str = ""
    """What shows that it is wrong."""

    @model_validator(mode="before")
    @classmethod
    def _derived(cls, value: object) -> object:
        if isinstance(value, dict) and value.get("relative") is not None and "kind" not in value:
            return {**value, "kind": "relative"}
        return value

    @model_validator(mode="after")
    def _reasoned(self) -> PublishedFigure:
        if self.kind == "relative" and self.relative is None:
            raise ValueError("a relative value needs `relative`, such as percent or ratio")
        if self.corrected is not None and not self.why:
            raise ValueError("`corrected` needs `why`: what shows that the printed value is wrong")
        return self

    @property
    def place(self) -> Place:
        """Rows and columns together."""
        return {**self.rows, **self.columns}


class Needs(ScenarioPart):
    """What a host and a size must have for a claim to be answerable, decided before anything is measured.

    Guests under emulation answer no claim that compares guests with the host, without a key.
    """

    virtualization: bool = False
    """Guests must run under KVM: emulated guests would measure emulation."""
    least_cpus: Annotated[int, Field(ge=1, le=2**16)] | None = None
    """The fewest CPUs that the (limited) host must have."""
    most_cpus: Annotated[int, Field(ge=1, le=2**16)] | None = None
    """The most CPUs that the (limited) host may have: with more, guests do not compete."""
    memory_shortage: bool = False
    """The guests of each place must together have more memory than the (limited) host."""
    amounts: dict[str, Scalar] = Field(default_factory=dict)
    """The least amounts, such as `{copy.bytes: 25 MB}`, by workload and parameter; for a list, its least length."""

    @model_validator(mode="after")
    def _in_order(self) -> Needs:
        if self.least_cpus is not None and self.most_cpus is not None and self.least_cpus > self.most_cpus:
            raise ValueError("`least_cpus` is more than `most_cpus`")
        return self


class Restated(ScenarioPart):
    """The claim that another one restates, by its sentence."""

    say: Annotated[str, Field(min_length=1)]
    """The sentence of the restated claim."""
    scenario: str = ""
    """The scenario with that claim, if it is another one."""
    why: Annotated[str, Field(min_length=1)]
    """Why both say the same."""


class Claim(ScenarioPart):
    """A sentence of a publication in a form that a run answers: exactly one of the six comparisons."""

    say: Annotated[str, Field(min_length=1)]
    """The sentence: what is checked, with its bound."""
    source: Literal["publication", "ours"] = "publication"
    """Whose claim it is: `ours` is one that the publication does not make."""
    where: str = ""
    """Where the publication says it: section, and table or paragraph."""
    there: str = ""
    """What the publication says there, paraphrased."""
    contradicted: str = ""
    """Which of the publication's own values contradict it."""
    metric: str = RUN_TIME
    """What is compared: a metric of a workload, `wall_seconds`, or `host.NAME`."""
    statistic: Statistic = "mean"
    """The statistic over the tiles of a cell that is compared."""
    less: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=2, max_length=16)
    """Places, each with less than the next; a place may also name `metric`, `statistic` and `tile`."""
    greater: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=2, max_length=16)
    """Places, each with more than the next."""
    equal_within: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=2, max_length=16)
    """Places with the same value, within `tolerance`."""
    ratio: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=2, max_length=2)
    """Two places: the first value divided by the second is `value`, within `tolerance`."""
    at_least: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=1, max_length=16)
    """Places, each with `value` or more."""
    at_most: tuple[Place, ...] | None = Field(default=None, strict=False, min_length=1, max_length=16)
    """Places, each with `value` or less."""
    value: Printed | None = None
    """The ratio, or the bound of `at_least` and `at_most`, in quotation marks."""
    unit: str = ""
    """The unit of `value`, such as GB; the metric's own unit if left out."""
    tolerance: Percent = 5.0
    """By how much equal values may differ, such as 5 %."""
    by: Percent = 0.0
    """How much less or greater each value must be at least, in percent of the next, such as 10 %."""
    each: dict[str, Annotated[tuple[Scalar, ...], Field(strict=False, min_length=1, max_length=100)]] = Field(
        default_factory=dict
    )
    """Values of axes; the sentence must hold for every combination of them."""
    bound: Literal["printed", "ours"] | None = None
    """Whether the bound is printed in the publication or ours; an order such as `less` without `by` has none."""
    needs: Needs = Field(default_factory=Needs)
    """What the claim needs to be answerable; elsewhere its answer is *not answerable here*, with the reason."""
    restates: Restated | None = None
    """The claim that it restates; it has its own answer, but only the other claim is counted."""

    @model_validator(mode="after")
    def _one_comparison(self) -> Claim:
        given = [name for name in COMPARISONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"needs one of {', '.join(COMPARISONS)}, not {len(given)}")
        if (given[0] in ("ratio", *LEVELS)) != (self.value is not None):
            raise ValueError("`value` goes with ratio, at_least and at_most, such as ratio: [{…}, {…}], value: '0.75'")
        if self.unit and not self.is_of_levels:
            raise ValueError("`unit` is that of the bound of at_least and at_most")
        if self.source == "ours" and (self.where or self.there):
            raise ValueError("a claim that is ours is not in the publication: leave `where` and `there` out")
        if self.bound is not None and not self.has_bound:
            raise ValueError(f"`{self.kind}` without `by` is an order, which has no bound: leave `bound` out")
        return self

    @property
    def kind(self) -> str:
        """Which of the comparisons it is."""
        return next(name for name in COMPARISONS if getattr(self, name) is not None)

    @property
    def has_bound(self) -> bool:
        """Whether a figure decides it, and not an order alone."""
        return self.by > 0 or self.kind not in ("less", "greater")

    @property
    def is_of_levels(self) -> bool:
        """Whether each place is held against `value`, and not against another place."""
        return self.kind in LEVELS

    @property
    def places(self) -> tuple[Place, ...]:
        """The places that are compared, in order."""
        found: tuple[Place, ...] = getattr(self, self.kind)
        return found

    @property
    def comparisons(self) -> int:
        """How many comparisons it takes: one for each level; a chain of places has one less; for each combination."""
        return (len(self.places) - (not self.is_of_levels)) * math.prod(map(len, self.each.values()))


def place_axes(place: Place) -> Place:
    """A claim's place without the keys that are not parts of a table."""
    return {name: value for name, value in place.items() if name not in _POINT_WORDS}


def claims_name(claims: Sequence[Claim], axes: Mapping[str, AxisValue]) -> bool:
    """Whether any of the claims needs the figures of a cell with these values."""
    return any(is_named(place, axes) for claim in claims for place in every_place(claim))


def named_values(claims: Sequence[Claim], axis: str) -> set[Scalar]:
    """The values of an axis at which any of the claims compares."""
    places = (place_axes(place) for claim in claims for place in every_place(claim))
    return {place[axis] for place in places if axis in place}


def every_place(claim: Claim) -> Iterator[Place]:
    """The places that a claim compares, those of one combination of its values after another."""
    for chosen in itertools.product(*claim.each.values()):
        each = dict(zip(claim.each, chosen, strict=True))
        yield from ({**each, **place} for place in claim.places)


def is_named(place: Place, axes: Mapping[str, AxisValue]) -> bool:
    """Whether a cell with these values is at the place."""
    wanted = {name: value for name, value in place_axes(place).items() if name not in PARTS}
    return all(name in axes and axes[name] == value for name, value in wanted.items())


class Unasked(ScenarioPart):
    """A finding of a publication that no run of the scenario answers."""

    say: Annotated[str, Field(min_length=1)]
    """The finding, paraphrased."""
    where: Annotated[str, Field(min_length=1)]
    """Where the publication says it: section, and table or paragraph."""
    why: Annotated[str, Field(min_length=1)]
    """Why it cannot be checked here."""


class Reference(ScenarioPart):
    """The figures and claims of a publication that the scenario reproduces; other keys are free."""

    model_config = ConfigDict(extra="allow")

    source: str
    """Title, author and source of the publication."""
    host: str = ""
    """What it was measured on."""
    here: str = ""
    """What is different here from what was published, and why."""
    figures: Annotated[tuple[PublishedFigure, ...], Field(strict=False, max_length=1000)] = ()
    """The values as they are printed."""
    claims: Annotated[tuple[Claim, ...], Field(strict=False, max_length=100)] = ()
    """Its claims, as sentences that are checked against a run."""
    unasked: Annotated[tuple[Unasked, ...], Field(strict=False, max_length=100)] = ()
    """Its findings that no claim checks, each with the reason."""

    @model_validator(mode="after")
    def _restated(self) -> Reference:
        own = {claim.say for claim in self.claims}
        for claim in self.claims:
            other = claim.restates
            if other is not None and not other.scenario and (other.say not in own or other.say == claim.say):
                raise ValueError(f"no other claim of it says {other.say!r}, which {claim.say!r} restates")
        return self

    @property
    def title(self) -> str:
        """The title of the publication: what stands in quotation marks at the beginning of `source`, or all of it."""
        match = _TITLE.match(self.source)
        return match["title"] if match else self.source

    @property
    def notes(self) -> dict[str, Any]:
        """The keys that are free."""
        return dict(self.model_extra or {})


_CLOCK = re.compile(r"(?P<minutes>\d+)m(?P<seconds>\d\d)s")
_FRACTION = re.compile(r"(?P<top>\d+)/(?P<bottom>[1-9]\d*)")
_NUMBER = re.compile(r"~?(?P<whole>\d[\d,]*|)(?:\.(?P<part>\d+))?(?P<thousands>k?)\+?")
_MEBIBYTE = 1024.0**2
_UNITS: dict[str, tuple[str, float]] = {
    "seconds": ("s", 1.0),
    "m s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "min": ("s", 60.0),
    "IOPS": ("1/s", 1.0),
    "lps": ("1/s", 1.0),
    "MWIPS": ("1/s", 1e6),
    "%": ("1", 0.01),
    "MB": ("B", 1e6),
    "GB": ("B", 1e9),
    "MiB": ("B", _MEBIBYTE),
    "GiB": ("B", 1024.0**3),
    "KBps": ("B/s", 1024.0),
    "MB/s": ("B/s", 1e6),
    "KiB/s": ("B/s", 1024.0),
    "MiB/s": ("B/s", _MEBIBYTE),
    "GiB/s": ("B/s", 1024.0**3),
    # sysbench means 1024 by it: its 150 GB are 153,600 MB.
    "MB/sec": ("B/s", _MEBIBYTE),
    "Mbps": ("B/s", 1e6 / 8),
    "Gbps": ("B/s", 1e9 / 8),
}
"""Units that publications print, each as a number of the unit in which the lab measures."""


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A number, and half a unit of its last digit: it stands for every value that rounds to it."""

    value: float
    half: float


def printed_number(text: str) -> PrintedNumber:
    """What is printed, as a number; a dot is the decimal point, a comma separates thousands.

    Raises ValueError for a text that is no number.
    """
    if (clock := _CLOCK.fullmatch(text)) is not None:
        return PrintedNumber(60.0 * int(clock["minutes"]) + int(clock["seconds"]), 0.5)
    if (fraction := _FRACTION.fullmatch(text)) is not None:
        return PrintedNumber(int(fraction["top"]) / int(fraction["bottom"]), 0.0)
    match = _NUMBER.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise ValueError("is no number as publications print them, such as '85.3440', '.996', '13.0k' or '115m25s'")
    factor = 1000.0 if match["thousands"] else 1.0
    digits = match["part"] or ""
    value = float(f"{match['whole'].replace(',', '') or '0'}.{digits or '0'}")
    return PrintedNumber(value * factor, 0.5 * 10.0 ** -len(digits) * factor)


def unit_factor(printed: str, measured: str) -> float | None:
    """What a figure in the unit `printed` is multiplied by to be in `measured`; None for units of different things."""
    if printed == measured:
        return 1.0
    unit, factor = _UNITS.get(printed, ("", 0.0))
    return factor if unit == measured else None
