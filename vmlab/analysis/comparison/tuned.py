"""What the levers of a data disk are worth, by the runs of `vmlab tune`: a screening, and its confirmation.

The screening is a guide: its intervals are not corrected for the number of levers, and its best settings were chosen
by its own readings. The verdict is that of the confirmation, whose readings are new.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vmlab.analysis.comparison.difference import Difference, Sides, Verdict, differences
from vmlab.analysis.figures.counted_cells import as_of
from vmlab.analysis.figures.figure import Figure, figure_of_runs, over_tiles
from vmlab.analysis.figures.undelivered import undelivered_words
from vmlab.analysis.shape import RunDocument, RunPart
from vmlab.analysis.statistics.descriptive import CONFIDENCE, mean
from vmlab.analysis.statistics.main_effects import FoldedPair, MainEffect, main_effects
from vmlab.analysis.statistics.sample_size import readings_needed
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.jsonable import picked
from vmlab.plan.tuning.screening_design import DEFAULT, mirrored
from vmlab.plan.tuning.tuning_scenarios import AXIS, TuningNote, note_of_text

SCHEMA = "vmlab.tune/1"
CONFIRMED = 2
"""Settings that are compared with the default."""
COMPARISONS = CONFIRMED + 1
"""Each of them with the default, and one with the other."""
LEAST_REPEATS = readings_needed(COMPARISONS)
"""Of a confirmation: the fewest that can prove all of its differences."""
USUAL_REPEATS = LEAST_REPEATS + 1
"""One may be lost."""


@dataclass(frozen=True, slots=True)
class LeverWorth:
    """What a lever is worth by the screening: by how much the figure is larger at its other level, in percent.

    `interval` has its ends in percent, at 95 % for this lever alone; None where no spread is known. `percent` is None
    where too few settings have a figure.
    """

    name: str
    default: Mapping[str, Any]
    other: Mapping[str, Any]
    percent: float | None = None
    interval: tuple[float, float] | None = None
    better: bool | None = None

    @property
    def beyond_noise(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]

    def json_fields(self) -> dict[str, Any]:
        """As it stands in ``vmlab.tune/1``."""
        return {
            "lever": self.name,
            **picked(self, "default", "other", "percent"),
            "interval_percent": self.interval,
            "confidence_percent": 100 * CONFIDENCE if self.interval else None,
            **picked(self, "beyond_noise", "better"),
        }


@dataclass(frozen=True, slots=True)
class TunedSetting:
    """A setting, by the levers that it changes: its figure, and what it is against the default by the confirmation."""

    name: str
    levers: tuple[str, ...]
    figure: Figure
    difference: Difference

    @property
    def better(self) -> bool:
        """Whether it is proven better than the default."""
        return self.difference.better is True


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a screening found, with the settings to confirm (`proposed`, the likelier one first), and its confirmation.

    `levers` are sorted by what they are worth, the best for the figure first. `freedom` is that of their intervals,
    over `measured` pairs of mirrored settings of those `planned`. `missing` has the settings without a figure, with
    why. Of the confirmation, which may be None, `settings` were compared with the `default`, and `against` is the
    second of them against the first.
    """

    screening: RunPart
    note: TuningNote
    text: str
    unit: str
    more_is_better: bool
    levers: tuple[LeverWorth, ...]
    freedom: int
    measured: int
    planned: int
    proposed: tuple[tuple[str, ...], ...]
    missing: tuple[tuple[str, str], ...] = ()
    confirmation: RunPart | None = None
    default: Figure | None = None
    settings: tuple[TunedSetting, ...] = ()
    against: Difference | None = None

    @property
    def winner(self) -> TunedSetting | None:
        """The setting that is proven better than the default; of two the simpler one, unless one is proven better."""
        better = [one for one in self.settings if one.better]
        if len(better) == CONFIRMED and self.against is not None and self.against.better is not None:
            return better[self.against.better]
        return min(better, key=lambda one: len(one.levers), default=None)

    @property
    def undecided(self) -> bool:
        """Whether there is no verdict: nothing was confirmed, or a comparison has too few measurements or none."""
        tested = (Verdict.PROVEN, Verdict.NOT_PROVEN)
        return not self.settings or (
            self.winner is None and any(one.difference.verdict not in tested for one in self.settings)
        )

    @property
    def exit_code(self) -> ExitCode:
        """INVALID where there is no verdict."""
        return ExitCode.INVALID if self.undecided else ExitCode.PASSED

    def json_fields(self) -> dict[str, Any]:
        """The document ``vmlab.tune/1``, without the lines to copy."""
        winner = self.winner
        return {
            "schema": SCHEMA,
            "screening": self.screening.id,
            "confirmation": self.confirmation.id if self.confirmation else None,
            **picked(self.note, "guest", "workload", "metric"),
            **picked(self, "unit", "more_is_better", "levers", "freedom"),
            "pairs_measured": self.measured,
            "pairs_planned": self.planned,
            "missing": [{"setting": name, "because": because} for name, because in self.missing],
            "proposed": [list(levers) for levers in self.proposed],
            "default": self.default,
            "settings": [
                {"setting": one.name, "levers": list(one.levers), "keys": self.note.keys(one.levers)}
                | {"figure": one.figure, "difference": one.difference}
                for one in self.settings
            ],
            "second_against_first": self.against,
            "winner": winner.name if winner else None,
            "undecided": self.undecided,
        }


