"""Settings of real guests' disks: each is read back from the running QEMU, beside a cell that has none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Home

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]

SCENARIO = """
name: levers
guests: {vm: {vcpus: 2, memory: 512 MiB, data: 1 GiB, cache: none}}
workloads: {blocks: {kind: fio, on: vm, rw: randwrite, block: 4 KiB, size: 16 MiB, time: 2 s, depth: 4}}
axes:
  setup:
    points:
      usual: {}
      blk:
        guests.vm.io: native
        guests.vm.iothread: true
        guests.vm.data_io: io_uring
        guests.vm.data_iothread: shared
        guests.vm.data_packed: true
        guests.vm.nic_queues: 2
        guests.vm.mtu: 9000
        guests.vm.data_detect_zeroes: "on"
        guests.vm.data_discard: ignore
        guests.vm.data_limit_iops: 5000
        guests.vm.data_limit_bandwidth: 50 MB/s
        guests.vm.data_limit_iops_burst: 6000
        guests.vm.data_limit_burst_length: 2 s
        guests.vm.allocation: full
      scsi:
        guests.vm.data_bus: scsi
        guests.vm.data_queues: 2
        guests.vm.data_iothread: true
        guests.vm.data_format: qcow2
        guests.vm.data_cluster: 128 KiB
        guests.vm.data_extended_l2: true
        guests.vm.data_preallocation: metadata
        guests.vm.data_table_cache: 1 MiB
        guests.vm.data_discard: unmap
limits: {clock_drift_percent: 100, start_skew: 5 s}
allow: {noise: true}
"""


def _found(cell: dict[str, Any]) -> dict[str, str]:
    assert all(one["agrees"] for one in cell["lever_proof"])
    # What a limit lets pass is seen after what is set.
    return {one["lever"]: one["found"] for one in reversed(cell["lever_proof"])}


def test_each_setting_is_read_back_from_the_running_guest(home: Home, tmp_path: Path) -> None:
    scenario = tmp_path / "levers.yaml"
    scenario.write_text(SCENARIO)
    done = home.vmlab("run", str(scenario))
    assert done.returncode == 0, done.stderr
    cells = {cell["axes"]["setup"]: cell for cell in home.show()["cells"]}
    usual, blk, scsi = (_found(cells[name]) for name in ("usual", "blk", "scsi"))
    assert (usual["io"], usual["iothread"], usual["data_bus"], usual["data_format"]) == (
        *("threads", "none"),
        *("virtio", "raw"),
    )
    assert (blk["io"], blk["data_io"], blk["iothread"], blk["data_iothread"]) == (
        *("native", "io_uring"),
        *("iothread1", "iothread2"),
    )
    assert (blk["data_detect_zeroes"], blk["data_limit_iops"], blk["data_limit_bandwidth"]) == (
        *("on", "5000/s"),
        "50000000/s",
    )
    assert (blk["data_limit_iops_burst"], blk["data_limit_burst_length"]) == ("6000/s", "2 s")
    # What no point sets but for the data disk alone is proved where it is not set, too.
    assert [usual[f"data_{key}"] for key in ("limit_iops", "limit_bandwidth", "limit_iops_burst")] == ["none"] * 3
    assert (usual["data_io"], usual["data_detect_zeroes"]) == ("threads", "off")
    assert (usual["allocation"], blk["allocation"]) == ("thin", "full")
    kept = [one for one in cells["blk"]["lever_proof"] if one["by"].startswith("query-blockstats")]
    assert [one["lever"] for one in kept] == ["data_limit_iops", "data_limit_bandwidth"]
    assert (scsi["data_bus"], scsi["data_iothread"], scsi["data_format"]) == ("scsi", "iothread1", "qcow2")
    assert (scsi["data_cluster"], scsi["data_extended_l2"], scsi["data_preallocation"]) == (
        *("128 KiB", "true"),
        "metadata",
    )
    assert (usual["nic_queues"], blk["nic_queues"], blk["mtu"]) == ("1", "2", "9000")
    assert (usual["data_packed"], blk["data_packed"]) == ("false", "true")
    assert (blk["data_discard"], scsi["data_discard"]) == ("ignore", "unmap")
    assert "allocation" not in scsi
    (seen,) = (one["data_disk"] for one in cells["scsi"]["seen_in_guests"] if one["data_disk"])
    assert seen["device"].startswith("/dev/sd") and seen["queues"] == 2
    assert home.leftovers() == []
