"""The host's own guests as lines of text: a line each with what is at its limit, and one for each disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from vmlab.model.domain import DomainDisk
from vmlab.model.units import format_bytes
from vmlab.model.visible import visible_line
from vmlab.system.text_width import exactly
from vmlab.telemetry.domains.hurting import DomainState

_NOTHING = "-"
_COLUMNS = (("CPU %", 7), ("steal %", 8), ("RSS", 10), ("KSM", 10), ("used", 10), ("cached", 10), ("net MB/s", 9))
_HEAD = f"{'Domains':<18}{''.join(f'{name:>{width}}' for name, width in _COLUMNS)}  takes most"
_OF_DISK = (("MB/s", 8), ("req/s", 8), ("await ms", 9), ("queue", 7))
_DISK_HEAD = f"{'  disk':<18}{'cache':<24}{'format':<8}{''.join(f'{name:>{width}}' for name, width in _OF_DISK)}  file"


def domain_lines(states: Sequence[DomainState], of_labs: float, host: Sequence[str]) -> list[str]:
    """All domains in the order of `states`; nothing where there is none, lab's guests counted in one line.

    Names of domains, disks and files are others' texts: none of them ends its line.
    """
    return [visible_line(line) for line in _lines(states, of_labs, host)]


def _lines(states: Sequence[DomainState], of_labs: float, host: Sequence[str]) -> list[str]:
    lines = [f"At limit  {'; '.join(host)}"] if host and states else []
    if states:
        lines += [_HEAD, *(line for state in states for line in _domain(state))]
    if of_labs >= 1:
        lines.append(f"Domains   {of_labs:.0f} more of a lab, which are not shown here")
    return lines


def _domain(state: DomainState) -> Iterator[str]:
    get = state.figures.__getitem__
    network = get("domain_network_receive_bytes_per_second") + get("domain_network_transmit_bytes_per_second")
    take = state.take.words if state.take is not None else _NOTHING
    yield (
        f"{_cell(state.domain.name, 18)}{_number(get('domain_cpu_percent')):>7}"
        f"{_number(get('domain_vcpu_delay_percent')):>8}"
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
        f"{_number(moved / 1e6, '.2f'):>8}{_number(requests):>8}"
        f"{_number(figures['domain_disk_await_ms']):>9}{_number(figures['domain_disk_queue_depth'], '.2f'):>7}"
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


def _bytes(value: float) -> str:
    return _written(value, format_bytes)


def _number(value: float, form: str = ".1f") -> str:
    return _written(value, lambda number: format(number, form))


def _written(value: float, write: Callable[[float], str]) -> str:
    return write(value) if value == value else _NOTHING
