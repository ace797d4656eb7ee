"""QEMU's histograms, as its monitor speaks of them; the words are those of QEMU 7.2."""

from __future__ import annotations

from typing import Any

import pytest

from vmlab.hypervisor.disks.running_disks import begin_latency, read_latency
from vmlab.model.errors import HypervisorError
from vmlab.telemetry.latency_bins import BINS

ROOT = "/machine/peripheral/virtio-disk0/virtio-backend"
DATA = "/machine/peripheral/virtio-disk1/virtio-backend"
_KEYS = {"read": "rd_latency_histogram", "write": "wr_latency_histogram", "flush": "flush_latency_histogram"}


class Monitor:
    """A QEMU with some disks, which counts what `count` says."""

    def __init__(self, *paths: str) -> None:
        self.stats: dict[str, dict[str, Any]] = {path: {"rd_bytes": 0} for path in paths}

    def __call__(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        if command == "block-latency-histogram-set":
            assert arguments is not None and arguments.keys() == {"id", "boundaries"}
            empty = [0] * (len(arguments["boundaries"]) + 1)
            for key in _KEYS.values():
                histogram = {"boundaries": list(arguments["boundaries"]), "bins": list(empty)}
                self.stats[arguments["id"]][key] = histogram
            return {}
        assert (command, arguments) == ("query-blockstats", None)
        drives: list[dict[str, Any]] = [
            {"device": "", "stats": stats, "qdev": path} for path, stats in self.stats.items()
        ]
        return [*drives, {"device": "cd", "stats": {}}]

    def count(self, path: str, operation: str, place: int, requests: int) -> None:
        self.stats[path][_KEYS[operation]]["bins"][place] += requests


def test_each_disk_is_counted_by_the_name_that_it_has_in_a_scenario() -> None:
    monitor = Monitor(ROOT, DATA)
    begin_latency(monitor)
    monitor.count(ROOT, "read", 3, 5)
    monitor.count(DATA, "flush", 71, 1)
    found = read_latency(monitor)
    assert {disk: {name: sum(counts) for name, counts in one.items()} for disk, one in found.items()} == {
        "root": {"read": 5, "write": 0, "flush": 0},
        "data": {"read": 0, "write": 0, "flush": 1},
    }
    assert found["root"]["read"][3] == 5 and found["data"]["flush"][71] == 1


def test_beginning_again_begins_at_nothing() -> None:
    monitor = Monitor(ROOT)
    begin_latency(monitor)
    monitor.count(ROOT, "write", 3, 5)
    begin_latency(monitor)
    assert sum(read_latency(monitor)["root"]["write"]) == 0


def test_a_disk_that_counts_nothing_is_an_error() -> None:
    monitor = Monitor(ROOT)
    with pytest.raises(HypervisorError, match="QEMU does not count how long a read of the disk root takes"):
        read_latency(monitor)


def test_other_bins_are_an_error() -> None:
    monitor = Monitor(ROOT)
    monitor("block-latency-histogram-set", {"id": ROOT, "boundaries": BINS.boundaries[1:]})
    with pytest.raises(HypervisorError, match="does not count"):
        read_latency(monitor)
