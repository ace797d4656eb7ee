"""The scores of a run over its tiles: their tables, what the columns mean, and the knee in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmlab.analysis.figures.figure import Figure
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.knee import ONE_REPEAT, TOO_FEW, Knee, KneeVerdict, Tested
from vmlab.analysis.tiles.scores import PlaceScores, ScoreRow
from vmlab.model.axes import axes_words
from vmlab.model.grouping import grouped
from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.report.blocks import Column, Section, Table
from vmlab.report.figures import figure_text
from vmlab.report.words import APART, NOT_MEASURED, STATISTIC_WORDS, apart_words, plural

_CAPTION = "from tile to tile"
_ALL = "all workloads"
_HEADS = ("efficiency", "gain %", "Jain", "CV %", "worst tile %")


def score_section(document: RunDocument) -> Section:
    """A table for each place of the other axes; empty for a run of single tiles."""
    return Section("", [_table(place) for place in _places(document)])


def knees(document: RunDocument, told: Sequence[bool] = (True, False)) -> list[str]:
    """The knee of throughput at each place, in a sentence, by whether it can be `told`; [] for single tiles."""
    found = [(place.axes, place.knee) for place in _places(document) if place.knee is not None]
    return [knee_words(axes, knee) for axes, knee in found if (knee.verdict != KneeVerdict.CANNOT_TELL) in told]


def _places(document: RunDocument) -> list[PlaceScores]:
    """The scores that the document was laid out with."""
    places: list[PlaceScores] = document.scores.get("places", [])
    return places


def score_notes(document: RunDocument) -> Iterator[str]:
    """What the columns mean; nothing for a run of single tiles."""
    places = _places(document)
    rows = [row for place in places for row in place.rows]
    if not rows:
        return
    yield _throughput_words(
        {row.workload: document.run.throughput.get(row.workload, RUN_TIME) for row in rows if row.workload}
    )
    if any(row.workload is None for row in rows):
        yield f"{_ALL}: geometric mean of their throughput in each tile, as in VMmark"
    if any(row.efficiency.spread for row in rows):
        yield "efficiency: throughput of n tiles over n times the throughput of one tile alone"
        yield "gain: what each further tile adds, in percent of the throughput of one tile alone"
    yield from (STATISTIC_WORDS[name] for name in ("jain", "cv"))
    varies = "; varies: it is another one in another repeat" if any(row.worst_tile is None for row in rows) else ""
    yield f"worst tile: throughput of the slowest tile in percent of the tiles' mean{varies}"
    if all(row.throughput.readings[1:] == () for row in rows):
        yield "one measurement of each score: no spread is known, so two of them cannot be compared"
    apart = [row.together for row in rows if row.apart]
    if apart:
        yield apart_words(apart)


def _throughput_words(metrics: Mapping[str, str]) -> str:
    """Which metric of each workload is its throughput, in a sentence."""
    names = grouped(("1 / run_time" if one == RUN_TIME else one, workload) for workload, one in metrics.items())
    return "throughput: " + "; ".join(f"{metric} of {', '.join(those)}" for metric, those in names.items())


def knee_words(axes: Mapping[str, AxisValue], knee: Knee) -> str:
    """What is known of a knee, with what it rests on."""
    where = f"knee, {axes_words(axes)}" if axes else "knee"
    share = f"{knee.share_percent:g} %"
    if knee.verdict == KneeVerdict.NOT_REACHED:
        fewest = min(step.repeats for step in knee.steps)
        skips = any(step.after > step.before + 1 for step in knee.steps)
        each = ", on average where numbers of tiles were skipped" if skips else ""
        adds = f"each further one adds more than {share} of one tile's throughput{each}"
        return f"{where}: not reached up to {knee.steps[-1].after} tiles; {adds}, by {plural(fewest, 'repeat')}"
    step = knee.decided
    assert step is not None
    if knee.verdict == KneeVerdict.REACHED:
        after = f"after {plural(step.before, 'tile')}"
        if knee.up_to != knee.tiles:
            after += f" to {knee.up_to}, as the numbers between were not run"
        return f"{where}: {after}; {_step(step)}, less than {share}, by {plural(step.repeats, 'repeat')}"
    seen = "" if knee.seen is None else f"; the estimates alone put it after {plural(knee.seen, 'tile')}"
    few = step.because in (ONE_REPEAT, TOO_FEW)
    needed = f", and it takes {step.needed} repeats at least" if few else ""
    return f"{where}: cannot tell; {_step(step)}, and the limit is {share}: {step.because}{needed}{seen}"


def _step(step: Tested) -> str:
    """``tile 3 adds 4.1 % (2.0 to 6.3) of one tile's throughput``."""
    who = f"tile {step.after}" if step.after == step.before + 1 else f"each of tiles {step.before + 1} to {step.after}"
    if step.gain is None:
        return f"it is not known what {who} adds"
    interval = "" if step.interval is None else f" ({step.interval[0]:.1f} to {step.interval[1]:.1f})"
    return f"{who} adds {step.gain:.1f} %{interval} of one tile's throughput"


def _table(place: PlaceScores) -> Table:
    caption = f"{_CAPTION}, {axes_words(place.axes)}" if place.axes else _CAPTION
    labels = [f"{row.workload or _ALL}, {plural(row.tiles, 'tile')}" for row in place.rows]
    columns = [Column(head, texts) for head, *texts in zip(_HEADS, *map(_texts, place.rows), strict=True)]
    # Without cells of one tile nothing is known of efficiency and gain.
    return Table("", labels, [one for one in columns if any(text != NOT_MEASURED for text in one.texts)], caption)


def _texts(row: ScoreRow) -> tuple[str, ...]:
    mark = f" {APART}" if row.apart else ""
    tile = f" (tile {row.worst_tile})" if row.worst_tile is not None else " (varies)"
    return (
        *(f"{text}{mark}" if text != NOT_MEASURED else text for text in map(figure_text, (row.efficiency, row.gain))),
        f"{_index(row.jain)}{mark}",
        figure_text(row.cv),
        f"{figure_text(row.worst)}{tile}",
    )


def _index(figure: Figure) -> str:
    """An index from 0 to 1, which needs more than two digits."""
    spread = figure.spread
    if spread is None:
        return NOT_MEASURED
    return f"{spread.mean:.4f}" if spread.half_width is None else f"{spread.mean:.4f} ± {spread.half_width:.4f}"
