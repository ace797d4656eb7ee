"""`vmlab tune` in words: what is going to be measured, what each lever is worth, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vmlab.analysis.comparison.tuned import CONFIRMED, LEAST_REPEATS, LeverWorth, Tuned
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import jsonable, picked
from vmlab.model.ordered import all_ordered_words
from vmlab.model.quantities import about_seconds
from vmlab.model.visible import visible_line
from vmlab.plan.tuning.data_levers import level_words
from vmlab.plan.tuning.screening_design import DEFAULT, letter_of
from vmlab.plan.tuning.tuning_scenarios import ScreeningPlan, winning_guest, winning_text
from vmlab.report.blocks import Block, Column, Notes, Section, Table, Text
from vmlab.report.comparison_text import figure_name
from vmlab.report.disk_lines import CopiedLine, disk_lines
from vmlab.report.figures import figure_text, form_of, with_unit
from vmlab.report.heading import behind_notes
from vmlab.report.verdicts import UNPROVEN, UNTESTED, difference_parts, sentence, verdict_words
from vmlab.report.words import MARK, NOT_MEASURED, in_brackets, plural, relative_number
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH

PLAN_SCHEMA = "vmlab.tune-plan/1"
_GUIDE = "a guide: each interval is of one lever alone, and what is proposed was chosen by the same measurements"
TOO_FEW = f"fewer than {LEAST_REPEATS} repeats prove no difference between {CONFIRMED + 1} settings"
_NOTHING = f"no setting is proven better than the {DEFAULT}"


@dataclass(frozen=True, slots=True)
class TuneTime:
    """How long a screening of so many `cells` takes by the estimate, in seconds, and so its confirmation."""

    screening_seconds: float
    cells: int
    repeats: int
    freezing_seconds: float

    @property
    def confirmation_cells(self) -> int:
        """The default and the settings that are compared with it, in each repeat."""
        return (1 + CONFIRMED) * self.repeats

    @property
    def confirmation_seconds(self) -> float:
        """By the mean of the screening's cells."""
        return self.screening_seconds / max(1, self.cells) * self.confirmation_cells

    @property
    def seconds(self) -> float:
        """Both runs, with frozen guests."""
        return self.screening_seconds + self.confirmation_seconds

    def json_fields(self) -> dict[str, Any]:
        """As it stands in the plan's document."""
        return {
            "estimated_seconds": round(self.seconds, 1),
            "freezing_seconds": round(self.freezing_seconds, 1),
            "screening": {"cells": self.cells, "estimated_seconds": round(self.screening_seconds, 1)},
            "confirmation": {
                "cells": self.confirmation_cells,
                "repeats": self.repeats,
                "estimated_seconds": round(self.confirmation_seconds, 1),
            },
        }


def tune_plan_document(plan: ScreeningPlan, time: TuneTime, refusal: str | None) -> dict[str, Any]:
    """The document ``vmlab.tune-plan/1``: what would be measured, and in what time."""
    note = plan.note
    body = {
        "schema": PLAN_SCHEMA,
        "scenario": plan.file.scenario.name,
        **picked(note, "guest", "workload", "metric"),
        "levers": [{"lever": name, "default": one.default, "other": one.other} for name, one in note.levers.items()],
        "left_out": [{"lever": name, "because": because} for name, because in plan.left_out],
        "settings": note.settings,
        "blocks": plan.blocks,
        **time.json_fields(),
        "fits": refusal is None,
        "refusal": refusal,
    }
    found: dict[str, Any] = jsonable(body)
    return found


def tune_plan_text(plan: ScreeningPlan, time: TuneTime, width: int = WIDTH) -> str:
    """The same for people, the minutes first."""
    note, levers = plan.note, list(plan.note.levers.values())
    freezing = f"; {about_seconds(time.freezing_seconds)} more when guests are frozen first"
    blocks: list[Block] = [
        Text(f"{about_seconds(time.seconds)}, an estimate{freezing if time.freezing_seconds else ''}"),
        Text(f"screening     {about_seconds(time.screening_seconds)}: {time.cells} cells, {_design(plan)}"),
        Text(
            f"confirmation  {about_seconds(time.confirmation_seconds)}: {time.confirmation_cells} cells, the {DEFAULT} "
            f"and the best {CONFIRMED} settings, {time.repeats} repeats"
        ),
        *([Text(f"{' ' * 14}{TOO_FEW}")] if time.repeats < LEAST_REPEATS else []),
        Text(f"metric        {figure_name(note.workload, note.metric)}, of {plan.file.scenario.name}"),
        Section(
            "",
            [
                Table(
                    f"levers of the data disk of guest {note.guest}",
                    [f"{letter_of(number)} {name}" for number, name in enumerate(note.levers)],
                    [
                        Column(DEFAULT, [level_words(one.default) for one in levers]),
                        Column("other", [level_words(one.other) for one in levers]),
                    ],
                    wide=True,
                )
            ],
        ),
        Notes([f"left out: {name}: {because}" for name, because in plan.left_out]),
        Notes(["the screening is only a guide; the confirmation is the verdict"]),
    ]
    return _lines(blocks, width)


def _design(plan: ScreeningPlan) -> str:
    half = len(plan.note.settings) // 2
    return f"{half} settings and their mirror images in {plural(plan.blocks, 'block')}, in random order"


def screening_text(found: Tuned, width: int = WIDTH) -> str:
    """What each lever is worth by the screening, the best first."""
    return _lines(_screening(found), width)


