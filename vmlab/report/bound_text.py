"""What bound the cells of a run, and where their bytes went, in plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from vmlab.analysis.cell_shape import CellDocument, TrafficDocument
from vmlab.analysis.figures.figure import figure_of
from vmlab.analysis.record.bound import bound_cells, bound_over, idle_disk_words
from vmlab.analysis.record.traffic import traffic_over
from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.grouping import grouped
from vmlab.model.quantities import format_bytes
from vmlab.model.run import Outcome
from vmlab.report.blocks import Notes, Section
from vmlab.report.words import NOT_MEASURED, cells_words, folded, plural

_MOST_POINTS = 12
"""Of more points only a count is shown below the tables; each has its own page."""
_MOST_LIMITED = 4
"""Of more values of an axis only the number of all cells is said."""
_WORDS = {"cpu": "CPU", "none": "nothing"}
MOVED = {"read": "guests read, a cell", "wrote": "guests wrote, a cell"}
"""Rows of what the guests' disks moved in a cell, by what they did."""
LIMIT_ROW = "at its limit"


def resource_word(resource: str) -> str:
    """A resource of `bound_by` in a table."""
    return _WORDS.get(resource, resource)


def traffic_row(row: str, cells: Sequence[CellDocument]) -> str:
    """The text of one of the rows of `MOVED`, or of `LIMIT_ROW`, for cells that share a column."""
    if row == LIMIT_ROW:
        found = [cell.bound_by.resource for cell in bound_cells(cells) if cell.bound_by is not None]
        return ", ".join(map(resource_word, dict.fromkeys(found))) or NOT_MEASURED
    mean = figure_of(cells, lambda cell: _guests_bytes(cell, row)).mean
    return NOT_MEASURED if mean is None else format_bytes(mean)


def _guests_bytes(cell: CellDocument, row: str) -> float | None:
    traffic = cell.disk_traffic
    if traffic is None:
        return None
    return (traffic.read if row == MOVED["read"] else traffic.written).guests_bytes


def bound_lines(cell: CellDocument) -> Iterator[str]:
    """The sentences of one cell: what bound it, and where its bytes went."""
    if cell.bound_by is not None:
        yield cell.bound_by.sentence
    if cell.disk_traffic is not None and cell.disk_traffic.sentence:
        yield _traffic_words(cell.disk_traffic)


def _traffic_words(traffic: TrafficDocument) -> str:
    """Where bytes went; marked unless the counters were read as workloads started and had ended."""
    return traffic.sentence + ("" if traffic.exact else " (by ticks, not from start to end)")


def limit_words(counted: Mapping[str, Counter[str]]) -> str:
    """``the disk was at its limit in 7 of 8 cells with none, in 0 of 8 with writeback``; empty where that is not known.

    `counted` says of each value of an axis, or of each side, how many cells each resource bound.
    """
    known = {f" with {name}" if len(counted) > 1 else "": counts for name, counts in counted.items() if counts}
    every = sum(known.values(), Counter[str]())
    found = [resource for resource, _ in every.most_common() if resource != "none"]
    if not found:
        return f"no resource was at its limit{' in any cell' if every.total() > 1 else ''}" if every else ""
    places = known if len(known) <= _MOST_LIMITED else {"": every}
    parts = [
        f"the {resource_word(one)}{'' if at else ' was at its limit'}{_where(one, places)}"
        for at, one in enumerate(found)
    ]
    return "; ".join(parts)


def _where(resource: str, places: Mapping[str, Counter[str]]) -> str:
    """In how many cells of each place a resource was at its limit."""
    total, hits = sum(counts.total() for counts in places.values()), {at: one[resource] for at, one in places.items()}
    if sum(hits.values()) == total:
        return "" if total == 1 else f" in {'both' if total == 2 else f'all {total}'} cells"
    if all(counts.total() == 1 for counts in places.values()):
        return " and".join(at for at, count in hits.items() if count)
    cells = [str(counts.total()) for counts in places.values()]
    cells[0] = plural(int(cells[0]), "cell")
    return ",".join(f" in {count} of {of}{at}" for of, (at, count) in zip(cells, hits.items(), strict=True))


