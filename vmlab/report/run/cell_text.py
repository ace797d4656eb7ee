"""Everything about one cell in plain text: all of its figures, not only those of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vmlab.analysis.cell_shape import CellDocument, RemadeDocument, SpanDocument
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.jsonable import fields_of
from vmlab.model.quantities import format_bytes
from vmlab.model.results import RawOutput
from vmlab.model.sample import unit_of
from vmlab.model.visible import visible, visible_line, visible_values
from vmlab.report.blocks import Block, Column, Notes, Section, Table
from vmlab.report.bound_text import bound_lines
from vmlab.report.figures import spread_text, unit_word, value_text
from vmlab.report.heading import heading
from vmlab.report.run.host_rows import host_table, mean_text, row_label
from vmlab.report.run.latency_text import disk_section, span_latency_section
from vmlab.report.run.lever_text import lever_lines
from vmlab.report.run.loop_text import loop_section
from vmlab.report.run.target_text import verdict_words
from vmlab.report.words import (
    NOT_MEASURED,
    host_number,
    host_words,
    moment,
    network_words,
    number,
    plural,
    switch_words,
    tiles_words,
)
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH
from vmlab.telemetry.domains.neighbours import GUESTS_OF_HOST, took_words
from vmlab.telemetry.host.host_figures import headlines


def cell_text(document: RunDocument, cell: CellDocument, width: int = WIDTH) -> str:
    """The heading of the run, then one cell: outcome, phases, every measurement, the host, the proofs."""
    document, cell = visible_values(document), visible_values(cell)
    what = f"cell {cell.cell} ({axes_words(cell.axes)}), {repeat_words(cell.repeat)}{_attempt(cell)}: {cell.outcome}"
    told = [what, *(f"  {reason}" for reason in cell.reasons), *cell_facts(cell)]
    blocks: list[Block] = [Notes(heading(document)), Section("", [Notes(told)]), *cell_sections(cell)]
    return "\n".join(text_lines(blocks, width)) + "\n"


def _attempt(cell: CellDocument) -> str:
    """Which attempt a cell is, and what became of it, where there is more than one."""
    of = f", attempt {cell.attempt}" if cell.attempt > 1 else ""
    return of if cell.replaced_by is None else f"{of}, measured again as cell {cell.replaced_by}"


def cell_sections(cell: CellDocument) -> Iterator[Section]:
    """All figures of a cell, what was changed in it, and what was proved of it."""
    figures = f"{plural(len(cell.measurements), 'measurement')} of this cell"
    yield Section(figures, [_measurements(cell)], folded=True, long=True)
    yield loop_section(cell.loop)
    yield Section("values made again", [Notes(list(_remade(cell.remade)))], folded=True)
    yield Section("stages of workloads", [_stages(cell)], folded=True)
    yield from _span_sections(cell)
    yield Section("the host in this cell", [_host(cell)], folded=True, long=True)
    yield disk_section(cell)
    proved = {
        "cache modes proved": _proofs(cell),
        "networks proved": map(network_words, cell.network_proof),
        "seen in guests": _seen(cell),
    }
    for title, texts in proved.items():
        yield Section(title, [Notes(list(texts), cut=True)], folded=True)


def cell_facts(cell: CellDocument) -> Iterator[str]:
    """How a cell went, in sentences: how its guests came up, what was changed, what bound it, where its bytes went."""
    provision = cell.provision
    if provision.seconds is not None:
        ready = plural(provision.guests or 0, "guest")
        yield f"{ready} ready after {number(provision.seconds)} s ({provision.how})"
    if host := host_words(cell.settings.get("host", {})):
        yield f"settings of the host: {host}"
    if cell.start_skew_ms is not None:
        yield f"workloads started {spread_text(cell.start_skew_ms, cell.skew_uncertainty_ms)} ms apart"
    if cell.wall_seconds is not None:
        yield f"total wall clock {number(cell.wall_seconds)} s"
    for one in cell.switches:
        yield f"switched {number(one.seconds)} s after the start, as {one.origin} asked: {switch_words(fields_of(one))}"
    for change in cell.tile_changes:
        told = tiles_words(change.before, change.after)
        yield f"{number(change.seconds)} s after the start, as {change.origin} asked: {told}"
    if cell.targets:
        yield f"targets: {verdict_words(cell)}"
    yield from lever_lines(cell)
    yield from bound_lines(cell)
    if beside := _beside(cell):
        yield beside
    if cell.phases:
        yield "phases: " + ", ".join(f"{name} {number(seconds)} s" for name, seconds in cell.phases.items())


def _measurements(cell: CellDocument) -> Table:
    taken = cell.measurements
    columns = [
        Column("tile", [str(one.tile) for one in taken], notes=[one.guest for one in taken]),
        Column("metric", [one.metric for one in taken], beside=True),
        Column("value", [value_text(one.value, one.unit, cell.outcome) for one in taken], beside=True),
        Column("unit", [unit_word(one.unit, one.value) for one in taken], beside=True),
    ]
    return Table("workload", [one.workload for one in taken], columns)


def _stages(cell: CellDocument) -> Table:
    """Stages of workloads with the host's CPU and disk meanwhile; all of its figures are in the JSON."""
    stages = cell.stages
    columns = [
        Column("tile", [str(one.tile) for one in stages]),
        Column("stage", [one.stage for one in stages], beside=True),
        Column("s", [number(one.seconds) for one in stages], beside=True),
    ]
    for figure in (one for one in headlines() if one.of_stages):
        means = [one.host.get(figure.name) for one in stages]
        texts = [NOT_MEASURED if mean is None else mean_text(figure, mean.mean) for mean in means]
        columns.append(Column(row_label(figure), texts))
    return Table("workload", [one.workload for one in stages], columns)


