"""The charts of the Live screen; the table of host figures defines the content of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from vmlab.model.ordered import EMULATED_DISK, ORDERED_HOST, shown_word
from vmlab.telemetry.cpu_speed import LABEL
from vmlab.telemetry.host.host_figures import HostChart, HostFigure, Terms, charts, figures_of_chart
from vmlab.telemetry.sample_summary import CPU_BUSY as CPU_LIMIT
from vmlab.telemetry.sample_summary import DISK_BUSY as DISK_LIMIT

if TYPE_CHECKING:
    from vmlab.model.domain import Domain


class Series(NamedTuple):
    """One area or line. `shown` is the value that stands in figures beside its `label`; `tone` names a colour.

    An `idle` one lies over the others as an outline. `drawn` may differ from `shown` where areas lie on each other:
    dirty pages are part of the cache; what is only shown as a number draws nothing. `unit` is the chart's unless it
    says otherwise; `minor` figures give way where room is short.
    """

    label: str
    tone: str
    shown: Terms
    drawn: Terms
    unit: str | None = None
    minor: bool = False
    idle: bool = False


class Chart(NamedTuple):
    """Series that share one scale. `unit` is ``%``, ``ms``, ``B`` or ``B/s``; `stacked` and `top` as of `HostChart`."""

    title: str
    unit: str
    series: tuple[Series, ...]
    stacked: bool
    top: float | str | None = None

    @property
    def drawn(self) -> list[Series]:
        """Those that are more than a number, from the lowest to what is idle."""
        return sorted((series for series in self.series if series.drawn), key=lambda series: series.idle)


def _series(figure: HostFigure, unit: str) -> Series:
    shown = tuple((name, 1) for name in (figure.name, *figure.added))
    own = {"1": "pages"}.get(figure.unit, figure.unit)
    return Series(
        label=figure.short,
        tone=figure.tone,
        shown=shown,
        drawn=(figure.area or shown) if figure.drawn else (),
        unit=own if own != unit else None,
        minor=figure.minor,
        idle=figure.idle,
    )


def _chart(host: HostChart) -> Chart:
    """With the unit of its first figure."""
    figures = figures_of_chart(host)
    unit = figures[0].unit
    series = tuple(_series(figure, unit) for figure in figures)
    return Chart(host.title or host.name, unit, series, host.stacked, host.top)


_CHARTS = {host: _chart(host) for host in charts()}
_BY_NAME = {host.name: chart for host, chart in _CHARTS.items()}
CPU, CPU_SPEED, MEMORY, ORDERED_MEMORY = (_BY_NAME[name] for name in ("CPU", LABEL, "Memory", "Limited memory"))
DISK_BUSY, DISK_WAIT, DISK_RATE = (_BY_NAME[f"Disk {name}"] for name in ("busy", "wait", "rate"))
KSM, PRESSURE, NETWORK = _BY_NAME["KSM"], _BY_NAME["Pressure"], _BY_NAME["Lab network"]
IN_PANELS = tuple(_CHARTS[host] for host in sorted(_CHARTS, key=lambda one: one.panel or 0) if host.panel is not None)
"""Those that do not stand in the place of another, in their order."""


class Resource(NamedTuple):
    """One line where there is no room for charts: `terms` over time, on the scale of `chart`.

    `facts` are what else is said of it, a chart's series each. From `limit` percent on it is at its limit. `note` says
    that it is not the host's own. Without any value `above` what is given, it has no line.
    """

    name: str
    chart: Chart
    terms: Terms
    facts: tuple[tuple[Chart, tuple[Series, ...]], ...] = ()
    limit: float | None = None
    note: str = ""
    above: float | None = None


def _whole(chart: Chart, label: str = "", place: int = 0) -> tuple[Chart, tuple[Series, ...]]:
    """The series of a chart as facts; with a `label` the one at `place` alone, under that."""
    return chart, (chart.series[place]._replace(label=label),) if label else chart.series


def resources(ordered: Sequence[str]) -> tuple[Resource, ...]:
    """Those of a host with parts that were not its own, whose words are `ordered`, in the order of their lines."""
    work = tuple(term for series in CPU.drawn if not series.idle for term in series.drawn)
    memory = chart_of(MEMORY, ordered)
    notes = [shown_word(word) if word in ordered else "" for word in (EMULATED_DISK, ORDERED_HOST)]
    stalls = [_whole(PRESSURE, "pressure", place) for place in range(3)]
    disk = (_whole(DISK_WAIT), _whole(DISK_RATE), stalls[1])
    used, *others = memory.series
    return (
        Resource("CPU", CPU, work, (_whole(CPU), stalls[0], _whole(CPU_SPEED, "speed")), CPU_LIMIT),
        Resource("Disk", DISK_BUSY, DISK_BUSY.series[0].drawn, disk, DISK_LIMIT, notes[0]),
        Resource("Memory", memory, used.shown, ((memory, tuple(others)), stalls[2]), note=notes[1]),
        Resource("KSM", KSM, KSM.series[0].drawn, above=0.0),
        Resource("Network", NETWORK, NETWORK.series[0].drawn, above=-1.0),
    )


def chart_of(chart: Chart, ordered: Sequence[str]) -> Chart:
    """What stands in the place of `chart` on a host with parts that were not its own, whose words are `ordered`."""
    return ORDERED_MEMORY if chart is MEMORY and ORDERED_HOST in ordered else chart


def title_of(chart: Chart, ordered: Sequence[str]) -> str:
    """The title of a chart on a host with parts that were not its own, whose words are `ordered`."""
    return EMULATED_DISK.capitalize() if is_of_disk(chart) and EMULATED_DISK in ordered else chart.title


def is_of_disk(chart: Chart) -> bool:
    """Whether `chart` has figures of the disk that the guests' files are on."""
    return chart.title == DISK_BUSY.title


