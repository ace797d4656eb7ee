"""Advice is given where the figures carry it, with each of them, and else its lack is explained."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from vmlab.analysis.advice.advice import KSM_RUN, Advised, advise
from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.document import unrun_document
from vmlab.analysis.shape import (
    DomainDiskDocument,
    DomainDocument,
    RecordingDocument,
    RunDocument,
)
from vmlab.model.domain import BackingFile
from vmlab.model.results import Summary
from vmlab.report.run.recording_text import advice_text

MIB, GIB = 2**20, 2**30
CACHE_RUN = "vmlab advise recording --disk db/vda -o try.yaml && vmlab run try.yaml"


def figure(mean: float, area: float = 0.0) -> Summary:
    return Summary(mean, mean, mean, area)


def document(
    cache: str = "none",
    *,
    read: float = 1 * GIB,
    written: float = 3 * GIB,
    from_disk: float = 1 * GIB,
    queue: float = 3.0,
    await_ms: float = 20.0,
    busy: float = 93.0,
    available: float = 4 * GIB,
    seconds: float = 600.0,
    ksm: tuple[float, ...] | None = None,
    o_direct: bool | None = None,
    known: bool = True,
    flushes: float | None = 0.0,
    **more: Any,
) -> RunDocument:
    """A recording of a guest with one disk on a host of 16 GiB."""
    moved = {"disk_read_bytes_per_second": figure(read / seconds, read)}
    moved |= {"disk_write_bytes_per_second": figure(written / seconds, written)}
    moved |= {"disk_await_ms": figure(await_ms), "disk_queue_depth": figure(queue)}
    moved |= {} if flushes is None else {"disk_flushes_per_second": figure(flushes)}
    disk = {"format": "raw", "cache": cache, "o_direct": o_direct, "below": "sda", **more}
    its = DomainDiskDocument("vda", "/db", **disk, figures=moved if known else {})
    of_host = {"host_read_bytes_per_second": figure(from_disk / seconds, from_disk)}
    domain = DomainDocument("db", "libvirt", 0, 0, "kvm", [], figures=of_host, disks=[its])
    below = {"disk_util_percent": figure(busy), "disk_await_ms": figure(8.0)}
    below |= {f"disk_{way}_bytes_per_second": figure(1.0, 2 * GIB) for way in ("read", "write")}
    host = {"memory_total_bytes": figure(16 * GIB), "memory_available_bytes": figure(available)}
    host |= {"memory_cached_bytes": figure(5 * GIB)}
    if ksm is not None:
        names = ("ksm_run", "ksm_saved_bytes", "ksmd_cpu_percent", "ksm_profit_bytes")
        host |= {name: figure(value) for name, value in zip(names, ksm, strict=False)}
    recording = RecordingDocument(seconds, [domain], {"sda": below})
    cells = [CellDocument(cell=1, repeat=1, outcome="passed", host=host)]
    run = replace(unrun_document("recording", {}).run, id="recording", size="host")
    return RunDocument(run=run, recording=recording, cells=cells)


def reason(advised: Advised) -> str:
    assert advised.advice == ()
    return advised.none[0].matters


def test_a_guest_that_waits_without_the_page_cache() -> None:
    (one,) = advise(document()).advice
    assert (one.subject, one.run) == ("db vda", CACHE_RUN)
    assert one.matters.startswith("cache none may cost this guest time")
    assert one.why == (
        "on average 3 of its requests were under way, and each took 20 ms",
        "it read 1 GiB and wrote 3 GiB in 10 min 00 s: 75 % were writes, which the page cache would take in at once",
        "the host's disk sda was busy for 93 % of the time, with 8 ms for a request; "
        "it moved 4 GiB for all guests and the host itself",
        "4 GiB of the host's memory, 25 %, was available for a page cache",
    )


def test_flushes_that_were_not_counted_are_named_beside_the_writes() -> None:
    words = "how often it flushed is not known, and a flush waits for the disk in each mode"
    assert [words in advise(document(flushes=one)).advice[0].why for one in (None, 0.0, 10.0)] == [True, False, False]


def test_a_cache_that_serves_reads() -> None:
    (one,) = advise(document("writeback", read=10 * GIB, from_disk=1 * GIB)).advice
    assert one.matters.startswith("cache writeback saves this guest reads")
    assert (
        "it read 10 GiB in 10 min 00 s, and its QEMU had 1 GiB read from the host's disk: the page cache served 90 %"
        in one.why
    )
    assert one.run == CACHE_RUN


def test_a_cache_that_serves_nothing() -> None:
    (one,) = advise(document("writeback", read=10 * GIB, from_disk=10 * GIB)).advice
    assert one.matters.startswith("cache writeback serves next to none of its reads")
    assert "the host's page cache held 5 GiB" in one.why


def test_the_open_file_counts_and_not_the_xml() -> None:
    (one,) = advise(document("writeback", o_direct=True)).advice
    assert one.matters.startswith("cache direct, not writeback may cost this guest time")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"seconds": 59.0}, "less than a minute says nothing"),
        ({"known": False}, "nothing tells what the guest reads and writes"),
        ({"cache": "unknown"}, "its cache mode is not known"),
        ({"read": 1.0 * MIB, "written": 0.0}, "next to nothing"),
        ({"queue": 0.4}, "cache none costs it little"),
        ({"await_ms": 0.9}, "cache none costs it little"),
        ({"busy": 4.0}, "the host's disk sda was busy for 4 % of the time: something else held them up"),
        ({"busy": math.nan}, "nothing is known of the host's disk below its file"),
        ({"await_ms": 25.0}, "those of the host's disk sda took 8 ms: something above it held them up"),
        ({"available": 1.5 * GIB}, "the host has no room for a cache"),
        ({"cache": "writeback", "read": 1.0 * MIB}, "too little to say what the page cache serves"),
        ({"cache": "writeback", "from_disk": 0.8 * GIB}, "served 20 % of its reads"),
    ],
)
def test_no_advice_where_the_figures_carry_none(given: dict[str, Any], why: str) -> None:
    assert why in reason(advise(document(**given)))


NOT_LOCAL = [
    *(
        ({"protocol": one, "below": ""}, f"is reached over the network ({one})")
        for one in ("rbd", "nbd", "iscsi", "https", "http", "ssh", "gluster", "nfs")
    ),
    *(
        ({"protocol": one, "below": ""}, f"is driven past this host's page cache and block layer ({one})")
        for one in ("nvme", "vhost-user", "vhost-vdpa", "scsi-block")
    ),
    *(
        ({"protocol": "file", "file_system": one}, f"is read by way of {one}, with no known disk")
        for one in (
            "nfs4",
            "cifs",
            "9p",
            "fuse.sshfs",
            "fuse.glusterfs",
            "fuseblk",
            "ceph",
            "virtiofs",
            "overlay",
            "new",
        )
    ),
    ({"protocol": "vvfat", "below": ""}, "is read by way of vvfat"),
    ({"protocol": "file", "file_system": "zfs", "below": ""}, "is on ZFS, whose own cache (ARC) serves reads"),
    ({"protocol": "host_device", "below": "zd0"}, "is on ZFS"),
    ({"protocol": "file", "file_system": "tmpfs", "below": ""}, "is in this host's memory (tmpfs)"),
    ({"protocol": "host_device", "below": "zram0"}, "is in this host's memory (zram0)"),
    ({"protocol": "file", "file_system": "ext4", "below": "loop0"}, "is on loop0, a loop device"),
    ({"protocol": "file", "file_system": "btrfs", "below": ""}, "is on no disk of this host that is known"),
    ({"below": ""}, "is on no disk of this host that is known"),
    (
        {"backing": (BackingFile("pool/base", "rbd", "", ""),)},
        "it reads pool/base, too, which is reached over the network (rbd)",
    ),
    (
        {"backing": (BackingFile("/nfs/base", "file", "nfs4", ""),)},
        "it reads /nfs/base, too, which is read by way of nfs4",
    ),
    (
        {"backing": (BackingFile("/base", "file", "xfs", "sdb"),)},
        "it reads /base, too, which is on sdb, another disk of the host than sda",
    ),
]


@pytest.mark.parametrize("cache", ["writeback", "none", "unsafe"])
@pytest.mark.parametrize(("place", "why"), NOT_LOCAL)
def test_no_advice_without_a_known_local_disk(place: dict[str, Any], why: str, cache: str) -> None:
    """What a QEMU moves says something of a disk that it reads through the host's block layer from a known local disk.

    Of any other disk, and of an overlay that reads one, advice says what is not known; no mode and no figure, such as
    10 GiB that the guest read and 0 B by the process, is evidence then.
    """
    for from_disk in (0.0, 10.0 * GIB):
        said = reason(advise(document(cache, read=10 * GIB, from_disk=from_disk, **place)))
        assert why in said
        assert "page cache served" not in said


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"protocol": "file", "file_system": "ext4"},
        {"protocol": "file", "file_system": "btrfs"},
        {"protocol": "host_device"},
        {"protocol": "file", "file_system": "xfs", "backing": (BackingFile("/b", file_system="xfs", below="sda"),)},
    ],
)
def test_a_known_local_disk_is_advised(place: dict[str, Any]) -> None:
    """Also in recordings of versions that did not say how a disk is reached."""
    (one,) = advise(document(**place)).advice
    assert one.run == CACHE_RUN
    (one,) = advise(document("writeback", read=10 * GIB, from_disk=1 * GIB, **place)).advice
    assert "the page cache served 90 %" in one.why[0]


def beside(body: RunDocument, protocol: str, read: float, file_system: str = "") -> RunDocument:
    """The same guest with another disk that read as much."""
    figures = {"disk_read_bytes_per_second": figure(1.0, read)}
    place: Any = {"protocol": protocol, "file_system": file_system}
    other = DomainDiskDocument("vdb", "x", "raw", "none", None, "", **place, figures=figures)
    assert body.recording is not None
    body.recording.domains[0].disks.append(other)
    return body


@pytest.mark.parametrize(
    ("protocol", "file_system", "advised"),
    [
        ("rbd", "", True),
        ("vhost-user", "", True),
        ("nvme", "", True),
        # The process reads these as it reads the disk that is asked about.
        ("file", "ext4", False),
        ("file", "nfs4", False),
        ("vvfat", "", False),
        ("unknown", "", False),
    ],
)
def test_a_disk_beside_it_counts_where_the_process_reads_it(protocol: str, file_system: str, advised: bool) -> None:
    body = beside(document("writeback", read=10 * GIB, from_disk=0.0), protocol, 5 * GIB, file_system)
    found = advise(body)
    assert [one.subject for one in found.advice] == ["db vda"] * advised
    if not advised:
        assert "what the page cache served is not known" in found.none[0].matters


def test_a_cdrom_or_a_shared_folder_that_the_process_reads_counts() -> None:
    body = document("writeback", read=10 * GIB, from_disk=9 * GIB)
    assert body.recording is not None
    body.recording.domains[0].figures["disk_read_bytes_per_second"] = figure(1.0, 19 * GIB)
    assert "what the page cache served is not known" in reason(advise(body))
    body = document("writeback", read=10 * GIB, from_disk=10 * GIB)
    assert body.recording is not None
    body.recording.domains[0].shares.append("/srv")
    assert "what the page cache served is not known" in reason(advise(body))


@pytest.mark.parametrize("lacking", ["memory", "below", "await", "queue", "cached"])
@pytest.mark.parametrize("cache", ["none", "writeback"])
def test_a_figure_that_is_not_known_is_never_written(cache: str, lacking: str) -> None:
    body = document(cache, read=10 * GIB, from_disk=0.0)
    recording: Any = body.recording
    host: Any = body.cells[0].host
    figures = recording.domains[0].disks[0].figures
    match lacking:
        case "memory":
            del host["memory_available_bytes"]
        case "cached":
            del host["memory_cached_bytes"]
        case "below":
            for name in [*recording.disks["sda"]][1:]:
                del recording.disks["sda"][name]
        case _:
            del figures["disk_await_ms" if lacking == "await" else "disk_queue_depth"]
    assert "nan" not in advice_text(advise(body), 1000).lower()


def test_what_a_process_moved_is_said_where_nothing_tells_of_requests() -> None:
    body = document(known=False)
    assert body.recording is not None
    body.recording.domains[0].figures["host_write_bytes_per_second"] = figure(1.0, 2 * GIB)
    assert reason(advise(body)).endswith("; its QEMU had 1 GiB read from the host's disks, and wrote 2 GiB")


def test_more_than_the_guest_read_was_read_for_something_else() -> None:
    assert "it was read for something else, too" in reason(advise(document("writeback", from_disk=2.0 * GIB)))


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"vcpu_delay_percent": 54.0, "cpu_percent": 140.0}, "it waited 27 % of the time for a CPU"),
        ({"vcpu_delay_percent": 2.0, "cpu_percent": 198.0}, "its CPUs were 99 % busy"),
        ({"vcpu_delay_percent": 2.0, "cpu_percent": 20.0}, ""),
        ({}, ""),
    ],
)
def test_a_guest_that_waits_for_a_cpu_is_named(figures: dict[str, float], said: str) -> None:
    body = document(queue=0.0)
    assert body.recording is not None
    domain = replace(body.recording.domains[0], vcpus=2)
    domain.figures.update({name: figure(value) for name, value in figures.items()})
    body.recording.domains[0] = domain
    found = [one.matters for one in advise(body).none if one.subject == "db"]
    assert found == ([f"{said}, which no cache mode changes"] if said else [])


def test_ksm_that_takes_cpu_and_saves_nothing() -> None:
    found = advise(document(queue=0.0, ksm=(1.0, 10.0 * MIB, 30.0)))
    assert [(one.subject, one.run) for one in found.advice] == [("KSM", KSM_RUN)]
    assert found.advice[0].why == ("it saved 10 MiB, 0.1 % of the memory, for 30.0 % of a CPU (ksmd)",)


def test_ksm_that_pays_is_said_without_advice() -> None:
    found = advise(document(queue=0.0, ksm=(1.0, 4.0 * GIB, 30.0)))
    assert found.advice == ()
    assert [one.subject for one in found.none if "25.0 %" in one.matters] == ["KSM"]


@pytest.mark.parametrize(
    ("saved", "profit", "advised", "words"),
    [
        (2.0 * GIB, 1.5 * GIB, False, "it saved 2 GiB, 12.5 % of the memory, less 512 MiB for its own structures"),
        # A recording from before pages of zeros were in what is saved: the profit has them.
        (1.0 * MIB, 2.0 * GIB, False, "it saved 2 GiB, 12.5 % of the memory, for"),
        (1.0 * GIB, -1.0 * GIB, True, "it saved 1 GiB, 6.2 % of the memory, less 2 GiB for its own structures"),
        (1.0 * MIB, 1.0 * MIB, True, "it saved 1 MiB, 0.0 % of the memory, for"),
    ],
)
def test_what_ksm_yields_is_what_it_saves_less_what_it_takes_itself(
    saved: float, profit: float, advised: bool, words: str
) -> None:
    found = advise(document(queue=0.0, ksm=(1.0, saved, 30.0, profit)))
    assert [one.subject for one in found.advice] == ["KSM"] * advised
    said = found.advice[0].why[0] if advised else found.none[0].matters + found.none[-1].matters
    assert words in said


def test_another_run_has_no_advice() -> None:
    other = replace(document(), recording=None)
    assert advise(other) == Advised((), ())


def test_each_piece_of_advice_is_printed_with_its_run() -> None:
    text = advice_text(advise(document()), 100)
    assert text.startswith("db vda: cache none may cost this guest time")
    assert f"  measure it: {CACHE_RUN}\n" in text
    nothing = advice_text(advise(document(queue=0.0)), 100)
    assert nothing.startswith("no advice: this recording has too little evidence\n\nno advice for\n  db vda:")
