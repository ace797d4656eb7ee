"""What hosts of a fleet are said to do, by their events and figures."""

from __future__ import annotations

from vmlab.model.cell_event import (
    CacheSwitched,
    CellEnded,
    CellStarted,
    PhaseStarted,
)
from vmlab.model.event import (
    CellPlaced,
    CellWithdrawn,
    Event,
    HostJoined,
    HostLeftOut,
    RunEnded,
)
from vmlab.model.sample import Sample, SampleNames
from vmlab.tui.state.hosts_of_run import FleetHosts, HostView

_LAYOUT = SampleNames.of(("cpu_idle_percent", "cpu_iowait_percent", "disk_util_percent"))


def _hosts(*events: Event) -> FleetHosts:
    hosts = FleetHosts()
    for event in events:
        hosts.apply(event)
    return hosts


def _joined(name: str) -> HostJoined:
    return HostJoined(name=name, run="r", accelerator="tcg", facts={}, offset_ms=0.0, uncertainty_ms=0.0, mono=1.0)


def _of(hosts: FleetHosts, name: str, now: float = 10.0) -> HostView:
    return next(view for view in hosts.views(now) if view.name == name)


def _working(name: str = "hv1", cell: int = 1) -> list[Event]:
    return [
        _joined(name),
        CellPlaced(cell=cell, name=name, mono=2.0),
        CellStarted(cell=cell, axes={"host": name, "cache": "none"}, repeat=1, guests=1, mono=3.0),
        PhaseStarted(cell=cell, phase="execute", mono=4.0),
    ]


def _sample(mono: float, idle: float = 20.0, disk: float = 95.0) -> Sample:
    return Sample(0.0, mono, 1.0, 0.0, _LAYOUT, (idle, 5.0, disk))


def test_a_host_at_work() -> None:
    hosts = _hosts(*_working())
    hosts.take("hv1", [_sample(float(mono)) for mono in range(5, 11)])
    view = _of(hosts, "hv1")
    assert (view.state, view.tone, view.since) == ("execute", "good", 4.0)
    assert (view.cell, view.axes, view.cache, view.done) == (1, {"cache": "none"}, "none", 0)
    assert [(gauge.name, gauge.percent, gauge.at_limit) for gauge in view.gauges] == [
        ("disk", 95.0, True),
        ("cpu", 75.0, False),
    ]


def test_a_cache_mode_that_was_switched() -> None:
    switched = CacheSwitched(
        cell=1,
        origin="o",
        before="none",
        after="writeback",
        pauses_ms={},
        drained_seconds=0.0,
        mono=5.0,
    )
    assert _of(_hosts(*_working(), switched), "hv1").cache == "writeback"


def test_a_host_between_cells() -> None:
    ended = CellEnded(cell=1, outcome="passed", reasons=[], wall_seconds=1.0, start_skew_ms=0.0, mono=6.0)
    view = _of(_hosts(*_working(), ended), "hv1")
    assert (view.state, view.tone, view.cell, view.done) == ("free", "quiet", 0, 1)


def test_a_cell_that_failed_is_said_until_the_next_one_begins() -> None:
    ended = CellEnded(cell=1, outcome="failed", reasons=["no"], wall_seconds=1.0, start_skew_ms=0.0, mono=6.0)
    hosts = _hosts(*_working(), ended)
    assert _of(hosts, "hv1")[1:5] == ("failed", "bad", 6.0, "no")
    hosts.apply(CellPlaced(cell=2, name="hv1", mono=7.0))
    assert _of(hosts, "hv1").reason == ""


def test_a_cell_that_broke_off_is_its_hosts_fault_until_the_host_is_back() -> None:
    hosts = _hosts(*_working(), CellWithdrawn(cell=1, name="hv1", reason="the line was cut", mono=6.0))
    assert _of(hosts, "hv1")[1:5] == ("broke off", "bad", 6.0, "the line was cut")
    hosts.apply(_joined("hv1"))
    assert _of(hosts, "hv1").tone == "quiet"


def test_a_cell_of_a_block_that_is_measured_elsewhere_is_no_fault() -> None:
    ended = CellEnded(cell=1, outcome="passed", reasons=[], wall_seconds=1.0, start_skew_ms=0.0, mono=6.0)
    hosts = _hosts(*_working(), ended, CellWithdrawn(cell=1, name="hv1", reason="as a whole on hv2", mono=7.0))
    assert (_of(hosts, "hv1").tone, _of(hosts, "hv1").done) == ("quiet", 0)


def test_a_host_that_is_left_out_stays_so_to_the_end() -> None:
    hosts = _hosts(
        *_working(),
        *_working("hv2", 2),
        HostLeftOut(name="hv2", reason="it does not answer", mono=6.0),
        RunEnded(outcome="aborted", exit_code=1, reason="", mono=9.0),
    )
    assert _of(hosts, "hv2")[1:5] == ("left out", "bad", 6.0, "it does not answer")
    assert _of(hosts, "hv1")[1:3] == ("over", "quiet")


def test_a_host_whose_figures_end_is_silent() -> None:
    hosts = _hosts(*_working())
    hosts.take("hv1", [_sample(5.0)])
    assert _of(hosts, "hv1", now=12.0).state == "execute"
    view = _of(hosts, "hv1", now=20.0)
    assert (view.state, view.tone, view.since, view.gauges) == ("silent", "bad", 5.0, ())


def test_hosts_are_in_the_order_of_their_numbers() -> None:
    hosts = FleetHosts()
    for name in ("hv10", "hv2", "hv1"):
        hosts.add(name)
    assert hosts.names == ("hv1", "hv2", "hv10")
    assert {view.state for view in hosts.views(1.0)} == {"joins"}
