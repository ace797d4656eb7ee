"""A recording of the host and its own guests as sections: means over its time, each disk's cache mode, and advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vmlab.analysis.cell_shape import BoundDocument, CellDocument
from vmlab.analysis.shape import (
    DomainDiskDocument,
    DomainDocument,
    RunDocument,
)
from vmlab.model.quantities import format_bytes, format_seconds
from vmlab.model.results import mean_of
from vmlab.report.blocks import Block, Column, Notes, Section, Table, Text
from vmlab.report.run.host_rows import host_table
from vmlab.report.words import NOT_MEASURED, capital, host_number
from vmlab.report.writers.text import paragraph, text_lines

if TYPE_CHECKING:
    from vmlab.analysis.advice.advice import Advised

ADVICE_TITLE = "advice on cache modes"
NO_GUEST = "no guest of the host's own was seen"
NO_ADVICE = "no advice: this recording has too little evidence"


def recording_sections(document: RunDocument) -> Iterator[Section]:
    """The host's means, the domains, their disks; every text of `document` has to be visible."""
    for cell in document.cells:
        yield Section("", [_host(cell)])
    if domains := domains_of(document):
        yield Section("", [domain_table(domains)])
        yield Section("", [disk_table(domains)])


def recording_answer(document: RunDocument) -> list[str]:
    """What was at its limit, and for how long that was watched; [] for a run with workloads."""
    if document.recording is None:
        return []
    limits = [text for cell in document.cells for text in _limits(cell.bound_by)]
    said = [*limits, f"recorded for {format_seconds(document.recording.seconds)}"]
    said += [] if domains_of(document) else [NO_GUEST]
    return [f"{capital(text)}." for text in said]


def advice_section(document: RunDocument) -> Section:
    """What the recording advises, of each guest or disk; empty for a recording without guests."""
    if not domains_of(document):
        return Section("", [])
    # Imported late: most runs are no recordings.
    from vmlab.analysis.advice.advice import advise

    advised = advise(document)
    said: list[Block] = []
    for one in advised.advice:
        said += [Text(f"{one.subject}: {one.matters}"), Notes([*one.why, f"measure it: {one.run}"])]
    said += [] if advised.advice else [Text(NO_ADVICE)]
    none = [f"no advice for {one.subject}: {one.matters}" for one in advised.none]
    return Section(ADVICE_TITLE, [*said, Notes(none)])


def domains_of(document: RunDocument) -> list[DomainDocument]:
    """The domains of a recording, the one first that used most CPU time."""
    domains = document.recording.domains if document.recording else []
    return sorted(domains, key=lambda one: -mean_of(one.figures, "cpu_percent", 0.0))


def advice_text(advised: Advised, width: int) -> str:
    """All of it; a line says where there is none."""
    lines: list[str] = []
    for one in advised.advice:
        lines += [*paragraph(f"{one.subject}: {one.matters}", width, "  ")]
        lines += [line for why in one.why for line in paragraph(f"- {why}", width, "  ")]
        lines += [f"  measure it: {one.run}", ""]
    if not advised.advice:
        lines += [NO_ADVICE, ""]
    return "\n".join([*lines, *_none(advised, width)]).rstrip() + "\n"


def _none(advised: Advised, width: int) -> Iterator[str]:
    if advised.none:
        yield "no advice for"
    for one in advised.none:
        yield from (f"  {line}" for line in paragraph(f"{one.subject}: {one.matters}", width - 2, "  "))


def compared_recordings(sides: Sequence[tuple[str, RunDocument]], width: int) -> list[str]:
    """Means of recordings side by side: of the host, of each guest and of each disk. Each is one reading: no difference
    is proven.
    """
    names = [f"{chr(ord('A') + place)}: {label}" for place, (label, _) in enumerate(sides)]
    found = [_rows(document) for _, document in sides]
    rows = list(dict.fromkeys(row for own in found for row in own))
    columns = [
        Column(name[0], [own.get(row, NOT_MEASURED) for row in rows]) for name, own in zip(names, found, strict=True)
    ]
    note = "means over each recording; one measurement of each, so no difference is proven"
    sections = (Section("", [Table("metric", rows, columns)]), Section("", [Text(note, cut=True)]))
    return text_lines([Notes(names, cut=True), *sections], width)


