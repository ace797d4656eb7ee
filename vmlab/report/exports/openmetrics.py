"""A run as OpenMetrics text (version 1.0.0): its measurements as they are, or all samples with their times."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import BinaryIO

from vmlab.analysis.record.timeline import RunSpans
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axis_word
from vmlab.model.grouping import grouped
from vmlab.model.sample import split_name, unit_of
from vmlab.report.exports.openmetrics_names import END, PART, RUN_INFO, FamilyNames, head_of, labels_text
from vmlab.report.exports.tidy import AXIS, LABELS, RUN_COLUMNS, Exported, labels_of, measured, of_run
from vmlab.report.exports.tidy_tables import cell_text
from vmlab.store.reader import RunReader
from vmlab.store.samples import HostReaders, series

_READING = "reading"
_VALUE_COLUMNS = ("metric", "unit", "value")
_OF_RUN = {"run", "started", "host", "kernel", "qemu", "libvirt", *LABELS}
"""Columns of a run that are labels of ``vmlab_run_info`` alone."""


def write_measurements(runs: Sequence[Exported], file: BinaryIO, *, run_label: bool = False) -> None:
    """A gauge for each metric, without times, as a textfile collector wants it.

    What is the same in a whole run stands in the labels of ``vmlab_run_info``; series have the label ``run`` only where
    asked, because each run would be new series otherwise. Where one of the runs is a fleet's, they have the label
    ``host``, and ``vmlab_run_info`` is there for each host. No two values are one series: further ones with the same
    labels are numbered by ``reading``.
    """
    documents = [run.document() for run in runs]
    is_fleet = any(document.run.hosts for document in documents)
    left_out = _OF_RUN - ({"run"} if run_label else set()) - ({"host"} if is_fleet else set())
    names = FamilyNames()
    families: dict[tuple[str, str], list[str]] = {}
    met = Counter[str]()
    for named in measured(*runs):
        labels = {
            name: cell_text(one)
            for name, one in named.items()
            if one is not None and name not in _VALUE_COLUMNS and name not in left_out
        }
        family, unit = names.of(str(named["metric"]), str(named["unit"]))
        series = f"{family}{labels_text(labels)}"
        met[series] += 1
        if met[series] > 1:
            series = f"{family}{labels_text({**labels, _READING: str(met[series])})}"
        families.setdefault((family, unit), []).append(f"{series} {named['value']!r}\n")
    _write(file, *_infos(documents))
    for (family, unit), lines in families.items():
        _write(file, head_of(family, unit), *lines)
    _write(file, END)


def write_samples(runs: Sequence[Exported], file: BinaryIO, *, run_label: bool = True) -> None:
    """A gauge for each value that the recorder reads, with the time of each tick, to be loaded into a database."""
    documents = [run.document() for run in runs]
    with contextlib.ExitStack() as closing:
        known = [
            (run, reader, RunSpans.read(reader), _places(document, reader.host, run_label=run_label))
            for run, document in zip(runs, documents, strict=True)
            for reader in closing.enter_context(HostReaders(run.reader)).all()
        ]
        _write_points(runs, documents, known, file)


_Known = tuple[Exported, RunReader, RunSpans, Mapping[int | None, dict[str, str]]]


def _write_points(
    runs: Sequence[Exported], documents: Sequence[RunDocument], known: Sequence[_Known], file: BinaryIO
) -> None:
    layouts = (layout for run in runs for layout in run.reader.sample_layouts().values())
    names = dict.fromkeys(name for layout in layouts for name in layout.names)
    families = FamilyNames()
    metrics = grouped((split_name(name)[0], name) for name in names)
    _write(file, *_infos(documents, timed=True))
    for metric, those in metrics.items():
        family, unit = families.of(metric, unit_of(metric))
        _write(file, head_of(family, unit))
        for name in those:
            for run, reader, spans, places in known:
                _write(file, *_points(run, reader, name, family, spans, places))
    _write(file, END)


def _infos(documents: Sequence[RunDocument], *, timed: bool = False) -> Iterator[str]:
    """Runs as labels of a gauge, of a fleet each host, with the time of their beginning where all lines have times."""
    # A gauge and not an info: the parser of textfile collectors knows the types of the older format alone.
    yield head_of(RUN_INFO, "")
    for document in {document.run.id: document for document in documents}.values():
        hosts: list[str | None] = [one.name for one in document.run.hosts]
        for host in hosts or [None]:
            values = dict(zip(RUN_COLUMNS, of_run(document, host), strict=True))
            labels = {name: cell_text(value) for name, value in values.items() if value is not None}
            labels |= labels_of(document)
            began = values["started"]
            time = f" {began.timestamp():.3f}" if timed and isinstance(began, datetime) else ""
            yield f"{RUN_INFO}{labels_text(labels)} 1{time}\n"


def _points(
    run: Exported,
    reader: RunReader,
    name: str,
    family: str,
    spans: RunSpans,
    places: Mapping[int | None, dict[str, str]],
) -> Iterator[str]:
    """The lines of one value: those of a cell together, as the format wants all points of a metric in order."""
    _, instance = split_name(name)
    known = {} if instance is None else {PART: instance}
    by_cell: dict[int | None, list[str]] = {}
    found = series(reader, name)
    for mono, value in zip(found.mono, found.values, strict=True):
        if value != value:
            continue
        span = spans.at(mono)
        cell = None if span is None else span.cell
        if run.cell is not None and cell != run.cell:
            continue
        by_cell.setdefault(cell, []).append(f" {value:.9g} {spans.wall_at(mono):.3f}\n")
    for cell, points in by_cell.items():
        labels = labels_text({**places.get(cell, places[None]), **known})
        yield from (f"{family}{labels}{point}" for point in points)


def _places(document: RunDocument, host: str | None, *, run_label: bool) -> dict[int | None, dict[str, str]]:
    """The labels of each cell, and of ticks between cells; `host` is that of a fleet whose ticks these are."""
    run = {"scenario": document.run.scenario, **({"run": document.run.id} if run_label else {})}
    if host:
        run["host"] = host
    places: dict[int | None, dict[str, str]] = {None: run}
    for cell in document.cells:
        axes = {f"{AXIS}{name}": axis_word(value) for name, value in cell.axes.items()}
        places[cell.cell] = {**run, "cell": str(cell.cell), "repeat": str(cell.repeat), **axes}
    return places


def _write(file: BinaryIO, *lines: str) -> None:
    file.writelines(line.encode("utf-8", "replace") for line in lines)
