"""The targets of a run's tiles, and which were missed, in plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.analysis.cell_shape import CellDocument, TargetDocument
from vmlab.analysis.figures.counted_cells import counts, is_final
from vmlab.analysis.tiles.target_results import delivered, load_of
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.quantities import Written
from vmlab.model.run import Outcome
from vmlab.report.blocks import Column, Notes, Section, Table, Text
from vmlab.report.bound_text import cell_words
from vmlab.report.figures import value_text
from vmlab.report.words import plural
from vmlab.workloads.target_limits import Target, limit_form

_TITLE = "targets of each tile"
_MOST_CELLS = 12
_MOST_MISSED = 4


def limit_words(target: TargetDocument | Target) -> str:
    """``web.latency_p95 at most 500 ms``."""
    return f"{target.workload}.{target.metric} {_side_of(target)}"


def missed_words(target: TargetDocument, *, of_tiles: bool) -> str:
    """``web.latency_p95 610.0 ms in tile 2 (at most 500 ms)``; without the tile where there is only one."""
    where = _in_tile(target) if of_tiles else ""
    return f"{target.workload}.{target.metric} {measured_words(target)}{where} ({_side_of(target)})"


def instead_words(target: TargetDocument, *, of_tiles: bool) -> str:
    """``web.latency_p95 was 610 ms in tile 2 instead of at most 500 ms``; without the tile where there is one."""
    name, where = f"{target.workload}.{target.metric}", _in_tile(target) if of_tiles else ""
    return f"{name} was {measured_words(target)}{where} instead of {_side_of(target)}"


def _in_tile(target: TargetDocument) -> str:
    return f" in tile {target.tile}"


def measured_words(target: TargetDocument) -> str:
    """The figure in the unit of its limit."""
    form = _form(target)
    return f"{value_text(target.value, target.unit, form=form)} {form.unit}".rstrip()


def _form(target: TargetDocument | Target) -> Written:
    return limit_form(target.unit, target.limit, target.written_in)


def _side_of(target: TargetDocument | Target) -> str:
    return f"{'at least' if target.at_least else 'at most'} {limit_text(target)}"


def limit_text(target: TargetDocument | Target) -> str:
    """The limit alone, such as ``500 ms``."""
    form = _form(target)
    return f"{target.limit * form.factor:.10g} {form.unit}".rstrip()


def verdict_words(cell: CellDocument) -> str:
    """Whether the cell's tiles delivered what was asked, with the targets that were missed, the worst first."""
    verdict = delivered(cell)
    if verdict is True:
        return f"every tile met its targets{_not_applicable(cell)}"
    if all(not one.applicable for one in cell.targets):
        return f"no target applies{_not_applicable(cell)}"
    missed = worst_first([one for one in cell.targets if one.met is False])
    if verdict is False:
        more = f", and {len(missed) - _MOST_MISSED} more" if len(missed) > _MOST_MISSED else ""
        worst = ", ".join(missed_words(one, of_tiles=of_tiles([cell])) for one in missed[:_MOST_MISSED])
        return f"missed {plural(len(missed), 'target')}: {worst}{more}{_not_applicable(cell)}"
    if cell.outcome != Outcome.PASSED:
        return f"the cell is {cell.outcome}, so it is unknown whether it met its targets"
    return "it is unknown whether it met its targets"


def of_tiles(cells: Sequence[CellDocument]) -> bool:
    """Whether some cell has more than one tile."""
    return any(target.tile > 1 for cell in cells for target in cell.targets)


def _not_applicable(cell: CellDocument) -> str:
    """The targets whose metric the cell's workloads do not give, as the end of a sentence; empty where all apply."""
    names = dict.fromkeys(f"{one.workload}.{one.metric}" for one in cell.targets if not one.applicable)
    return f"; not applicable here: {', '.join(names)}" if names else ""


def worst_first(targets: Sequence[TargetDocument]) -> list[TargetDocument]:
    """Measured targets in the order of how much of their limit was taken; one that is 0 of what it should be first."""
    return sorted(targets, key=load_of, reverse=True)


def missed_sentence(cells: Sequence[CellDocument]) -> str:
    """In how many cells a target was missed, and which most; empty where none was."""
    missing = [cell for cell in cells if delivered(cell) is False]
    if not missing:
        return ""
    worst = worst_first([one for cell in missing for one in cell.targets if one.met is False])[0]
    words = missed_words(worst, of_tiles=of_tiles(cells))
    return f"targets missed in {len(missing)} of {plural(len(cells), 'cell')}, most of all {words}"


def target_table(cells: Sequence[CellDocument]) -> Section:
    """What each target came to at each place of the axes; empty without targets.

    Over repeats and tiles that is the figure that took most of its limit, and in how many cells the target was missed.
    """
    places = grouped((axes_words(cell.axes), cell) for cell in cells if cell.targets and is_final(cell))
    asked = _asked([cell for those in places.values() for cell in those])
    columns = [_column(place, [_at_place(words, those) for words in asked]) for place, those in places.items()]
    return Section("targets", [Table(_TITLE, asked, columns)])


def _column(place: str, texts: Sequence[str]) -> Column:
    return Column(place, texts, tones=["missed" if text.startswith("missed") else "" for text in texts])


def _asked(cells: Sequence[CellDocument]) -> list[str]:
    return list(dict.fromkeys(limit_words(one) for cell in cells for one in cell.targets))


def _at_place(words: str, cells: Sequence[CellDocument]) -> str:
    known = [[one for one in cell.targets if limit_words(one) == words] for cell in cells if counts(cell)]
    targets = [one for those in known for one in those]
    if targets and all(not one.applicable for one in targets):
        return "not applicable"
    measured = [one for one in targets if one.value is not None and one.met is not None]
    passed = [those for cell, those in zip(filter(counts, cells), known, strict=True) if delivered(cell) is not None]
    if not measured or not passed:
        return "not known"
    missed = sum(any(one.met is False for one in those) for those in passed)
    of = "" if len(passed) == 1 else f" in {missed or len(passed)} of {plural(len(passed), 'cell')}"
    return f"{'missed' if missed else 'met'}{of}: {measured_words(worst_first(measured)[0])}"


def target_section(cells: Sequence[CellDocument]) -> Section:
    """The targets of a run, and for each cell whether its tiles delivered; empty for a run without targets."""
    having = [cell for cell in cells if cell.targets]
    if len(having) > _MOST_CELLS:
        verdicts = ["; ".join(_counted(having))]
    else:
        verdicts = [f"{cell_words(cell)}: {verdict_words(cell)}" for cell in having]
    return Section(_TITLE, [Text(", ".join(_asked(having))), Notes(verdicts, tone="")])


def _counted(cells: Sequence[CellDocument]) -> Iterator[str]:
    verdicts = [delivered(cell) for cell in cells]
    for verdict, words in ((True, "delivered"), (False, "missed a target"), (None, "are not known")):
        if count := verdicts.count(verdict):
            yield f"{count} of {plural(len(cells), 'cell')} {words}"