def _span_sections(cell: CellDocument) -> Iterator[Section]:
    """The host's means in each span between switches, a column each, and what a loop did in it."""
    # Where tiles alone changed, the cache mode still says which guests they were.
    names = list(dict.fromkeys(one.what for one in cell.switches)) or ["cache"]
    spans, corner = cell.spans, " / ".join(names)
    heads = [_span_words(span, names, tiles=bool(cell.tile_changes)) for span in spans]
    means = [{name: one.mean for name, one in span.host.items()} for span in spans]
    yield Section("host, mean in each span", [host_table(corner, list(zip(heads, means, strict=True)))])
    yield span_latency_section(spans, heads, corner)
    for span, head in zip(spans, heads, strict=True):
        yield loop_section(span.loop, head)


def _span_words(span: SpanDocument, names: Iterable[str], *, tiles: bool) -> str:
    """What was in force in a span of all that was changed, and when."""
    said = {"cache": span.cache, "ksm": span.ksm}
    state = " / ".join(filter(None, (said[name] for name in names)))
    count = "" if span.tiles is None or not tiles else plural(span.tiles, "tile")
    when = f"{number(span.since)} to {number(span.until)} s"
    return ", ".join(filter(None, (state, count, when)))


def _remade(changes: Iterable[RemadeDocument]) -> Iterator[str]:
    """A line for each figure that was made again, with the old one."""
    for one in changes:
        was, value = ("none" if figure is None else f"{figure:.6g}" for figure in (one.was, one.value))
        where = f"{one.workload} of tile {one.tile}, {one.metric}"
        when = f"by vmlab {one.version}, {moment(one.at)}"
        yield f"{where}: {value} (unit {one.unit}), made again {when}; it was {was}"


def _host(cell: CellDocument) -> Table:
    host = cell.host
    columns = [
        Column("mean", [host_number(figure.mean, unit_of(name)) for name, figure in host.items()]),
        Column("max", [host_number(figure.max, unit_of(name)) for name, figure in host.items()]),
        Column("p95", [host_number(figure.p95, unit_of(name)) for name, figure in host.items()]),
    ]
    return Table("host", list(host), columns)


def _proofs(cell: CellDocument) -> Iterator[str]:
    for proof in cell.cache_proof:
        flag = "on" if proof.o_direct else "off"
        verdict = "as asked" if proof.agrees else "NOT as asked"
        yield f"{proof.guest}: cache {proof.expected} {verdict}, O_DIRECT {flag}, {proof.file}"
    for lever in cell.lever_proof:
        verdict = "as asked" if lever.agrees else f"NOT {lever.expected} as asked"
        yield f"{lever.guest}: {lever.lever} {lever.found} {verdict}, by {lever.by}"


def _seen(cell: CellDocument) -> Iterator[str]:
    """What was found inside of each guest, a line for its boot and one for its data disk."""
    for guest in cell.seen_in_guests:
        name = f"{guest.guest} of tile {guest.tile}"
        if (boot := guest.boot) is not None:
            failed = f", failed: {' '.join(boot.failed)}" if boot.failed else ""
            units = f"{len(boot.units)} units active"
            yield f"{name}: boot {boot.mode}, {boot.state} in {boot.target}, {units}{failed}"
        if (disk := guest.data_disk) is not None:
            seen = f"{format_bytes(disk.bytes)}, queues {disk.queues}"
            ahead = f"read-ahead {format_bytes(disk.read_ahead_bytes)}"
            yield f"{name}: data disk {disk.device} of {seen}, {ahead}"


def raw_text(outputs: list[tuple[int, RawOutput]]) -> str:
    """What tools printed, control characters made visible, each under a line with its origin."""
    parts = []
    for cell, output in outputs:
        where = f"cell {cell}, tile {output.tile}, {output.workload} on {output.guest}: {output.name}"
        parts.append(f"==> {visible_line(where)} <==\n{visible(output.text.rstrip())}\n")
    return "\n".join(parts) or "no tool printed anything\n"


def _beside(cell: CellDocument) -> str:
    """What the host's own guests took; empty where there were none, and in older records."""
    known = cell.neighbours
    return f"{GUESTS_OF_HOST} took: {took_words(known)}" if known else ""