def tuned(*documents: RunDocument) -> Tuned:
    """What the runs of a screening and of its confirmation, or of a screening alone, say.

    Raises UsageError for other runs, and where a confirmation is of another screening.
    """
    steps = {"screening": 0, "confirmation": 1}
    noted = sorted(((_note(one), one) for one in documents), key=lambda pair: steps[pair[0].step])
    if [note.step for note, _ in noted] not in (["screening"], ["screening", "confirmation"]):
        raise UsageError("tuning is a screening, or a screening and its confirmation")
    found = _screened(*noted[0])
    if len(noted) == 1:
        return found
    note, document = noted[1]
    if note.screening != found.screening.id:
        raise UsageError(f"run {document.run.id} confirms run {note.screening}, and not {found.screening.id}")
    return _confirmed(found, note, document)


def _note(document: RunDocument) -> TuningNote:
    written = document.run.written
    note = None if written is None else note_of_text(written.text)
    if note is None:
        raise UsageError(f"run {document.run.id} is none of `vmlab tune`")
    if document.run.ended is None:
        raise UsageError(f"run {document.run.id} is not over")
    return note


def _screened(note: TuningNote, document: RunDocument) -> Tuned:
    figures = _figures(note, document)
    unit, more = _measured(note, document)
    logarithms = {name: _logarithms(figure) for name, figure in figures.items()}
    pairs = list(_pairs(note, logarithms))
    effects = main_effects(pairs)
    levers = [
        _worth(note, name, effects[number] if effects else None, more=more) for number, name in enumerate(note.levers)
    ]
    means = {name: mean(list(values.values())) for name, values in logarithms.items() if values}
    blocks = max((cell.repeat for cell in document.cells), default=0)
    written = document.run.written
    return Tuned(
        screening=document.run,
        note=note,
        text=written.text if written else "",
        unit=unit,
        more_is_better=more,
        levers=tuple(sorted(levers, key=lambda one: -(one.percent or 0.0) if more else one.percent or 0.0)),
        freedom=effects[0].freedom if effects else 0,
        measured=sum(len(one.differences) for one in pairs),
        planned=len(note.settings) // 2 * blocks,
        proposed=tuple(_proposed(note, levers, means, more=more)),
        missing=tuple(_missing(figures)),
    )


def _figures(note: TuningNote, document: RunDocument) -> dict[str, Figure]:
    """The figure of each setting."""
    value, found = over_tiles(note.workload, note.metric), {}
    for name in note.settings:
        cells = as_of(note.workload, [cell for cell in document.cells if cell.axes.get(AXIS) == name])
        found[name] = figure_of_runs([(document.run.id, cells)], value)
    return found


