"""Settings of the host are changed with their old value written down, and put back; on dummies of /sys."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from shutil import rmtree

import pytest

from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.settings_keeper import SettingsKeeper
from vmlab.model.errors import HypervisorError
from vmlab.model.scenarios.host_settings import HostSettings
from vmlab.system.mounts import Mount
from vmlab.telemetry import setting_files
from vmlab.telemetry.setting_files import in_force, most_requests, unsettable, why_no_swappiness, write_setting
from vmlab.telemetry.source import Roots


class Host:
    """A dummy of /sys with the settings, and a run's folder on a disk of its own."""

    def __init__(self, folder: Path) -> None:
        self.sys = folder / "sys"
        self.proc = folder / "proc"
        self.run = folder / "run"
        (self.run / "disks").mkdir(parents=True)
        for name, value in {
            "kernel/mm/ksm/run": "0",
            "kernel/mm/ksm/pages_to_scan": "100",
            "kernel/mm/ksm/sleep_millisecs": "500",
            "kernel/mm/ksm/pages_sharing": "0",
            "kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            "block/sdz/queue/read_ahead_kb": "4096",
            "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0",
            "kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0",
        }.items():
            self.write(name, value)
        self.write("block/sdz/queue/scheduler", "none [mq-deadline] kyber")
        for name, value in {"nr_requests": "64", "iosched/fifo_batch": "7", "iosched/async_depth": "48"}.items():
            self.write(f"block/sdz/queue/{name}", value)
        for name, value in {"swappiness": "60", "dirty_ratio": "20", "dirty_bytes": "0"}.items():
            self.write(f"../proc/sys/vm/{name}", value)
        self.write("../proc/self/mountinfo", "")
        device = folder.stat().st_dev
        link = self.sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}"
        link.parent.mkdir(parents=True)
        link.symlink_to(self.sys / "block/sdz")
        self.roots = Roots(sys=self.sys, proc=self.proc)
        self.journal = Journal(self.run / "journal.jsonl")
        self.told: list[str] = []
        self.warned: list[str] = []

    def write(self, name: str, value: str) -> None:
        path = self.sys / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")

    def keeper(self) -> SettingsKeeper:
        return SettingsKeeper(self.journal, self.run / "disks", self.told.append, self.warned.append, self.roots)

    def now(self) -> tuple[str, ...]:
        names = ("kernel/mm/ksm/run", "kernel/mm/ksm/pages_to_scan", "kernel/mm/transparent_hugepage/enabled")
        return tuple((self.sys / name).read_text().strip() for name in (*names, "block/sdz/queue/read_ahead_kb"))

    def swept(self) -> list[str]:
        lines: list[str] = []
        sweep(self.journal.path, self.run / "disks", "test", roots=self.roots, tell=lines.append)
        assert self.journal.open_entries() == []
        return lines


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


BEFORE = ("0", "100", "madvise", "4096")
ALL = HostSettings.model_validate({"ksm": "on", "thp": "always", "read_ahead": 2**17})


def before(host: Host) -> tuple[str, ...]:
    """What was there, as the dummies have it once it is written back: without the words that were not chosen."""
    run, pages, thp, ahead = host.now()
    return run, pages, thp.replace("always [madvise] never", "madvise"), ahead


def test_settings_are_changed_and_put_back(host: Host) -> None:
    keeper = host.keeper()
    keeper.apply(ALL)
    assert host.now() == ("1", "1000", "always", "128")
    assert keeper.in_force() == {
        "ksm": "on",
        "thp": "always",
        "read_ahead_bytes": 131072,
        "scheduler": "mq-deadline",
        "nr_requests": 64,
        "swappiness": 60,
        "dirty_ratio": 20,
    }
    assert {entry.what: entry.was for entry in host.journal.open_entries()} == {
        "kernel/mm/ksm/run": "0",
        "kernel/mm/ksm/pages_to_scan": "100",
        "kernel/mm/ksm/sleep_millisecs": "500",
        "kernel/mm/transparent_hugepage/enabled": "madvise",
        "block/sdz/queue/read_ahead_kb": "4096",
    }
    keeper.put_back()
    assert before(host) == BEFORE
    assert host.journal.open_entries() == []
    assert host.warned == []