def _line(label: str, tone: str, metric: str, name: str) -> Series:
    terms = ((f"{metric}[{name}]", 1),)
    return Series(label, tone, terms, terms)


def _lines(title: str, unit: str, name: str, *series: tuple[str, str, str], top: float | None = None) -> Chart:
    """A chart of one guest, with label, tone and metric of each line."""
    return Chart(title, unit, tuple(_line(*one, name) for one in series), False, top)


def domain_charts(domain: Domain, *, has_requests: bool) -> tuple[Chart, ...]:
    """CPU, memory, disk and network of one of the host's own guests, from the same samples as those of the host.

    Without requests, as of a QEMU alone, its disk is what its process moved.
    """
    name = domain.name
    disk = "disk" if has_requests else "host"
    read, written = (f"domain_{disk}_{way}_bytes_per_second" for way in ("read", "write"))
    received, sent = (f"domain_network_{way}_bytes_per_second" for way in ("receive", "transmit"))
    resident, merged = ("resident", "one", "domain_memory_resident_bytes"), ("KSM", "two", "domain_ksm_merged_bytes")
    used, cached = ("used", "three", "domain_memory_used_bytes"), ("cached", "five", "domain_memory_cached_bytes")
    of_requests = (
        _lines("Disk wait", "ms", name, ("await", "three", "domain_disk_await_ms")),
        _lines("Disk queue", "waiting", name, ("requests", "two", "domain_disk_queue_depth")),
    )
    work = ("used", "one", "domain_cpu_percent"), ("steal", "four", "domain_vcpu_delay_percent")
    return (
        _lines("CPU", "%", name, *work, top=100.0 * domain.vcpus or None),
        _lines("Memory", "B", name, resident, merged, used, cached),
        _lines("Disk rate", "B/s", name, ("read", "one", read), ("write", "three", written)),
        *(of_requests if has_requests else ()),
        _lines("Network", "B/s", name, ("receive", "one", received), ("transmit", "three", sent)),
    )


def guest_charts(key: str, vcpus: int) -> tuple[Chart, ...]:
    """The same of a guest of the lab, by its name in samples; `vcpus` is 0 where that is not known."""
    work = ("used", "one", "guest_cpu_percent"), ("delay", "four", "guest_vcpu_delay_percent")
    held = ("resident", "one", "guest_memory_resident_bytes"), ("balloon", "two", "guest_memory_balloon_bytes")

    def ways(title: str, unit: str, what: str, *names: str) -> Chart:
        tones = ("one", "three")
        lines = [(name, tone, f"guest_{what.format(name)}") for name, tone in zip(names, tones, strict=True)]
        return _lines(title, unit, key, *lines)

    return (
        _lines("CPU", "%", key, *work, top=100.0 * vcpus or None),
        _lines("Memory", "B", key, *held),
        ways("Disk rate", "B/s", "disk_{}_bytes_per_second", "read", "write"),
        ways("Disk wait", "ms", "disk_{}_await_ms", "read", "write"),
        ways("Disk requests", "1/s", "disk_{}s_per_second", "read", "write"),
        ways("Network", "B/s", "network_{}_bytes_per_second", "receive", "transmit"),
    )
