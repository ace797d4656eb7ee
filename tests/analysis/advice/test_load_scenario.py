"""From a recording to the scenario that copies a disk of it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.called import ended
from tests.plan.copied_guest.guests import ROOMY, with_disk
from vmlab.analysis.advice.load_scenario import load_scenario
from vmlab.analysis.document import run_document
from vmlab.model.cell_event import CellStarted, PhaseEnded, PhaseStarted
from vmlab.model.domain import Domain, DomainDisk
from vmlab.model.errors import UsageError
from vmlab.model.event import DomainsSeen, HostProbed, RunStarted
from vmlab.model.run import OF_HOST, Phase
from vmlab.model.sample import OWN_NAMES, Sample, SampleNames
from vmlab.plan.copied_guest.trial import Trial
from vmlab.plan.scenario_file.loading import ScenarioFile, read
from vmlab.store.reader import RunReader
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter
from vmlab.telemetry.domains.domain_rates import OF_DISK
from vmlab.telemetry.domains.libvirt_reader import FoundDomain, LibvirtReader
from vmlab.telemetry.domains.traced_disks import OF_TRACE

NAME = "nobody-here-has-this-name"
DISKS = {target: DomainDisk(target, f"/no/{target}", "raw", "none", True, "sda", "file") for target in ("vda", "vdb")}
BY_LIBVIRT = Domain(NAME, "libvirt", 71, "uuid", 2, 2**30, "kvm", tuple(DISKS.values()))
BY_PROCESS = Domain(NAME, "process", 71, "", 2, 2**30, "kvm", tuple(DISKS.values()))
IDLE = (0.0,) * (len(OF_DISK) + len(OF_TRACE))
BUSY = (80.0, 40.0, 80 * 4096.0, 40 * 8192.0, 10.0, 1.25, 10.0, 0.4, 0.05)
"""80 reads of 4 KiB and 5 ms, 40 writes of 8 KiB and 20 ms, 10 flushes of 5 ms, in the order of `OF_DISK`."""


def recording(
    store: Path,
    domain: Domain = BY_LIBVIRT,
    metrics: Sequence[str] = OF_DISK,
    busy: Sequence[float] = BUSY,
    seconds: int = 90,
    host: str = platform.node(),
) -> Path:
    """So many seconds of a host with one guest: its second disk is busy, the first one idle."""
    writer = RunWriter(store)
    run = {"run": "r", "scenario": "recording", "size": OF_HOST, "seed": 0, "cells": 1, "expected_seconds": 0.0}
    writer.append(RunStarted(**run, mono=0.0))  # type: ignore[arg-type]
    writer.append(HostProbed(accelerator="", host={"hostname": host}, mono=0.0))
    writer.append(CellStarted(cell=1, axes={}, repeat=1, guests=0, mono=0.0))
    writer.append(PhaseStarted(cell=1, phase=Phase.EXECUTE, mono=0.0))
    writer.append(DomainsSeen(domains=[domain], mono=1.0))
    names = [f"{metric}[{domain.name}/{target}]" for target in DISKS for metric in metrics]
    layout = SampleNames.of((*OWN_NAMES, *names))
    own = [1.0 if name == "tick_length_seconds" else 0.0 for name in OWN_NAMES]
    for second in range(1, seconds + 1):
        values = (*own, *IDLE[: len(metrics)], *busy[: len(metrics)])
        SampleWriter(writer)(Sample(float(second), float(second), 1.0, 0.0, layout, values))
    writer.append(PhaseEnded(cell=1, phase=Phase.EXECUTE, seconds=float(seconds), mono=float(seconds)))
    writer.close()
    return store


def copied(store: Path, disk: str = "") -> tuple[str, ScenarioFile]:
    with RunReader(store) as reader:
        name, text = load_scenario(reader, run_document(reader), disk, Trial(ROOMY))
    return name, read(Path("try.yaml"), text, {})


def test_the_busiest_disk_is_copied_with_all_that_was_recorded_of_it(tmp_path: Path) -> None:
    name, file = copied(recording(tmp_path / "r.sqlite"))
    assert name == f"{NAME}/vdb"
    recorded = file.scenario.recorded
    assert recorded is not None and (recorded.run, recorded.domain, recorded.disk) == ("r", NAME, "vdb")
    (phase,) = recorded.phases.values()
    assert phase.reads is not None and phase.writes is not None
    assert (phase.reads.rate, phase.reads.size, phase.writes.rate, phase.writes.size) == (80, 4096, 40, 8192)
    assert phase.reads.latency == pytest.approx(0.005)
    assert phase.writes.latency == pytest.approx(0.02)
    assert (phase.time, phase.flushes, recorded.flushes_known) == (90, 10, True)
    assert file.scenario.workloads["writes"].params["fdatasync"] == 4
    # Its domain is not here, and the recording has the rest.
    assert file.scenario.guests["vm"].vcpus == 2
    assert "as no domain of that name" in file.text


@pytest.mark.parametrize("name", [NAME, "-"])
def test_a_file_of_the_guests_name_hides_no_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Such as a scenario in the folder from which `vmlab advise` is called."""
    disk = f"<source file='{DISKS['vdb'].file}'/>"
    xml = with_disk("cache='none' type='raw'", source=disk).replace("<target dev='vda'", "<target dev='vdb'")
    found = FoundDomain(xml.replace("<name>one<", f"<name>{name}<"), lambda target: None, is_saved=False)
    monkeypatch.setattr(LibvirtReader, "is_there", lambda _: True)
    monkeypatch.setattr(LibvirtReader, "find", lambda _, wanted: found if wanted == name else None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("a scenario")
    _, file = copied(recording(tmp_path / "r.sqlite", replace(BY_LIBVIRT, name=name)))
    assert f"domain {name} of qemu:///system" in file.text and "as no domain of that name" not in file.text


def test_a_recording_of_another_host_says_nothing_of_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A domain of the same name, with a disk of the same path, is another one."""
    image = tmp_path / "vdb"
    image.write_bytes(bytes(8192))
    xml = with_disk("cache='none' type='raw'", source=f"<source file='{image}'/>")
    found = FoundDomain(xml.replace("<target dev='vda'", "<target dev='vdb'"), lambda target: None, is_saved=False)
    monkeypatch.setattr(LibvirtReader, "is_there", lambda _: True)
    monkeypatch.setattr(LibvirtReader, "find", lambda _, wanted: found)
    domain = replace(BY_LIBVIRT, disks=(DISKS["vda"], replace(DISKS["vdb"], file=str(image))))
    _, here = copied(recording(tmp_path / "here.sqlite", domain))
    _, other = copied(recording(tmp_path / "other.sqlite", domain, host="hv2.example"))
    _, unknown = copied(recording(tmp_path / "unknown.sqlite", domain, host=""))
    assert f"domain {NAME} of qemu:///system" in here.text and "in the size of" in here.text
    for file, whose in ((other, "hv2.example"), (unknown, "a host that it does not name")):
        assert f"# A guest like {NAME}: the recording r, made on {whose}." in file.text
        assert f"{image} may be a file of another host" in file.text and "in the size of" not in file.text


def test_a_disk_is_named_by_guest_and_target_or_by_its_guest(tmp_path: Path) -> None:
    store = recording(tmp_path / "r.sqlite")
    assert copied(store, NAME)[0] == copied(store, f"{NAME}/vdb")[0] == f"{NAME}/vdb"
    with pytest.raises(UsageError, match="has less than one request and 1 MiB in a second"):
        copied(store, f"{NAME}/vda")
    with pytest.raises(UsageError, match=f"r has no disk '{NAME}/vdx'; did you mean"):
        copied(store, f"{NAME}/vdx")


@pytest.mark.parametrize(
    ("domain", "metrics", "why"),
    [
        (BY_PROCESS, (), "QEMU without libvirt tells bytes alone, and no requests with their times"),
        (BY_LIBVIRT, (), "libvirt told nothing of it"),
        (BY_LIBVIRT, OF_DISK[:6], "an older version recorded it; record it again"),
    ],
)
def test_where_too_little_is_known_one_line_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], domain: Domain, metrics: Sequence[str], why: str
) -> None:
    store, output = recording(tmp_path / "r.sqlite", domain, metrics), tmp_path / "try.yaml"
    assert ended("advise", str(store), "-o", str(output)) == 2
    told = capsys.readouterr()
    assert why in told.err and len(told.err.splitlines()) == 1 and told.out == ""
    assert not output.exists()


def traced(reads: float, writes: float, times: float = 1.0) -> tuple[float, ...]:
    """The load of `BUSY` as the block device had it, with these shares in sequence, in `times` as many requests."""
    return (
        *(80.0 * times, 80.0 * times * reads, 80 * 4096.0, 0.4),
        *(40.0 * times, 40.0 * times * writes, 40 * 8192.0, 0.8),
    )


def access(file: ScenarioFile) -> dict[str, dict[str, object]]:
    """With a cold page cache."""
    found = {name: dict(point.sets) for name, point in file.scenario.axes["access"].points.items()}
    assert found.pop("cached")["warm"] == "host"
    return found


@pytest.mark.parametrize(
    ("reads", "writes", "expected"),
    [
        (0.97, 0.93, {"sequential": ("read", "write")}),
        (0.01, 0.2, {"random": ("randread", "randwrite")}),
        (0.9, 0.1, {"recorded": ("read", "randwrite")}),
        (0.9, 0.5, {"random": ("read", "randwrite"), "sequential": ("read", "write")}),
        (0.5, 0.5, {"random": ("randread", "randwrite"), "sequential": ("read", "write")}),
    ],
)
def test_a_trace_tells_the_order_of_requests(
    tmp_path: Path, reads: float, writes: float, expected: dict[str, tuple[str, str]]
) -> None:
    metrics, busy = (*OF_DISK, *OF_TRACE), (*BUSY, *traced(reads, writes))
    _, file = copied(recording(tmp_path / "r.sqlite", metrics=metrics, busy=busy))
    assert access(file) == {
        name: {"workloads.reads.rw": own[0], "workloads.writes.rw": own[1]} for name, own in expected.items()
    }
    shares = [
        f"Of {90 * 80} reads",
        f"{100 * reads:.1f} % began",
        f"Of {90 * 40} writes",
        f"{100 * writes:.1f} % began",
    ]
    words = " ".join(line.removeprefix("# ") for line in file.text.splitlines() if line.startswith("#"))
    assert all(one in words for one in shares)
    assert ("at random and once in sequence" in words) == (len(expected) > 1)
    recorded = file.scenario.recorded
    assert recorded is not None and recorded.phases["load"].flushes == 10, "libvirt's figures stay those of the load"


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_requests_that_the_host_split_or_merged_tell_no_order(tmp_path: Path, times: float) -> None:
    metrics, busy = (*OF_DISK, *OF_TRACE), (*BUSY, *traced(1, 1, times))
    _, file = copied(recording(tmp_path / "r.sqlite", metrics=metrics, busy=busy))
    assert set(access(file)) == {"random", "sequential"}
    words = " ".join(line.removeprefix("# ") for line in file.text.splitlines())
    assert f"the guest asked for {90 * 80}, so that they were split or merged" in words


def test_a_qemu_without_libvirt_is_copied_by_its_trace(tmp_path: Path) -> None:
    _, file = copied(recording(tmp_path / "r.sqlite", BY_PROCESS, OF_TRACE, traced(0, 0)))
    recorded = file.scenario.recorded
    assert recorded is not None and recorded.seen_by == "process" and not recorded.flushes_known
    (phase,) = recorded.phases.values()
    assert phase.reads is not None and phase.writes is not None and phase.flushes is None
    assert (phase.reads.rate, phase.reads.size, phase.writes.rate, phase.writes.size) == (80, 4096, 40, 8192)
    assert phase.reads.latency == pytest.approx(0.005)
    assert phase.writes.latency == pytest.approx(0.02)
    assert set(access(file)) == {"random"}
    assert "How often it flushed is not known" in file.text


def test_a_recording_of_less_than_a_minute_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, output = recording(tmp_path / "r.sqlite", seconds=59), tmp_path / "try.yaml"
    assert ended("advise", str(store), "-o", str(output)) == 2
    err = capsys.readouterr().err
    assert "r is 59.0 s long, and a load is copied from a minute or more" in err and len(err.splitlines()) == 1
    assert not output.exists()
    assert copied(recording(tmp_path / "long.sqlite", seconds=60))[0] == f"{NAME}/vdb"


def test_the_command_writes_it_and_says_how_to_measure_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, output = recording(tmp_path / "r.sqlite"), tmp_path / "try me.yaml"
    assert ended("advise", str(store), "--disk", f"{NAME}/vdb", "-o", str(output)) == 0
    assert capsys.readouterr().err.endswith(f"measure it: vmlab run '{output}'\n")
    assert ended("validate", str(output)) == 0
    assert ended("advise", str(store), "--disk", NAME) == 2
    assert "--disk goes with -o" in capsys.readouterr().err
    assert ended("advise", str(store), "--json", "-o", str(output)) == 2
    assert "--json does not go with -o" in capsys.readouterr().err