def limits_section(cells: Sequence[CellDocument]) -> Section:
    """What bound the cells of each point, and whether the disk mattered where cache modes are compared."""
    known = bound_cells(cells)
    points = grouped((axes_words(cell.axes), cell) for cell in known)
    if len(points) > _MOST_POINTS:
        said = [f"{limit_words({'': bound_counts(known)})}; `vmlab show RUN:CELL` has the evidence"]
    else:
        said = [f"{place or 'all cells'}: {'; '.join(_point_words(those))}" for place, those in points.items()]
    note = idle_disk_words(cells) if points else None
    return Section("what bound the cells", [Notes([*said, *([note] if note else [])], tone="")])


def _point_words(cells: Sequence[CellDocument]) -> Iterator[str]:
    """The sentences of one point, over its repeats."""
    bounds = [cell.bound_by for cell in cells if cell.bound_by is not None]
    found = bound_over(bounds)
    counted = Counter(one.resource for one in bounds)
    alike = f"so in {counted.pop(found.resource)} of {plural(len(bounds), 'cell')}"
    others = ", ".join(f"{resource_word(name)} in {count}" for name, count in counted.most_common())
    yield found.sentence + (f" ({alike}, {others})" if others else "")
    traffic = [cell.disk_traffic for cell in cells if cell.disk_traffic is not None]
    if traffic and (moved := traffic_over(traffic)).sentence:
        yield f"{f'in all {len(traffic)} cells ' if len(traffic) > 1 else ''}{_traffic_words(moved)}"


def cell_words(cell: CellDocument) -> str:
    """``cell 2 (tiles 1, cache writeback, repeat 1)``."""
    return f"cell {cell.cell} ({axes_words(cell.axes)}, {repeat_words(cell.repeat)})"


def unpassed_lines(cells: Sequence[CellDocument]) -> Iterator[str]:
    """Why cells did not pass: a line for each of them, and one for each kind of reason that three or more have."""
    by_number = {str(cell.cell): cell for cell in cells if cell.replaced_by is None}
    lines: dict[str, list[str]] = {}
    for outcome in dict.fromkeys(cell.outcome for cell in cells if cell.outcome != Outcome.PASSED):
        reasons = [
            (number, reason)
            for number, cell in by_number.items()
            if cell.outcome == outcome
            for reason in cell.reasons or ["it has no end in the store"]
        ]
        for numbers, reason, _ in folded(reasons):
            those = [by_number[number] for number in numbers]
            what = cell_words(those[0]) if len(those) == 1 else _cells_words(those)
            lines.setdefault(f"{what} {_did(outcome, len(those))}", []).append(reason)
    yield from (f"{words}: {'; '.join(reasons)}" for words, reasons in lines.items())


def replaced_lines(cells: Sequence[CellDocument]) -> Iterator[str]:
    """Which cells were measured again, and why: a line for each point and repeat."""
    again = {cell.cell: cell for cell in cells if cell.replaced_by is not None}
    later = {cell.replaced_by for cell in again.values()}
    for first in (cell for number, cell in again.items() if number not in later):
        tries = [first]
        while (last := tries[-1].replaced_by) in again:
            tries.append(again[last])
        often = f" {len(tries)} times, at last" if len(tries) > 1 else ""
        reasons = folded([(str(one.cell), f"{one.outcome}: {'; '.join(one.reasons)}") for one in tries])
        why = [f"{_tries_words(names, len(tries))} {text}" for names, text, _ in reasons]
        yield f"{cell_words(first)} was measured again{often} as cell {last}; {'; '.join(why)}"


def _tries_words(names: Sequence[str], of: int) -> str:
    if of == 1:
        return "it was"
    return f"{cells_words(list(map(int, names)))} {'was' if len(names) == 1 else 'were'}"


def _cells_words(cells: Sequence[CellDocument]) -> str:
    """``cells 3, 7 and 11 (cache none)``: with what all of them have of the axes."""
    axes = cells[0].axes
    shared = {name: axes[name] for name in axes if all(one.axes.get(name) == axes[name] for one in cells)}
    return cells_words(sorted(cell.cell for cell in cells)) + (f" ({axes_words(shared)})" if shared else "")


def _did(outcome: str, count: int) -> str:
    match outcome:
        case Outcome.FAILED:
            return "failed"
        case Outcome.ABORTED:
            return "was aborted" if count == 1 else "were aborted"
        case _:
            return f"{'is' if count == 1 else 'are'} {outcome}"


def bound_counts(cells: Sequence[CellDocument]) -> Counter[str]:
    """How many of `bound_cells` each resource bound."""
    return Counter(cell.bound_by.resource for cell in bound_cells(cells) if cell.bound_by is not None)
