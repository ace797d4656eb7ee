"""The host's own guests, the one first that hurts most, with their disks' cache modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vmlab.system.text_width import exactly, width_of
from vmlab.tui.widgets.charts.axis_scale import NO_FIGURE, short, whole
from vmlab.tui.widgets.painted import Piece
from vmlab.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from vmlab.telemetry.domains.hurting import DomainState

_TITLE = "Domains"


class _Field(NamedTuple):
    """A column: its head, its width, the width of the list from which on it is there, and what it says of a guest."""

    head: str
    width: int
    least: int
    text: Callable[[DomainState], str]


def _sum(state: DomainState, *metrics: str) -> float:
    return sum(state.figures[f"domain_{metric}"] for metric in metrics)


def _moved_bytes(state: DomainState) -> float:
    """Bytes a second to and from its disks: the guest's, or those of its process where nothing tells the guest's."""
    guest, process = (
        _sum(state, f"{whose}_read_bytes_per_second", f"{whose}_write_bytes_per_second") for whose in ("disk", "host")
    )
    return guest if guest == guest else process


def _memory(value: float) -> str:
    if value != value:
        return NO_FIGURE
    return f"{short(value / 2**30)}G" if value >= 2**30 else f"{value / 2**20:.0f}M"


_REQUESTS = ("disk_reads_per_second", "disk_writes_per_second")
_NETWORK = ("network_receive_bytes_per_second", "network_transmit_bytes_per_second")
_FIELDS = (
    _Field("CPU%", 5, 0, lambda state: whole(_sum(state, "cpu_percent"))),
    _Field("steal%", 7, 0, lambda state: whole(_sum(state, "vcpu_delay_percent"))),
    _Field("RSS", 7, 100, lambda state: _memory(_sum(state, "memory_resident_bytes"))),
    _Field("KSM", 7, 130, lambda state: _memory(_sum(state, "ksm_merged_bytes"))),
    _Field("MB/s", 7, 0, lambda state: short(_moved_bytes(state) / 1e6)),
    _Field("req/s", 7, 90, lambda state: short(_sum(state, *_REQUESTS))),
    _Field("await ms", 9, 0, lambda state: short(_sum(state, "disk_await_ms"))),
    _Field("queue", 6, 130, lambda state: short(_sum(state, "disk_queue_depth"))),
    _Field("net MB/s", 9, 140, lambda state: short(_sum(state, *_NETWORK) / 1e6)),
)
_NARROW, _WIDE = (12, 9), (16, 11)
"""Columns of the cache modes and of what is taken, on less than 100 columns and from there on."""


class DomainList(RowList):
    """Name, CPU, steal, memory, disk, each disk's cache mode, what it takes most, what is at its limit."""

    _states: Sequence[DomainState] = ()
    _host: Sequence[str] = ()

    def on_resize(self) -> None:
        """Another width has other columns."""
        if self._states:
            self.show_states(self._states, self._host)
        super().on_resize()

    def show_states(self, states: Sequence[DomainState], host: Sequence[str]) -> None:
        """Draw them in their order, with what of the `host` is at its limit in the edge above."""
        self._states, self._host = states, host
        self.retitle(f"{_TITLE}  host: {'; '.join(host)}" if host else _TITLE)
        width = max(60, self.size.width or 78)
        fields = [field for field in _FIELDS if width >= field.least]
        name = 12 + max(0, min(8, (width - 78) // 12))
        cache, takes = _NARROW if width < 100 else _WIDE
        rest = width - name - 1 - sum(field.width for field in fields) - cache - takes - 3
        heads = "".join(f"{field.head:>{field.width}}" for field in fields)
        text = f"{'domain':<{name}} {heads} {'cache':<{cache}} {'takes':<{takes}} at its limit"
        heading = [(text[:width], "quiet")]
        rows = ((state.domain.name, self._row(state, fields, (name, cache, takes, rest))) for state in states)
        self.show(heading, rows)

    def _row(self, state: DomainState, fields: Sequence[_Field], widths: tuple[int, int, int, int]) -> list[Piece]:
        name, cache, takes, rest = widths
        take = state.take
        tone = "bad" if take is not None and take.is_short and state.limits else "plain"
        limits = ", ".join(limit.words for limit in state.limits)
        if width_of(limits) > rest:
            limits = ", ".join(limit.short for limit in state.limits)
        numbers = "".join(f"{field.text(state):>{field.width}}" for field in fields)
        return [
            (f"{exactly(state.domain.name, name)} ", "accent"),
            (f"{numbers} ", "plain"),
            (f"{exactly(cache_words(state), cache)} ", "two"),
            (f"{exactly(take.words if take else NO_FIGURE, takes)} ", tone),
            (exactly(limits, rest), "warning" if tone == "plain" else tone),
        ]


def cache_words(state: DomainState) -> str:
    """The cache modes of all disks, each once: ``none, writeback``."""
    return ", ".join(dict.fromkeys(disk.cache_words for disk in state.domain.disks)) or NO_FIGURE