def test_what_the_next_cell_does_not_ask_for_goes_back_at_once(host: Host) -> None:
    keeper = host.keeper()
    keeper.apply(ALL)
    keeper.apply(HostSettings(thp="never"))
    assert host.now() == ("0", "100", "never", "4096")
    keeper.apply(HostSettings(thp="madvise"))
    assert before(host) == BEFORE
    assert host.journal.open_entries() == []


@pytest.mark.parametrize("cells", [[ALL], [HostSettings(thp="always"), HostSettings(thp="never")]])
def test_a_run_that_was_killed_is_put_back_by_who_sweeps(host: Host, cells: list[HostSettings]) -> None:
    keeper = host.keeper()
    for cell in cells:
        keeper.apply(cell)
    assert host.swept() == []
    assert before(host) == BEFORE


def test_a_run_that_was_killed_between_two_values_is_put_back(host: Host) -> None:
    host.keeper().apply(HostSettings(thp="always"))
    host.journal.add(JournalEntry("setting", "kernel/mm/transparent_hugepage/enabled", "madvise", "never"))
    assert host.swept() == []
    assert before(host) == BEFORE


@pytest.mark.parametrize("killed", [False, True])
def test_what_somebody_else_has_changed_stays_and_is_said_once(host: Host, killed: bool) -> None:
    keeper = host.keeper()
    keeper.apply(ALL)
    host.write("block/sdz/queue/read_ahead_kb", "64")
    if not killed:
        keeper.put_back()
        keeper.put_back()
    lines = host.swept() if killed else host.warned
    assert before(host) == ("0", "100", "madvise", "64")
    (line,) = lines
    assert line.endswith("read_ahead_kb is 64 by somebody else's hand and stays so; it was 4096 before the run")
    assert host.swept() == []


def test_pages_that_stay_merged_are_told(host: Host) -> None:
    keeper = host.keeper()
    keeper.apply(HostSettings(ksm="on"))
    host.write("kernel/mm/ksm/pages_sharing", "37")
    keeper.put_back()
    assert host.now()[0] == "0"
    (line,) = host.warned
    assert "counts 37 pages as merged" in line


def test_ksm_that_was_on_before_stays_on(host: Host) -> None:
    host.write("kernel/mm/ksm/run", "1")
    keeper = host.keeper()
    keeper.apply(HostSettings(ksm="off"))
    assert host.now()[0] == "0"
    keeper.put_back()
    assert host.now()[0] == "1"


def test_the_advisor_is_switched_off_where_there_is_one(host: Host) -> None:
    host.write("kernel/mm/ksm/advisor_mode", "none [scan-time]")
    keeper = host.keeper()
    keeper.apply(HostSettings(ksm="on"))
    assert (host.sys / "kernel/mm/ksm/advisor_mode").read_text() == "none"
    keeper.put_back()
    assert (host.sys / "kernel/mm/ksm/advisor_mode").read_text() == "scan-time"


def test_a_file_that_went_is_told_and_holds_nothing_up(host: Host) -> None:
    host.keeper().apply(ALL)
    (host.sys / "block/sdz/queue/read_ahead_kb").unlink()
    (line,) = host.swept()
    assert line.endswith("read_ahead_kb is gone: it could not be put back to 4096")
    assert (host.sys / "kernel/mm/ksm/run").read_text() == "0"


def test_a_journal_that_names_another_file_writes_nothing(host: Host) -> None:
    for name in (
        *("kernel/mm/ksm/../../../x", "kernel/mm/hugepages/hugepages-1kB/nr_hugepages/../../../../../x"),
        *("block/../x/queue/read_ahead_kb", "x", "/etc/passwd", "vm/../../../x", "vm/panic_on_oom"),
    ):
        host.write("x", "mine")
        host.journal.add(JournalEntry("setting", name, "was", "mine"))
        assert host.swept() == []
        assert (host.sys / "x").read_text() == "mine\n"
        with pytest.raises(ValueError, match="no setting of the host"):
            write_setting(host.roots, name, "was")


