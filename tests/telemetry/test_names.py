"""The page of names tells all names and no others."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from tests.telemetry.domains.own_guests import OwnGuests
from tests.telemetry.libvirt_stats import answer, domain
from tests.telemetry.recorded import RecordedHost
from tests.telemetry.test_ordered_host import ordered_group
from vmlab.model.names import BRIDGE
from vmlab.model.sample import TRACED_LENGTH, Sample, split_name
from vmlab.telemetry.domains.traced_disks import OF_TRACE
from vmlab.telemetry.guest_readings import DATA_BLOCK
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder

PAGE = Path(__file__).parents[2] / "docs/reference/telemetry.md"
ENDINGS = {"_percent", "_bytes", "_bytes_per_second", "_per_second", "_ms", "_seconds", "_watts"}


def recorded_names(host: RecordedHost) -> set[str]:
    host.sys("class/powercap/intel-rapl:0/name", "package-0\n")
    host.sys("class/powercap/intel-rapl:0/energy_uj", "1\n")
    host.sys("class/powercap/intel-rapl:0/max_energy_range_uj", "1000\n")
    host.proc("self/mountinfo", "")
    host.proc("spl/kstat/zfs/arcstats", "13 1\nname type data\nc_min 4 0\nsize 4 0\n")
    host.sys("kernel/mm/ksm/ksm_zero_pages", "0\n")
    seen: list[Sample] = []
    ordered = ordered_group(host.roots.proc.parent / "ordered")
    guests = {"web": {**domain(), DATA_BLOCK: 0}}
    own = OwnGuests(host)
    own.qemu(71, "-name db")
    recorder = Recorder(
        0.02,
        seen.append,
        Watched(host.roots, network=BRIDGE, apart=os.getpid(), ordered=ordered),
        lambda deliver, whole: deliver(answer(guests)),
        speed=0.1,
        domains=own.group,
    )
    recorder.start()
    while not seen or not {"guest_cpu_percent[web]", "cpu_speed_percent"} <= set(seen[-1].layout.names):
        time.sleep(0.01)
    recorder.stop()
    return {split_name(name)[0] for name in seen[-1].layout.names}


def test_the_page_lists_what_is_recorded(host: RecordedHost) -> None:
    listed = set()
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            listed |= set(re.findall(r"`([a-z_]+)(?:\[[a-z]+\])?`", line.split("|")[1]))
    assert listed - ENDINGS == recorded_names(host) | {TRACED_LENGTH, *OF_TRACE}