def tune_text(found: Tuned, width: int = WIDTH) -> str:
    """The verdict, and the lines to copy; where nothing was confirmed, what there would be to confirm."""
    return _lines([*_confirmation(found), *_copied(found), *_behind(found)], width)


def _lines(blocks: Iterable[Block], width: int) -> str:
    return "\n".join(map(visible_line, text_lines(blocks, width))) + "\n"


def _screening(found: Tuned) -> Iterator[Block]:
    changes = [f"{level_words(one.default)} to {level_words(one.other)}" for one in found.levers]
    yield Section(
        f"what each lever is worth here, in percent of {_figure(found)} (run {found.screening.id})",
        [
            Table(
                "",
                [one.name for one in found.levers],
                [
                    Column("change", changes),
                    Column("worth", [_worth_text(one) for one in found.levers]),
                    Column("", [in_brackets(one.interval) for one in found.levers], beside=True),
                    Column("", [_lever_verdict(one) for one in found.levers]),
                ],
                wide=True,
            ),
            Notes([*_notes(found)]),
        ],
    )


def _figure(found: Tuned) -> str:
    end = "more" if found.more_is_better else "less"
    return f"{figure_name(found.note.workload, found.note.metric)}, of which {end} is better"


def _worth_text(one: LeverWorth) -> str:
    if one.percent is None:
        return NOT_MEASURED
    mark = "" if one.beyond_noise else f"{UNPROVEN if one.interval else UNTESTED} "
    return f"{mark}{relative_number(one.percent, 'difference')}"


def _lever_verdict(one: LeverWorth) -> str:
    if one.interval is None:
        return "not known"
    if not one.beyond_noise:
        return "within noise"
    return "better" if one.better else "worse"


def _notes(found: Tuned) -> Iterator[str]:
    if found.freedom:
        yield (
            "in brackets: 95 % interval, Student's t over blocks, "
            f"{plural(found.freedom, 'degree')} of freedom; each lever over both levels of the others"
        )
    yield _GUIDE
    if found.measured < found.planned:
        yield f"{MARK} {found.measured} of {found.planned} pairs of mirrored settings count"
    yield from (f"{MARK} setting {name}: {because}" for name, because in found.missing)


def _confirmation(found: Tuned) -> Iterator[Block]:
    if found.confirmation is None or found.default is None:
        words = "; ".join(found.note.words(levers) for levers in found.proposed)
        asked = f"to confirm: {words}; `vmlab tune --confirm {found.screening.id}`" if words else "nothing to confirm"
        yield Section("no verdict yet", [Notes([asked])])
        return
    figures = [found.default, *(one.figure for one in found.settings)]
    form = form_of(found.unit, figures)
    heading = with_unit(found.note.metric, found.unit, form)
    texts = [figure_text(one, found.unit, form) for one in figures]
    parts = [("", ""), *(difference_parts(one.difference) for one in found.settings)]
    verdicts = ["", *(verdict_words(one.difference) for one in found.settings)]
    yield Section(
        f"confirmation, the verdict (run {found.confirmation.id})",
        [
            Table(
                "",
                [DEFAULT, *(found.note.words(one.levers) for one in found.settings)],
                [
                    Column(heading, texts),
                    Column("difference", [one for one, _ in parts]),
                    Column("", [two for _, two in parts], beside=True),
                    Column("", verdicts),
                ],
                wide=True,
            ),
            Notes([*_sentences(found)]),
            Notes([verdict_sentence(found)], tone="answer"),
        ],
    )


def _sentences(found: Tuned) -> Iterator[str]:
    yield from (f"{found.note.words(one.levers)}: {sentence(one.difference)}" for one in found.settings)
    if found.against is not None:
        first, second = (found.note.words(one.levers) for one in found.settings)
        yield f"{second} against {first}: {sentence(found.against)}"


def verdict_sentence(found: Tuned) -> str:
    """Which setting won, or that none is proven better, or that there is no verdict."""
    winner = found.winner
    if winner is not None:
        return f"confirmed: {found.note.words(winner.levers)} is better than the {DEFAULT}"
    return "no verdict: a comparison has too few measurements" if found.undecided else _NOTHING


def _copied(found: Tuned) -> Iterator[Block]:
    lines = _lines_to_copy(found)
    yield Section("lines to copy", [Text(f"{one.where + ':':<9} {one.text}", indent=" " * 10) for one in lines])


def _lines_to_copy(found: Tuned) -> list[CopiedLine]:
    """Those of the winning setting; none without one."""
    if found.winner is None:
        return []
    levers, note = found.winner.levers, found.note
    return disk_lines(winning_guest(found.text, levers), {key for one in levers for key in note.levers[one].other})


def _behind(found: Tuned) -> Iterator[Block]:
    runs = [run for run in (found.screening, found.confirmation) if run is not None]
    accelerators, ordered = [run.accelerator for run in runs], all_ordered_words(run.host for run in runs)
    yield Section("", [Notes(behind_notes(accelerators, ordered, "some of the runs"))])


def tune_document(found: Tuned) -> dict[str, Any]:
    """The document ``vmlab.tune/1``: with the lines to copy, and the text of the winning scenario."""
    body: dict[str, Any] = jsonable(found)
    return {**body, "lines": grouped(_lines_to_copy(found)), "scenario": winner_text(found)}


def winner_text(found: Tuned) -> str | None:
    """The winning scenario's text; None without a winner."""
    if found.winner is None or found.confirmation is None:
        return None
    return winning_text(found.text, found.winner.levers, found.confirmation.id)
