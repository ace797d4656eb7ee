"""Lines of the kernel's trace, counted by disk; the first ones were recorded on Linux 6.18."""

from __future__ import annotations

import random

import pytest

from vmlab.analysis.advice.traced_load import MOST_RANDOM
from vmlab.telemetry.domains.block_events import BlockEvents, Extent, Placed

RECORDED = b"""\
              rm-705     [001] ..... 72612.086885: block_bio_queue: 254,0 DS 335891488 + 32 [rm]
              dd-1995    [001] ..s1. 72612.087137: block_rq_complete: 254,0 DS () 335891488 + 32 be,0,6 [0]
              dd-1995    [001] ..... 72612.088355: block_bio_queue: 254,0 RS 182029888 + 16 [dd]
              dd-1995    [001] ..... 72612.088362: block_rq_issue: 254,0 RS 8192 () 182029888 + 16 be,0,4 [dd]
              rm-705     [001] ..s.. 72612.088482: block_rq_complete: 254,0 RS () 182029888 + 16 be,0,4 [0]
              dd-1995    [001] ..... 72612.088543: block_bio_queue: 254,0 RS 182029904 + 16 [dd]
          python-1977    [001] ..s.. 72612.088660: block_rq_complete: 254,0 RS () 182029904 + 16 be,0,4 [0]
              dd-1996    [001] ..... 72612.093912: block_bio_queue: 254,0 WS 182031488 + 16 [dd]
              rm-705     [001] ..s.. 72612.094014: block_rq_complete: 254,0 WS () 182031488 + 16 be,0,4 [0]
"""
FILE = Placed("db/vda", ((254, 0),), (Extent(182029888 * 512, 0, 2**20),))


def counted(text: bytes, *disks: Placed) -> dict[str, tuple[float, ...]]:
    events = BlockEvents()
    events.place(disks)
    events.feed(text.splitlines())
    return {f"{name} {way}": tuple(round(v, 6) for v in one.values()) for (name, way), one in events.counts().items()}


def event(at: float, what: str, device: str, way: str, sector: int, length: int, rest: str = "[qemu]") -> bytes:
    return f"  qemu-71  [001] ..... {at:.6f}: block_{what}: {device} {way} {sector} + {length} {rest}\n".encode()


def test_requests_of_a_file_are_counted_with_their_order_bytes_and_time() -> None:
    assert counted(RECORDED, FILE) == {
        "db/vda R": (2, 1, 16384, 0.000244),
        "db/vda W": (1, 0, 8192, 0.000102),
    }


def test_what_lies_elsewhere_is_none_of_the_disk() -> None:
    assert counted(RECORDED, FILE._replace(devices=((8, 0),))) == {}
    assert counted(RECORDED, FILE._replace(extents=(Extent(0, 0, 182029888 * 512),))) == {}
    short = FILE._replace(extents=(Extent(182029888 * 512, 0, 8192),))
    assert counted(RECORDED, short)["db/vda R"][:2] == (1, 0)


def test_a_sequence_goes_on_in_another_piece_of_the_file() -> None:
    """The first half of the file lies behind the second."""
    pieces = (Extent(2**20, 0, 4096), Extent(0, 4096, 4096))
    text = event(1, "bio_queue", "8,0", "R", 2048, 8) + event(2, "bio_queue", "8,0", "R", 0, 8)
    assert counted(text, Placed("d", ((8, 0),), pieces))["d R"] == (2, 1, 8192, 0)
    assert counted(text, Placed("d", ((8, 0),), (Extent(0, 0, 2**21),)))["d R"][:2] == (2, 0)


def test_sequences_beside_each_other_are_sequences() -> None:
    places = [stream * 10_000 + 8 * step for step in range(20) for stream in range(8)]
    text = b"".join(event(at, "bio_queue", "8,0", "W", place, 8) for at, place in enumerate(places))
    assert counted(text, Placed("d", ((8, 0),), (Extent(0, 0, 2**40),)))["d W"][:2] == (160, 152)


@pytest.mark.parametrize("seed", range(20))
def test_random_requests_to_a_small_disk_are_no_sequence(seed: int) -> None:
    """As fio's, which passes over 256 blocks and touches each once: many lie behind one that was written before."""
    places = [128 * place for place in random.Random(seed).sample(range(256), 256)]
    text = b"".join(event(at, "bio_queue", "8,0", "W", place, 128) for at, place in enumerate(places))
    requests, sequential, *_ = counted(text, Placed("d", ((8, 0),), (Extent(0, 0, 2**40),)))["d W"]
    assert sequential < MOST_RANDOM * requests


def test_reads_and_writes_are_apart() -> None:
    text = event(1, "bio_queue", "8,0", "RA", 0, 8) + event(2, "bio_queue", "8,0", "FWFS", 8, 8)
    found = counted(text, Placed("d", ((8, 0),), (Extent(0, 0, 2**40),)))
    assert {name: one[:2] for name, one in found.items()} == {"d R": (1, 0), "d W": (1, 0)}


@pytest.mark.parametrize("rest", ["none,0,0 [0]", "[0]"])
def test_requests_that_were_merged_end_together(rest: str) -> None:
    """Kernels before 6.9 do not print the priority."""
    begun = b"".join(event(1 + at, "bio_queue", "8,0", "W", 8 * at, 8) for at in range(3))
    text = begun + event(5, "rq_complete", "8,0", "W ()", 8, 16, rest)
    assert counted(text, Placed("d", ((8, 0),), (Extent(0, 0, 2**40),)))["d W"] == (3, 2, 3 * 4096, 3 + 2)


def test_a_volume_ends_its_requests_itself() -> None:
    text = event(1, "bio_queue", "253,2", "R", 80, 8) + event(1.5, "bio_complete", "253,2", "R", 88, 0, "[0]")
    assert counted(text, Placed("d", ((253, 2),), (Extent(0, 0, 2**40),)))["d R"] == (1, 0, 4096, 0.5)


def test_a_partition_begins_on_its_disk_which_ends_its_requests() -> None:
    disk = Placed("d", ((8, 1), (8, 0)), (Extent(2048 * 512, 0, 2**20),))
    text = event(1, "bio_queue", "8,1", "R", 2048, 8) + event(1.25, "rq_complete", "8,0", "R ()", 2048, 8, "[0]")
    assert counted(text, disk)["d R"] == (1, 0, 4096, 0.25)


def test_what_the_kernel_dropped_is_said_and_joins_nothing() -> None:
    events = BlockEvents()
    events.place([Placed("d", ((8, 0),), (Extent(0, 0, 2**40),))])
    lines = [
        event(1, "bio_queue", "8,0", "R", 0, 8),
        b"CPU:1 [LOST 40 EVENTS]",
        event(3, "bio_queue", "8,0", "R", 8, 8),
    ]
    events.feed(lines)
    assert events.lost == 1 and events.counts()["d", "R"].values()[:2] == (2, 0)
    events.feed([b"", b"CPU:", b"nonsense: block_bio_queue: 8,0 R x + 8 [dd]"])
    assert events.counts()["d", "R"].requests == 2