def test_a_value_that_the_host_does_not_take_is_an_error_and_goes_back(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rounds(roots: Roots, name: str, value: str) -> None:
        write_setting(roots, name, "120" if value == "128" else value)

    monkeypatch.setattr("vmlab.hypervisor.settings_keeper.write_setting", rounds)
    with pytest.raises(HypervisorError, match="took 120 instead of 128"):
        host.keeper().apply(ALL)
    assert host.now()[3] == "4096"


def test_a_value_that_the_kernel_refuses_leaves_what_was_set_before_it_to_be_put_back(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(roots: Roots, name: str, value: str) -> None:
        if name.endswith("nr_requests") and value == "9000":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        write_setting(roots, name, value)

    monkeypatch.setattr("vmlab.hypervisor.settings_keeper.write_setting", refuses)
    keeper = host.keeper()
    with pytest.raises(HypervisorError, match=r"queue/nr_requests does not take 9000: Invalid argument$"):
        keeper.apply(HostSettings(thp="never", nr_requests=9000))
    assert [entry.what for entry in host.journal.open_entries()] == ["kernel/mm/transparent_hugepage/enabled"]
    keeper.apply(HostSettings(nr_requests=32))
    with pytest.raises(HypervisorError, match="does not take 9000"):
        keeper.apply(HostSettings(nr_requests=9000))
    keeper.put_back()
    assert before(host) == BEFORE and host.journal.open_entries() == [] and host.warned == []
    assert (host.sys / "block/sdz/queue/nr_requests").read_text().strip() == "64"


def test_how_many_requests_the_disks_take_is_known_before(host: Host) -> None:
    scheduled = {"mq-deadline": 2048, "kyber": 2048, "bfq": 2048}
    assert most_requests(host.run, host.roots) == scheduled | {"": 2048}
    host.write("block/sdz/mq/0/nr_tags", "1023")
    host.write("block/sdz/mq/1/nr_tags", "511")
    assert most_requests(host.run, host.roots) == scheduled | {"none": 511, "": 2048}
    host.write("block/sdz/queue/scheduler", "[none] mq-deadline")
    assert most_requests(host.run, host.roots) == scheduled | {"none": 511, "": 511}
    (host.sys / "dev/block").rename(host.sys / "dev/gone")
    assert most_requests(host.run, host.roots) == scheduled


def test_what_cannot_be_changed_here_is_known_before(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting_files, "why_no_swappiness", str)
    assert unsettable(host.run, host.roots) == {
        "scheduler bfq": "sdz has none, mq-deadline, kyber alone; modprobe bfq may help"
    }
    (host.sys / "kernel/mm/ksm/run").unlink()
    (host.sys / "dev/block").rename(host.sys / "dev/gone")
    host.write(setting_files.THP, "always madvise [never]")
    found = unsettable(host.run, host.roots)
    assert found.pop(setting_files.NO_TRANSPARENT) == "on this host they are off; set host: {thp: madvise}"
    assert sorted(found) == ["ksm", "nr_requests", "read_ahead", "scheduler"]
    assert found["ksm"] == f"{host.sys}/kernel/mm/ksm/run is missing: this kernel has no such setting"
    assert in_force(host.run, host.roots)["ksm"] is None


_OF_SCHEDULERS = {"none": "1023", "mq-deadline": "128", "kyber": "256", "bfq": "128"}
"""Requests of a queue when it is given a scheduler, as some disk's."""
SCHEDULER, REQUESTS = "block/sdz/queue/scheduler", "block/sdz/queue/nr_requests"
TUNABLES = "block/sdz/queue/iosched"
AS_TUNED = {"async_depth": "48", "fifo_batch": "7"}


@pytest.fixture
def kernel(host: Host, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Writes have the effects on other files that the kernel's have; what was written, in order."""
    written: list[tuple[str, str]] = []

    def write(roots: Roots, name: str, value: str) -> None:
        written.append((name, value))
        write_setting(roots, name, value)
        if name == SCHEDULER:
            host.write(REQUESTS, _OF_SCHEDULERS[value])
            rmtree(host.sys / TUNABLES, ignore_errors=True)
            for tunable in () if value == "none" else ("async_depth", "fifo_batch"):
                host.write(f"{TUNABLES}/{tunable}", "16")
        if name == REQUESTS and (host.sys / TUNABLES).exists():
            host.write(f"{TUNABLES}/async_depth", value)
        if name == "vm/dirty_ratio":
            host.write("../proc/sys/vm/dirty_bytes", "0")
        if name == "vm/dirty_bytes":
            host.write("../proc/sys/vm/dirty_ratio", "0")

    monkeypatch.setattr("vmlab.hypervisor.settings_keeper.write_setting", write)
    monkeypatch.setattr(setting_files, "write_setting", write)
    return written


def queue(host: Host) -> tuple[str, str]:
    """Scheduler and requests of the disk."""
    scheduler, requests = ((host.sys / name).read_text().strip() for name in (SCHEDULER, REQUESTS))
    return setting_files.chosen_word(scheduler), requests


def tunables(host: Host) -> dict[str, str]:
    """Those of the disk's scheduler."""
    return {file.name: file.read_text().strip() for file in (host.sys / TUNABLES).iterdir()}


def dirty(host: Host) -> tuple[str, str]:
    ratio, size = ((host.proc / "sys/vm" / name).read_text().strip() for name in ("dirty_ratio", "dirty_bytes"))
    return ratio, size


NONE = HostSettings(scheduler="none")
FEW = HostSettings(nr_requests=32)
BOTH = HostSettings(scheduler="none", nr_requests=32)
KYBER = HostSettings(scheduler="kyber", nr_requests=32)
AS_IT_WAS = HostSettings(scheduler="mq-deadline")


@pytest.mark.parametrize(
    "cells",
    [
        *([NONE], [FEW], [BOTH], [FEW, BOTH], [BOTH, FEW], [NONE, KYBER, FEW], [KYBER, NONE], [FEW, NONE]),
        *([BOTH, AS_IT_WAS], [NONE, HostSettings(), BOTH], [BOTH, KYBER, BOTH, AS_IT_WAS, FEW]),
    ],
)
@pytest.mark.parametrize("killed", [False, True])
def test_a_scheduler_goes_back_with_the_requests_that_it_has_set(
    host: Host, kernel: list[tuple[str, str]], cells: list[HostSettings], killed: bool
) -> None:
    keeper = host.keeper()
    for cell in cells:
        keeper.apply(cell)
        scheduler = cell.scheduler or "mq-deadline"
        as_set = "64" if scheduler == "mq-deadline" else _OF_SCHEDULERS[scheduler]
        assert queue(host) == (scheduler, str(cell.nr_requests or as_set))
    if not killed:
        keeper.put_back()
    assert host.swept() == host.warned == []
    assert queue(host) == ("mq-deadline", "64")
    assert tunables(host) == AS_TUNED


@pytest.mark.parametrize("writes", range(6))
def test_who_puts_a_scheduler_back_may_be_killed_after_any_write(
    host: Host, kernel: list[tuple[str, str]], writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = host.keeper()
    keeper.apply(BOTH)
    write, left = setting_files.write_setting, count(writes, -1)

    def killed(roots: Roots, name: str, value: str) -> None:
        if next(left) <= 0:
            raise KeyboardInterrupt
        write(roots, name, value)

    with monkeypatch.context() as while_killed, suppress(KeyboardInterrupt):
        while_killed.setattr(setting_files, "write_setting", killed)
        keeper.put_back()
    assert host.swept() == []
    assert queue(host) == ("mq-deadline", "64")
    assert tunables(host) == AS_TUNED


def test_a_scheduler_that_somebody_else_has_set_back_keeps_their_requests(
    host: Host, kernel: list[tuple[str, str]]
) -> None:
    keeper = host.keeper()
    keeper.apply(NONE)
    setting_files.write_setting(host.roots, SCHEDULER, "mq-deadline")
    host.write(REQUESTS, "512")
    keeper.put_back()
    (line,) = host.warned
    assert "nr_requests 512" in line and "by somebody else's hand and stays so" in line
    assert queue(host) == ("mq-deadline", "512")


def test_requests_stay_while_the_scheduler_that_is_asked_for_is_in_force(
    host: Host, kernel: list[tuple[str, str]]
) -> None:
    keeper = host.keeper()
    wanted = HostSettings(scheduler="mq-deadline", nr_requests=32)
    keeper.apply(wanted)
    kernel.clear()
    keeper.apply(wanted)
    assert kernel == []


def test_a_scheduler_that_somebody_else_has_set_stays(host: Host, kernel: list[tuple[str, str]]) -> None:
    keeper = host.keeper()
    keeper.apply(NONE)
    host.write(SCHEDULER, "bfq")
    host.write(REQUESTS, "7")
    keeper.put_back()
    (line,) = host.warned
    assert "scheduler is bfq, nr_requests 7 by somebody else's hand and stays so" in line
    assert queue(host) == ("bfq", "7")


@pytest.mark.parametrize(("ratio", "size"), [("20", "0"), ("0", "104857600"), ("0", "0")])
@pytest.mark.parametrize("killed", [False, True])
def test_of_dirty_ratio_and_dirty_bytes_the_one_that_was_set_goes_back(
    host: Host, kernel: list[tuple[str, str]], ratio: str, size: str, killed: bool
) -> None:
    host.write("../proc/sys/vm/dirty_ratio", ratio)
    host.write("../proc/sys/vm/dirty_bytes", size)
    keeper = host.keeper()
    keeper.apply(HostSettings(dirty_ratio=5))
    assert dirty(host) == ("5", "0") and keeper.in_force()["dirty_ratio"] == 5
    if not killed:
        keeper.put_back()
    assert host.swept() == host.warned == []
    assert dirty(host) == (ratio, size)
    # A ratio of 0 in front of the bytes would stop all who write.
    assert (size == "0") is (("vm/dirty_ratio", ratio) in kernel)


def test_dirty_bytes_that_somebody_else_has_set_meanwhile_stay(host: Host, kernel: list[tuple[str, str]]) -> None:
    host.write("../proc/sys/vm/dirty_ratio", "0")
    host.write("../proc/sys/vm/dirty_bytes", "4096000")
    keeper = host.keeper()
    keeper.apply(HostSettings(dirty_ratio=5, swappiness=1))
    host.write("../proc/sys/vm/dirty_ratio", "0")
    host.write("../proc/sys/vm/dirty_bytes", "8192")
    keeper.put_back()
    (line,) = host.warned
    assert "dirty_ratio is 0, dirty_bytes 8192 by somebody else's hand and stays so" in line
    assert dirty(host) == ("0", "8192")
    assert (host.proc / "sys/vm/swappiness").read_text() == "60"


def test_all_disks_below_an_array_have_the_scheduler(host: Host) -> None:
    (host.sys / "block/sdz/slaves").mkdir()
    for name in ("sda", "sdb"):
        host.write(f"block/{name}/queue/scheduler", "[mq-deadline] none")
        host.write(f"block/{name}/queue/nr_requests", "64")
        (host.sys / "block/sdz/slaves" / name).symlink_to(host.sys / "block" / name)
    keeper = host.keeper()
    keeper.apply(NONE)
    having = [(host.sys / f"block/{name}/queue/scheduler").read_text().strip() for name in ("sda", "sdb", "sdz")]
    assert having == ["none", "none", "none [mq-deadline] kyber"]
    assert keeper.in_force()["scheduler"] == "none"


def test_a_value_that_the_kernel_refuses_is_one_line(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(roots: Roots, name: str, value: str) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("vmlab.hypervisor.settings_keeper.write_setting", refuses)
    with pytest.raises(HypervisorError, match=r"queue/nr_requests does not take 32: Invalid argument"):
        host.keeper().apply(FEW)
    assert host.swept() == []


@pytest.mark.parametrize(("version", "own"), [(1, True), (2, False)])
def test_guests_in_old_cgroups_have_a_swappiness_of_their_own(version: int, own: bool) -> None:
    mount = Mount(Path("/sys/fs/cgroup/memory"), frozenset({"memory"}), version)
    assert bool(why_no_swappiness([mount])) is own
    assert why_no_swappiness([]) == ""
