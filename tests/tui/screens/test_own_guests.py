"""The host's own guests on Live, and one of them in full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab.run.test_host_recorder import recorded
from tests.telemetry.domains.test_hurting import DOMAINS, HOST
from tests.tui.pictures import SIZES, screen_text
from tests.tui.screens.test_screens import StillConsole, replayed
from tests.waiting import until
from vmlab.model.sample import Sample, SampleNames
from vmlab.tui.feed.live_feed import HostSampled
from vmlab.tui.screens.domain_screen import DomainScreen
from vmlab.tui.widgets.charts.chart_board import ChartBoard
from vmlab.tui.widgets.charts.raster import means_of

BUSY: dict[str, float] = {
    "disk_util_percent[sda]": 98.0,
    "domain_cpu_percent[db]": 8.0,
    "domain_cpu_percent[web]": 60.0,
}
BUSY |= {f"domain_host_{way}_bytes_per_second[db]": 4e6 for way in ("read", "write")}
BUSY |= {"domain_disk_await_ms[db]": 41.0, "domain_disk_queue_depth[db/vda]": 3.2, "domain_disk_await_ms[db/vda]": 41.0}

pytestmark = [
    pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}"),
    pytest.mark.usefixtures("state"),
]


def sampled(mono: float = 1.0) -> HostSampled:
    values = HOST | BUSY
    sample = Sample(mono, mono, 1.0, 0.0, SampleNames.of(tuple(values)), tuple(values.values()))
    return HostSampled(sample, DOMAINS)


async def shown(app: StillConsole, *words: str) -> None:
    await until(lambda: all(word in screen_text(app) for word in words), f"{words} are shown")


async def test_live_lists_them_and_enter_shows_one_in_full(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await until(lambda: getattr(app.screen, "state", None) is not None, "the screen is ready")
        app.screen.post_message(sampled())
        await shown(app, "db ", "web ", "none", "sda 78 %")
        rows = [line.split()[0] for line in screen_text(app).splitlines() if line.startswith(("db ", "web "))]
        assert rows == ["db", "web"]
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, DomainScreen), "the guest in full")
        await shown(app, "db  2 vCPUs", "at its limit: disk sda 98 % busy, 78 % by it", "vda has 3.2 requests waiting")
        await pilot.press("right")
        await shown(app, "web  1 vCPU", "QEMU without libvirt")
        await pilot.press("escape")
        await shown(app, "no run is going on")


async def test_the_list_can_be_copied_and_goes_with_the_last_guest(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size):
        screen: Any = app.screen
        await until(lambda: getattr(screen, "state", None) is not None, "the screen is ready")
        screen.post_message(sampled())
        await shown(app, "sda 78 %")
        assert "none" in screen.table_text()
        screen.post_message(HostSampled(sampled(2.0).sample, ()))
        await shown(app, "How many guests does this host")


async def test_z_draws_all_that_is_kept(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await until(lambda: getattr(app.screen, "state", None) is not None, "the screen is ready")
        for mono in range(1, 2001):
            app.screen.history.take(sampled(float(mono)).sample)  # type: ignore[attr-defined]
        app.screen.post_message(sampled(2001.0))
        charts = app.screen.query_one(ChartBoard)
        await until(lambda: charts.shown.history.version > 0 and charts.span_seconds < 300, "the newest ticks")
        await pilot.press("z")
        await until(lambda: 2000 <= charts.span_seconds < 2400, "all that is kept")
        await pilot.press("z")
        await until(lambda: charts.span_seconds < 300, "the newest ticks again")


async def test_a_recording_of_the_host_is_played_with_its_guests(size: tuple[int, int], tmp_path: Path) -> None:
    recorded(tmp_path / "run.sqlite")
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await replayed(app, tmp_path / "run.sqlite")
        await pilot.press("end")
        await shown(app, "at its end", "domain ", "db ", "none")
        await pilot.press("enter")
        await shown(app, "db  2 vCPUs, 1 GiB, kvm, by libvirt, process 71", "none O_DIRECT", "/db on sda")


def test_groups_of_samples_stay_the_same_as_time_goes_on(size: tuple[int, int]) -> None:
    assert means_of([1.0, 3.0, 5.0, 7.0, float("nan")], 2, 5) == [2.0, 6.0, pytest.approx(float("nan"), nan_ok=True)]
    assert means_of([3.0, 5.0, 7.0], 2, 4) == [3.0, 6.0]
    assert means_of([1.0], 1, 9) == [1.0]
