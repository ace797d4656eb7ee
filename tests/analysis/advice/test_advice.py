"""Advice is given where the figures carry it, with each of them, and else its lack is explained."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vmlab.analysis.advice.advice import CACHE_RUN, KSM_RUN, Advised, advise
from vmlab.analysis.shape import RunDocument
from vmlab.report.advice_text import advice_text

MIB, GIB = 2**20, 2**30


def figure(mean: float, area: float = 0.0) -> dict[str, float]:
    return {"mean": mean, "max": mean, "p95": mean, "area": area}


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
    ksm: tuple[float, float, float] | None = None,
    o_direct: bool | None = None,
    known: bool = True,
) -> RunDocument:
    """A recording of a guest with one disk on a host of 16 GiB."""
    moved = {"disk_read_bytes_per_second": figure(read / seconds, read)}
    moved |= {"disk_write_bytes_per_second": figure(written / seconds, written)}
    moved |= {"disk_await_ms": figure(await_ms), "disk_queue_depth": figure(queue)}
    disk = {"target": "vda", "file": "/db", "format": "raw", "cache": cache, "o_direct": o_direct, "below": "sda"}
    of_host = {"host_read_bytes_per_second": figure(from_disk / seconds, from_disk)}
    domain = {"name": "db", "figures": of_host, "disks": [{**disk, "figures": moved if known else {}}]}
    below = {"disk_util_percent": figure(busy), "disk_await_ms": figure(8.0)}
    below |= {f"disk_{way}_bytes_per_second": figure(1.0, 2 * GIB) for way in ("read", "write")}
    host = {"memory_total_bytes": figure(16 * GIB), "memory_available_bytes": figure(available)}
    host |= {"memory_cached_bytes": figure(5 * GIB)}
    if ksm is not None:
        names = ("ksm_run", "ksm_saved_bytes", "ksmd_cpu_percent")
        host |= {name: figure(value) for name, value in zip(names, ksm, strict=True)}
    recording = {"seconds": seconds, "domains": [domain], "disks": {"sda": below}}
    body: dict[str, Any] = {"recording": recording, "cells": [{"host": host}]}
    return body  # type: ignore[return-value]


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


def test_ksm_that_takes_cpu_and_saves_nothing() -> None:
    found = advise(document(queue=0.0, ksm=(1.0, 10.0 * MIB, 30.0)))
    assert [(one.subject, one.run) for one in found.advice] == [("KSM", KSM_RUN)]
    assert found.advice[0].why == ("it saved 10 MiB, 0.1 % of the memory, for 30.0 % of a CPU (ksmd)",)


def test_ksm_that_pays_is_said_without_advice() -> None:
    found = advise(document(queue=0.0, ksm=(1.0, 4.0 * GIB, 30.0)))
    assert found.advice == ()
    assert [one.subject for one in found.none if "25.0 %" in one.matters] == ["KSM"]


def test_another_run_has_no_advice() -> None:
    other = document()
    other["recording"] = None
    assert advise(other) == Advised((), ())


def test_each_piece_of_advice_is_printed_with_its_run() -> None:
    text = advice_text(advise(document()), 100)
    assert text.startswith("db vda: cache none may cost this guest time")
    assert f"  measure it: {CACHE_RUN}\n" in text
    nothing = advice_text(advise(document(queue=0.0)), 100)
    assert nothing.startswith("no advice: the figures of this recording carry none\n\nno advice for\n  db vda:")