def _rows(document: RunDocument) -> dict[str, str]:
    """Each figure of a recording by its words."""
    found: dict[str, str] = {}
    for cell in document.cells:
        host = host_table("", [("mean", {name: one.mean for name, one in cell.host.items()})])
        found |= dict(zip(host.labels, host.columns[0].texts, strict=True))
    for one in domains_of(document):
        for table in (domain_table([one]), disk_table([one])):
            for place, name in enumerate(table.labels):
                found |= {f"{name} {column.heading}": column.texts[place] for column in table.columns}
    return found


def _host(cell: CellDocument) -> Table:
    """The host's figures over a cell, as means and at their most."""
    means = {name: one.mean for name, one in cell.host.items()}
    return host_table("host", [("mean", means), ("max", {name: one.max for name, one in cell.host.items()})])


def _limits(bound: BoundDocument | None) -> Iterator[str]:
    """For how much of the time CPUs, disk and memory were at their limits."""
    if bound is None:
        return
    evidence = bound.evidence
    parts = [
        f"{word} {evidence[key]:.0f} % of the time"
        for word, key in (("CPUs", "cpu_at_limit_percent"), ("disk", "disk_at_limit_percent"))
        if evidence.get(key, 0.0) >= 1
    ]
    yield f"AT ITS LIMIT: {', '.join(parts)}" if parts else "NOTHING WAS AT ITS LIMIT"


def domain_table(domains: Sequence[DomainDocument]) -> Table:
    """The means of each domain; a column that none has is left out."""

    def column(name: str, head: str, *, of_bytes: bool = False) -> Column:
        means = [mean_of(one.figures, name) for one in domains]
        return Column(head, [_text(mean, of_bytes=of_bytes) for mean in means])

    columns = [
        column("cpu_percent", "CPU %"),
        column("vcpu_delay_percent", "steal %"),
        column("memory_resident_bytes", "RSS", of_bytes=True),
        column("ksm_merged_bytes", "KSM", of_bytes=True),
        column("memory_used_bytes", "used", of_bytes=True),
        column("memory_cached_bytes", "cached", of_bytes=True),
        column("host_read_bytes_per_second", "disk read/s", of_bytes=True),
        column("host_write_bytes_per_second", "written/s", of_bytes=True),
    ]
    shown = [one for one in columns if any(text != NOT_MEASURED for text in one.texts)]
    return Table("domain, mean", [one.name for one in domains], shown)


def disk_table(domains: Sequence[DomainDocument]) -> Table:
    """Each disk of each domain with its cache mode and its means."""
    disks = [(domain, disk) for domain in domains for disk in domain.disks]

    def moved(disk: DomainDiskDocument, what: str) -> str:
        return _text(mean_of(disk.figures, f"disk_{what}_bytes_per_second"), of_bytes=True)

    columns = [
        Column("cache", [disk.cache_words for _, disk in disks]),
        Column("format", [disk.format for _, disk in disks]),
        Column("read/s", [moved(disk, "read") for _, disk in disks]),
        Column("written/s", [moved(disk, "write") for _, disk in disks]),
        Column("await ms", [_text(mean_of(disk.figures, "disk_await_ms")) for _, disk in disks]),
        Column("queue", [_text(mean_of(disk.figures, "disk_queue_depth")) for _, disk in disks]),
        Column("on", [disk.holder or NOT_MEASURED for _, disk in disks]),
    ]
    names = [f"{domain.name} {disk.target}" for domain, disk in disks]
    return Table("disk of the guest", names, columns)


def _text(value: float, *, of_bytes: bool = False) -> str:
    if value != value:
        return NOT_MEASURED
    return format_bytes(value) if of_bytes else host_number(value)
