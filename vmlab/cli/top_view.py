"""One sample of the host, and the host's own guests, as lines of text for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from vmlab.model.domain import DomainDisk
from vmlab.model.quantities import format_bytes
from vmlab.model.sample import Sample
from vmlab.model.visible import visible_line
from vmlab.system.text_width import exactly
from vmlab.telemetry.cpu_speed import SPEED
from vmlab.telemetry.domains.hurting import DomainState
from vmlab.telemetry.host.host_figures import HostFigure, figures_of_group, groups

_NOTHING = "-"
_MOST_CPUS = 16
_OF_OTHER_FORM = ("CPU", "Speed", "Stalled", "Disk")
"""Lines that are more than figures with their names."""
_COLUMNS = (("CPU %", 7), ("steal %", 8), ("RSS", 10), ("KSM", 10), ("used", 10), ("cached", 10), ("net MB/s", 9))
_HEAD = f"{'Domains':<18}{''.join(f'{name:>{width}}' for name, width in _COLUMNS)}  takes most"
_OF_DISK = (("MB/s", 8), ("req/s", 8), ("await ms", 9), ("queue", 7))
_DISK_HEAD = f"{'  disk':<18}{'cache':<24}{'format':<8}{''.join(f'{name:>{width}}' for name, width in _OF_DISK)}  file"


def host_lines(sample: Sample) -> list[str]:
    """CPU, memory, KSM, pressure and disks; cache is never part of what is used."""
    return [
        *_cpu(sample),
        *_memory(sample),
        *_pressure(sample),
        *_disks(sample),
        f"Tick      {sample.length:.3f} s   {sample.lateness * 1e3:.2f} ms late"
        f"   recorder {_percent(sample.get('recorder_cpu_percent'))} of one CPU",
    ]


def _cpu(sample: Sample) -> Iterator[str]:
    yield f"CPU       {_shares(sample, '')}"
    if SPEED in sample.layout.position:
        yield f"Speed     {_speeds(sample)}"
    outside, lab = sample.get("cpu_outside_lab_percent"), sample.get("cpu_lab_percent")
    yield f"          this program {_percent(lab)} | everything else {_percent(outside)}"
    cpus = list(sample.instances("cpu_user_percent"))
    for cpu in cpus[:_MOST_CPUS] if len(cpus) > 1 else ():
        yield f"  CPU {cpu:<4}{_shares(sample, f'[{cpu}]')}"


def _speeds(sample: Sample) -> str:
    """``82 % of the best since the start, by CPU 64 100``."""
    each = [_number(speed, ".0f") for speed in sample.instances(SPEED).values()]
    by_cpu = f", by CPU {' '.join(each[:_MOST_CPUS])}" if len(each) > 1 else ""
    return f"{_number(sample.get(SPEED), '.0f')} % of the best since the start{by_cpu}"


def _shares(sample: Sample, instance: str) -> str:
    return " | ".join(_words(sample, figures_of_group("CPU"), instance))


def _words(sample: Sample, figures: Iterable[HostFigure], instance: str = "") -> Iterator[str]:
    """``user 61.0 %`` for each of some figures, as its unit is written."""
    for figure in figures:
        yield f"{figure.short} {_WRITTEN[figure.unit](sample.get(figure.name + instance))}"


def _memory(sample: Sample) -> Iterator[str]:
    for group in (one for one in groups() if one not in _OF_OTHER_FORM):
        figures = [figure for figure in figures_of_group(group) if figure.name in sample.layout.position]
        if figures:
            yield f"{group:<9} " + " | ".join(_words(sample, figures))


def _pressure(sample: Sample) -> Iterator[str]:
    if "pressure_io_some_percent" in sample.layout.position:
        parts = [
            f"{figure.short} {_number(sample.get(figure.name), '.1f')}"
            f" / {_percent(sample.get(figure.name.replace('_some_', '_full_')))}"
            for figure in figures_of_group("Stalled")
        ]
        yield "Stalled   " + " | ".join(parts) + " (some / all)"


def _disks(sample: Sample) -> Iterator[str]:
    disks = sample.instances("disk_reads_per_second")
    if not disks:
        return
    columns = figures_of_group("Disk")
    units = ("" if figure.unit == "1/s" else _IN_COLUMNS.get(figure.unit, figure.unit) for figure in columns)
    yield f"{'Disk':<8}" + "".join(f"{figure.short:>9}" for figure in columns)
    yield " " * 8 + "".join(f"{unit:>9}" for unit in units)
    for disk in disks:
        values = ((sample.get(f"{figure.name}[{disk}]"), figure.unit) for figure in columns)
        scaled = (value / 1e6 if unit == "B/s" else value for value, unit in values)
        yield f"{disk:<8}" + "".join(f"{_number(value, '.2f'):>9}" for value in scaled)


def domain_lines(states: Sequence[DomainState], of_labs: float, host: Sequence[str]) -> list[str]:
    """All domains in the order of `states`; nothing where there is none, lab's guests counted in one line.

    Names of domains, disks and files are others' texts: none of them ends its line.
    """
    lines = [f"At limit  {'; '.join(host)}"] if host and states else []
    if states:
        lines += [_HEAD, *(line for state in states for line in _domain(state))]
    if of_labs >= 1:
        lines.append(f"Domains   {of_labs:.0f} more of a lab, which are not shown here")
    return [visible_line(line) for line in lines]


def _domain(state: DomainState) -> Iterator[str]:
    get = state.figures.__getitem__
    network = get("domain_network_receive_bytes_per_second") + get("domain_network_transmit_bytes_per_second")
    take = state.take.words if state.take is not None else _NOTHING
    yield (
        f"{_cell(state.domain.name, 18)}{_number(get('domain_cpu_percent'), '.1f'):>7}"
        f"{_number(get('domain_vcpu_delay_percent'), '.1f'):>8}"
        f"{_bytes(get('domain_memory_resident_bytes')):>10}{_bytes(get('domain_ksm_merged_bytes')):>10}"
        f"{_bytes(get('domain_memory_used_bytes')):>10}{_bytes(get('domain_memory_cached_bytes')):>10}"
        f"{_number(network / 1e6, '.2f'):>9}  {take}"
    )
    if state.limits:
        yield f"  at limit: {'; '.join(limit.words for limit in state.limits)}"
    disks = state.domain.disks
    if disks:
        yield _DISK_HEAD
    for disk in disks:
        yield _disk(disk, state.disks[disk.target], state.figures if len(disks) == 1 else {})


def _disk(disk: DomainDisk, figures: Mapping[str, float], of_process: Mapping[str, float]) -> str:
    moved = _sum(figures, "domain_disk") if _known(figures) else _sum(of_process, "domain_host")
    requests = _sum(figures, "domain_disk", "s_per_second") if _known(figures) else float("nan")
    return (
        f"  {_cell(disk.target, 16)}{_cell(disk.cache_words, 24)}{_cell(disk.format, 8)}"
        f"{_number(moved / 1e6, '.2f'):>8}{_number(requests, '.1f'):>8}"
        f"{_number(figures['domain_disk_await_ms'], '.1f'):>9}{_number(figures['domain_disk_queue_depth'], '.2f'):>7}"
        f"  {disk.file}{f' on {disk.holder}' if disk.holder else ''}"
    )


def _cell(text: str, width: int) -> str:
    """A text from outside in a column, with a space behind it."""
    return f"{exactly(visible_line(text), width - 1)} "


def _known(figures: Mapping[str, float]) -> bool:
    return figures["domain_disk_await_ms"] == figures["domain_disk_await_ms"]


def _sum(figures: Mapping[str, float], metric: str, rest: str = "_bytes_per_second") -> float:
    nan = float("nan")
    return figures.get(f"{metric}_read{rest}", nan) + figures.get(f"{metric}_write{rest}", nan)


def _percent(value: float) -> str:
    return f"{_number(value, '.1f')} %"


def _bytes(value: float) -> str:
    return format_bytes(value) if math.isfinite(value) else _NOTHING


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else _NOTHING


def _with_unit(unit: str, value: float) -> str:
    return f"{_number(value, '.1f')} {unit}"


_WRITTEN: dict[str, Callable[[float], str]] = {
    "%": _percent,
    "B": _bytes,
    "B/s": lambda value: f"{_bytes(value)}/s",
    "1": lambda value: f"{_number(value, '.0f')} pages",
    **{unit: partial(_with_unit, unit) for unit in ("1/s", "ms", "s", "W")},
}
_IN_COLUMNS = {"B/s": "MB/s"}
