"""A recording of the host: as a process, and what it keeps."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.called import ended
from tests.waiting import until
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.lab.commands.stopping import is_over, living_run, stop_run
from vmlab.lab.process.host_recording import RecordingRequest, start_recording
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.run.host_recorder import Gaps, Ring
from vmlab.model.cell_event import (
    CellStarted,
    PhaseEnded,
    PhaseStarted,
)
from vmlab.model.checked import made
from vmlab.model.domain import BackingFile, Domain, DomainDisk
from vmlab.model.event import (
    DomainsSeen,
    HostProbed,
    Notice,
    RunStarted,
)
from vmlab.model.jsonable import jsonable
from vmlab.model.places import runs_folder
from vmlab.model.run import OF_HOST, Phase
from vmlab.model.sample import OWN_NAMES, Sample, SampleNames
from vmlab.report.event_words import event_sentence
from vmlab.report.run.run_page import run_table
from vmlab.store.life import is_recording
from vmlab.store.reader import NotBegunError, RunReader
from vmlab.store.run_list import list_runs
from vmlab.store.samples import SampleWriter, samples
from vmlab.store.writer import RunWriter

DOMAIN = Domain("db", "libvirt", 71, "uuid", 2, 2**30, "kvm", (DomainDisk("vda", "/db", "raw", "none", True, "sda"),))
OF_DOMAIN = ("domain_cpu_percent[db]", "domain_disk_queue_depth[db/vda]")
NAMES = SampleNames.of((*OWN_NAMES, "cpu_count", *OF_DOMAIN))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "rt"))
    yield tmp_path
    for run in list_runs():
        folder = RunFolder(run.id, runs_folder() / run.id)
        if folder.alive():
            stop_run(folder, origin="test")
            is_over(folder, 60)


def document_of(folder: Path) -> RunDocument:
    with RunReader(folder / "run.sqlite") as reader:
        return run_document(reader)


def sample(mono: float) -> Sample:
    own = [1.0 if name == "tick_length_seconds" else 0.0 for name in OWN_NAMES]
    return Sample(mono, mono, 1.0, 0.0, NAMES, (*own, 2.0, 50.0 + mono, 4.0))


def kept(store: Path) -> list[float]:
    """The times of the samples; none of a store that has just been made."""
    try:
        with RunReader(store) as reader:
            return [one.mono for _, one in samples(reader)]
    except NotBegunError:
        return []


async def test_a_recording_is_a_run_without_workloads() -> None:
    folder = start_recording(RecordingRequest(seconds=None, interval=0.05))
    await until(lambda: folder.store.exists() and len(kept(folder.store)) > 3, "samples")
    assert is_recording(folder.path)
    assert living_run().id == folder.id
    stop_run(folder, origin="test")
    assert is_over(folder, 60)
    (run,) = list_runs()
    assert (run.outcome, run.scenario, run.size, run.cells_done) == ("passed", "recording", OF_HOST, 1)
    document = document_of(folder.path)
    (cell,) = document.cells
    assert cell.outcome == "passed"
    assert cell.host["cpu_count"].mean == os.cpu_count()
    assert document.recording is not None and document.recording.seconds > 0.15
    assert folder.log.read_text() == ""


def test_a_span_without_samples_is_named_and_a_late_tick_is_not() -> None:
    told: list[tuple[str, str]] = []
    gaps = Gaps(lambda line, level: told.append((level, line)))

    def looked_at(length: float, missed: float, suspended: float = 0.0) -> None:
        own = {"tick_length_seconds": length, "ticks_missed": missed, "suspended_seconds": suspended}
        gaps(Sample(1e9, 50.0, length, 0.0, SampleNames.of([*own]), tuple(own.values())))

    looked_at(1.0, 0)
    looked_at(1.9, 1)
    looked_at(1.9, 18)
    looked_at(2.0, 1)
    looked_at(math.nan, math.nan, math.nan)
    assert told == []
    looked_at(13.0, 12)
    looked_at(1.2, 0, 3600.0)
    at = "2001-09-09T01:46:40.000+00:00"
    assert told == [
        ("warning", f"gap: no sample was taken for 13.0 s until {at}: the recorder did not run"),
        ("warning", f"gap: no sample was taken for 1 h 00 min until {at}: the host was suspended"),
    ]
    for _ in range(110):
        looked_at(13.0, 12)
    gaps.tell_rest()
    assert len(told) == 101 and told[-1] == ("warning", "12 more gaps are not named")


async def test_a_recorder_that_was_stopped_for_a_while_says_so_in_its_record() -> None:
    folder = start_recording(RecordingRequest(seconds=None, interval=0.05))
    await until(lambda: folder.store.exists() and len(kept(folder.store)) > 3, "samples")
    pid = folder.process("recorder_pid")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(2.5)
    os.kill(pid, signal.SIGCONT)

    def told() -> bool:
        with RunReader(folder.store) as reader:
            return any("the recorder did not run" in event.text for _, event in reader.events(kinds=(Notice,)))  # type: ignore[attr-defined]

    await until(told, "the gap")
    # It goes on, however long it was stopped.
    before = len(kept(folder.store))
    await until(lambda: len(kept(folder.store)) > before + 3, "more samples")
    assert folder.alive()


def test_the_command_records_for_a_time_and_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("record", "--for", "400 ms", "--interval", "100 ms") == 0
    out = capsys.readouterr()
    assert out.out.startswith("a recording of the host and its own guests\n")
    assert "CPU user %" in out.out and "Recorded for " in out.out
    assert "Ctrl-C ends it" in out.err
    assert ended("advise", "last") == 0
    assert "less than a minute says nothing" in capsys.readouterr().out


def test_ctrl_c_ends_it_as_its_own_end_does(state: Path) -> None:
    command = [sys.executable, "-m", "vmlab", "record", "--interval", "50 ms", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None and running.stdout is not None
        assert "recording " in running.stderr.readline()
        time.sleep(0.5)
        running.send_signal(2)
        document = json.loads(running.stdout.read())
        assert running.wait(60) == 0
    assert document["run"]["outcome"] == "passed"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--for", "soon"], "'soon' needs a number and a unit"),
        (["--for", "0 s"], "less than 20 ms"),
        (["--keep", "-1 h"], "'-1 h' needs a number and a unit"),
        (["--most", "5 kB"], "less than 1 MB"),
        (["--interval", "2 h"], "at most one hour"),
    ],
)
def test_what_makes_no_sense_starts_nothing(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("record", *words) == 2
    told = capsys.readouterr()
    assert told.out == "" and line in told.err
    assert not runs_folder().exists()


def test_advice_needs_a_recording(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = runs_folder() / "20261125-000000-tile-0000"
    folder.mkdir(parents=True)
    writer = RunWriter(folder / "run.sqlite")
    writer.append(RunStarted(run=folder.name, scenario="tile", size="smoke", seed=1, cells=1, expected_seconds=1.0))
    writer.close()
    assert ended("advise", "last") == 2
    assert "is not a recording of the host; `vmlab record` makes one" in capsys.readouterr().err


def test_the_oldest_samples_are_dropped_by_time(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "ring.sqlite")
    ring = Ring(writer, SampleWriter(writer), RecordingRequest(None, keep_seconds=100.0))
    for mono in range(1, 241):
        ring(sample(float(mono)))
    writer.close()
    assert kept(tmp_path / "ring.sqlite") == [float(mono) for mono in range(141, 241)]
    assert ring.began_at == 140.0


def test_the_oldest_samples_are_dropped_by_bytes(tmp_path: Path) -> None:
    most, last = 3 * 10**5, 12_000
    writer = RunWriter(tmp_path / "ring.sqlite")
    ring = Ring(writer, SampleWriter(writer), RecordingRequest(None, keep_bytes=most))
    for mono in range(1, last + 1):
        ring(sample(float(mono)))
    assert writer.used_bytes() < 1.3 * most
    writer.fold_in()
    assert (tmp_path / "ring.sqlite").stat().st_size < 1.6 * most
    writer.close()
    left = kept(tmp_path / "ring.sqlite")
    assert left == [float(mono) for mono in range(int(left[0]), last + 1)]
    assert 1000 < len(left) < 10_000


def recorded(store: Path, domain: Domain = DOMAIN) -> None:
    """Three seconds of a host with one guest, which has one disk."""
    writer = RunWriter(store)
    run = {"run": "r", "scenario": "recording", "size": OF_HOST, "seed": 0, "cells": 1, "expected_seconds": 0.0}
    writer.append(RunStarted(**run, mono=0.0))  # type: ignore[arg-type]
    writer.append(CellStarted(cell=1, axes={}, repeat=1, guests=0, mono=0.0))
    writer.append(PhaseStarted(cell=1, phase=Phase.EXECUTE, mono=0.0))
    writer.append(DomainsSeen(domains=[domain], mono=1.0))
    keep = SampleWriter(writer)
    for mono in (1.0, 2.0, 3.0):
        one = sample(mono)
        layout = (name.replace("db", domain.name).replace("vda", domain.disks[0].target) for name in OF_DOMAIN)
        keep(one._replace(layout=SampleNames.of((*OWN_NAMES, "cpu_count", *layout))))
    writer.append(PhaseEnded(cell=1, phase=Phase.EXECUTE, seconds=3.0, mono=3.0))
    writer.close()


def test_guests_of_the_host_stand_in_document_and_text(tmp_path: Path) -> None:
    recorded(tmp_path / "run.sqlite")
    with RunReader(tmp_path / "run.sqlite") as reader:
        document = run_document(reader)
    assert document.recording is not None
    (domain,) = document.recording.domains
    assert (domain.name, domain.vcpus) == ("db", 2)
    assert domain.figures["cpu_percent"].mean == pytest.approx(52.0)
    (disk,) = domain.disks
    assert (disk.cache, disk.o_direct, disk.below) == ("none", True, "sda")
    text = run_table(document)
    assert [line.split() for line in text.splitlines() if line.startswith("db")] == [
        ["db", "52.0"],
        ["db", "vda", "none", "raw", "-", "-", "-", "4.00", "sda"],
    ]


def test_recordings_are_set_side_by_side_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stores = [tmp_path / name for name in ("a.sqlite", "b.sqlite", "run.sqlite")]
    for store in stores[:2]:
        recorded(store)
    assert ended("compare", *map(str, stores[:2])) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["db", "CPU", "%", "52.0", "52.0"] in lines
    assert ["db", "vda", "cache", "none", "none"] in lines
    writer = RunWriter(stores[2])
    writer.append(RunStarted(run="r", scenario="tile", size="smoke", seed=1, cells=1, expected_seconds=1.0))
    writer.close()
    assert ended("compare", str(stores[0]), str(stores[2])) == 2
    assert "compared with other recordings" in capsys.readouterr().err
    page = tmp_path / "page.html"
    assert ended("report", str(stores[0]), "-o", str(page)) == 0
    text = page.read_text()
    assert "<th>domain, mean</th>" in text and "<td>none</td>" in text
    assert "less than a minute says nothing" in text
    assert "guests' CPU %" in text
    for_a_wiki = tmp_path / "page.md"
    assert ended("report", str(stores[0]), "-o", str(for_a_wiki)) == 0
    text = for_a_wiki.read_text()
    assert "| db | 52.0 |" in text and "| db vda | none | raw |" in text
    assert "less than a minute says nothing" in text
    assert "Figures" not in text and "run time" not in text


def test_what_holds_a_disk_stands_in_document_and_text(tmp_path: Path) -> None:
    disk = DomainDisk("vda", "pool/db", "raw", "writeback", protocol="rbd", backing=(BackingFile("/base", "file"),))
    recorded(tmp_path / "run.sqlite", replace(DOMAIN, disks=(disk,), shares=("/srv",)))
    with RunReader(tmp_path / "run.sqlite") as reader:
        document = run_document(reader)
    assert document.recording is not None
    (domain,) = document.recording.domains
    (found,) = domain.disks
    assert (found.cache, found.protocol, found.file_system, domain.shares) == (
        *("writeback", "rbd", ""),
        ["/srv"],
    )
    assert found.backing == (BackingFile("/base", "file"),)
    (line,) = [line.split() for line in run_table(document).splitlines() if line.startswith("db vda")]
    assert line == ["db", "vda", "network", "raw", "-", "-", "-", "4.00", "rbd"]


def test_a_recording_of_an_older_version_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = jsonable(DOMAIN)
    del old["shares"]
    for key in ("protocol", "file_system", "backing"):
        del old["disks"][0][key]
    recorded(tmp_path / "run.sqlite", made(Domain, old))
    with RunReader(tmp_path / "run.sqlite") as reader:
        document = run_document(reader)
    assert document.recording is not None
    (disk,) = document.recording.domains[0].disks
    assert (disk.cache, disk.below, disk.protocol, disk.file_system) == ("none", "sda", "unknown", "")
    assert "db vda" in run_table(document)


FORGED = "db\ndb vdb\r\x85\u2028\x1b[31m | `x` <b>\u202e"


@pytest.mark.parametrize("words", [("report", "-o", "r.html"), ("report", "-o", "r.md"), ("show",)])
@pytest.mark.parametrize("export", [("csv", ()), ("openmetrics", ("--samples",)), ("csv", ("--samples",))])
def test_a_name_with_a_line_break_ends_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], export: tuple[str, tuple[str, ...]]
) -> None:
    """Of a guest, a disk or a file, which are another's texts: each output has as many lines as with a plain name."""
    counts = []
    for place, name in enumerate(("db", FORGED)):
        store = tmp_path / f"{place}.sqlite"
        disk = replace(DOMAIN.disks[0], target=name.replace("db", "vda"), file=f"/{name}", format=name)
        recorded(store, replace(DOMAIN, name=name, disks=(disk,)))
        output = tmp_path / f"{place}.{words[-1].removeprefix('r.')}"
        assert ended(words[0], str(store), *(("-o", str(output)) if len(words) > 1 else ())) == 0
        text = output.read_text() if len(words) > 1 else capsys.readouterr().out
        kind, options = export
        file = tmp_path / f"{place}.{kind}"
        assert ended("export", str(store), "--format", kind, *options, "-o", str(file)) == 0
        counts.append([len(one.splitlines()) for one in (text, file.read_text())])
        assert "\x1b" not in text + file.read_text()
    assert counts[0] == counts[1]


def test_what_a_recording_says_while_it_is_followed() -> None:
    run = RunStarted(run="r", scenario="recording", size=OF_HOST, seed=0, cells=1, expected_seconds=0.0)
    probed = HostProbed(accelerator="", host={})
    events = [run, probed, DomainsSeen(domains=[DOMAIN]), DomainsSeen(domains=[])]
    assert [one.text for event in events if (one := event_sentence(event)) is not None] == [
        "recording r began",
        "guests of the host: db",
        "no guest of the host's own runs",
    ]