def _measured(note: TuningNote, document: RunDocument) -> tuple[str, bool]:
    """The unit of the figure, and whether more of it is better. Raises UsageError where no cell has it."""
    for cell in document.cells:
        for over in cell.over_tiles:
            if (over.workload, over.metric) == (note.workload, note.metric) and over.more_is_better is not None:
                return over.unit, over.more_is_better
    raise UsageError(f"run {document.run.id}: no cell has the metric {note.workload} {note.metric}")


def _logarithms(figure: Figure) -> dict[int, float]:
    """By block the logarithm of the reading; empty for a figure that does not count, or is 0 or below somewhere."""
    readings = figure.readings if figure.comparable else ()
    if any(one.value <= 0 for one in readings):
        return {}
    return {one.repeat: math.log(one.value) for one in readings}


def _pairs(note: TuningNote, logarithms: Mapping[str, Mapping[int, float]]) -> Iterator[FoldedPair]:
    """Each setting against its mirror image, in the blocks in which both count."""
    by_levels = {note.levels(note.settings[name]): own for name, own in logarithms.items()}
    for levels, own in by_levels.items():
        other = by_levels.get(mirrored(levels))
        if other is not None and levels > mirrored(levels):
            yield FoldedPair(levels, [own[block] - other[block] for block in sorted(own.keys() & other.keys())])


def _worth(note: TuningNote, name: str, effect: MainEffect | None, *, more: bool) -> LeverWorth:
    lever = note.levers[name]
    worth = LeverWorth(name, lever.default, lever.other)
    if effect is None:
        return worth
    ends = effect.interval()
    interval = None if ends is None else (_percent(ends[0]), _percent(ends[1]))
    return LeverWorth(name, lever.default, lever.other, _percent(effect.effect), interval, (effect.effect > 0) == more)


def _missing(figures: Mapping[str, Figure]) -> Iterator[tuple[str, str]]:
    for name, figure in figures.items():
        if figure.comparable is None:
            undelivered = undelivered_words(figure.undelivered)
            yield name, f"{Verdict.NOT_DELIVERED}: {undelivered}" if undelivered else figure.state
        elif not _logarithms(figure):
            yield name, "a value is 0 or below, and has no logarithm"


def _percent(effect: float) -> float:
    return 100 * math.expm1(min(effect, 700.0))


def _proposed(
    note: TuningNote, levers: Sequence[LeverWorth], means: Mapping[str, float], *, more: bool
) -> list[tuple[str, ...]]:
    """The settings to confirm: the one that the effects ask for, and the best that was measured, or the best two.

    The effects ask for each lever that is better at its other level beyond noise; where none is, for all that seem so.
    """
    seeming = [one for one in levers if one.better and one.percent]
    asked = tuple(one.name for one in ([one for one in seeming if one.beyond_noise] or seeming))
    ranked = sorted(means, key=lambda name: -means[name] if more else means[name])
    every = dict.fromkeys([asked, *(note.settings[name] for name in ranked)])
    return [one for one in every if one][:CONFIRMED]


def _confirmed(found: Tuned, note: TuningNote, document: RunDocument) -> Tuned:
    figures = _figures(note, document)
    default, names = figures[DEFAULT], [name for name in note.settings if name != DEFAULT]
    pairs = [(default, figures[name]) for name in names]
    pairs += [(figures[names[0]], figures[names[1]])] if len(names) == CONFIRMED else []
    tested = differences([Sides(one, other, found.more_is_better) for one, other in pairs])
    settings = [
        TunedSetting(name, note.settings[name], figures[name], one)
        for name, one in zip(names, tested[: len(names)], strict=True)
    ]
    return replace(
        found,
        confirmation=document.run,
        default=default,
        settings=tuple(settings),
        against=tested[-1] if len(names) == CONFIRMED else None,
    )
