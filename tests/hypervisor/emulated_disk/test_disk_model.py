"""The emulated disk's arithmetic, against figures by hand and against its profiles' own numbers."""

import math
import random
import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import get_args

import pytest

from vmlab.hypervisor.emulated_disk.disk_model import DiskModel, random_rate, stream_seconds
from vmlab.model.scenarios.disk_profiles import DISK_PROFILES, HDD_7200, RAID10_4, DiskName

SIZE = 2**34
STILL = replace(HDD_7200, rpm=60_000_000, least_seek=0.0, average_seek=0.0)
"""A disk without any seek or turn to speak of: one turn takes a microsecond."""


def ended(model: DiskModel) -> dict[int, float]:
    """Run all that was asked for to its end; when each tag ended."""
    ends: dict[int, float] = {}
    while (due := model.due()) is not None:
        ends |= dict.fromkeys(model.finished(due), due)
    return ends


def test_a_read_costs_seek_turn_and_transfer() -> None:
    model = DiskModel(HDD_7200, SIZE, seed=7)
    model.submit(5.0, 1, SIZE // 4, 4096, write=False)
    turned = 60 / 7200 * random.Random(7).random()
    sought = 0.001 + (0.0082 - 0.001) * 15 / 8 * math.sqrt(1 / 4)
    assert ended(model) == {1: pytest.approx(5.0 + sought + turned + 4096 / 140e6)}


def test_the_next_byte_costs_its_transfer_alone() -> None:
    model = DiskModel(HDD_7200, SIZE, seed=7)
    for tag in range(4):
        model.submit(0.0, tag, tag * 2**20, 2**20, write=True)
    ends = ended(model)
    # It starts where the head is, at the first byte.
    assert [ends[tag] for tag in range(4)] == pytest.approx([(tag + 1) * 2**20 / 140e6 for tag in range(4)])


def test_a_read_on_that_comes_late_finds_the_buffer_filled_but_not_more_than_the_buffer() -> None:
    model = DiskModel(HDD_7200, SIZE, seed=7)
    block = 2**18
    model.submit(0.0, 1, 0, block, write=False)
    first = ended(model)[1]
    late = first + block / 140e6 / 2
    model.submit(late, 2, block, block, write=False)
    assert ended(model)[2] == pytest.approx(2 * block / 140e6)
    # After an hour one buffer is there, and what goes beyond it has to be read.
    model.submit(3600.0, 3, 2 * block, 2**20 + block, write=False)
    assert ended(model)[3] - 3600.0 == pytest.approx(block / 140e6, abs=1e-6)


def test_a_write_that_comes_late_is_late() -> None:
    model = DiskModel(HDD_7200, SIZE, seed=7)
    model.submit(0.0, 1, 0, 2**18, write=True)
    ended(model)
    model.submit(1.0, 2, 2**18, 2**18, write=True)
    assert ended(model)[2] == pytest.approx(1.0 + 2**18 / 140e6)


def test_the_shortest_seek_goes_first() -> None:
    model = DiskModel(HDD_7200, SIZE, seed=7)
    model.submit(0.0, 0, 0, 4096, write=False)
    for tag, place in ((1, SIZE // 2), (2, 2**20), (3, SIZE // 4)):
        model.submit(0.0, tag, place, 4096, write=False)
    assert sorted(ends := ended(model), key=lambda tag: ends[tag]) == [0, 2, 3, 1]


def test_none_waits_for_ever_behind_a_stream() -> None:
    model = DiskModel(HDD_7200, SIZE, seed=7)
    model.submit(0.0, -1, 0, 2**17, write=False)
    model.submit(0.0, -2, SIZE // 2, 4096, write=False)
    stream, done, now = 0, [], 0.0
    while -2 not in done:
        stream += 1
        model.submit(now, stream, stream * 2**17, 2**17, write=False)
        due = model.due()
        assert due is not None
        now = due
        done += model.finished(now)
        assert stream < 1000
    assert stream == pytest.approx(64, abs=3)


def test_the_same_seed_gives_the_same_times_and_another_one_does_not() -> None:
    def times(seed: int) -> dict[int, float]:
        model = DiskModel(HDD_7200, SIZE, seed)
        for tag, place in enumerate((2**30, 2**33, 2**25)):
            model.submit(0.0, tag, place, 4096, write=tag == 1)
        return ended(model)

    assert times(1) == times(1) != times(2)


def test_an_array_streams_from_both_pairs_at_once() -> None:
    model = DiskModel(RAID10_4, SIZE, seed=7)
    model.submit(0.0, 1, 0, 2**23, write=False)
    assert ended(model)[1] == pytest.approx(2**23 / 280e6) == pytest.approx(stream_seconds(RAID10_4, 2**23))


def test_a_stream_stays_with_one_head_of_each_pair() -> None:
    model = DiskModel(RAID10_4, SIZE, seed=7)
    for tag in range(128):
        model.submit(0.0, tag, tag * RAID10_4.chunk, RAID10_4.chunk, write=False)
    assert max(ended(model).values()) == pytest.approx(128 * RAID10_4.chunk / 280e6)


def test_a_write_to_an_array_waits_for_both_mirrors() -> None:
    """The later one of two turns: two thirds of a turn on average, against a half for one disk."""
    turn = 60 / 7200
    profile = replace(RAID10_4, least_seek=0.0, average_seek=0.0, rate=1e15)

    def mean_end(*, write: bool) -> float:
        ends = []
        for seed in range(2000):
            model = DiskModel(profile, SIZE, seed)
            model.submit(0.0, 1, 2**30, 4096, write=write)
            ends.append(ended(model)[1])
        return fmean(ends)

    assert mean_end(write=True) == pytest.approx(turn * 2 / 3, rel=0.05)
    assert mean_end(write=False) == pytest.approx(turn / 2, rel=0.05)


def test_an_array_reads_from_the_nearer_mirror() -> None:
    model = DiskModel(replace(RAID10_4, rpm=60_000_000), SIZE, seed=7)
    chunk = RAID10_4.chunk
    # Both are in the first pair: one far, one at the start, so that its two heads part.
    model.submit(0.0, 1, 2**33, 4096, write=False)
    model.submit(0.0, 2, 2 * chunk, 4096, write=False)
    now = max(ended(model).values())
    model.submit(now, 3, 2**33 + 2 * chunk, 4096, write=False)
    near = 0.001 + 0.0072 * 15 / 8 * math.sqrt((chunk - 4096) / (SIZE / 2))
    assert ended(model)[3] - now == pytest.approx(near + 4096 / 140e6, abs=2e-6)


def test_a_read_at_random_takes_what_the_specification_says() -> None:
    """One over average seek plus half a turn plus the transfer, within the noise of 4,000 reads."""
    mean = 0.0082 + 60 / 7200 / 2 + 4096 / 140e6
    assert HDD_7200.access + 4096 / 140e6 == pytest.approx(mean)
    assert 1 / random_rate(HDD_7200, SIZE, 1, seed=3) == pytest.approx(mean, rel=0.02)


@pytest.mark.parametrize("name", sorted(DISK_PROFILES))
def test_a_deeper_queue_is_faster_and_does_not_depend_on_the_size(name: str) -> None:
    rates = [random_rate(DISK_PROFILES[name], SIZE, depth, seed=3, requests=1500) for depth in (1, 4, 16)]
    assert rates == sorted(rates)
    assert rates[2] > 1.4 * rates[0]
    smaller = random_rate(DISK_PROFILES[name], 2**30, 16, seed=3, requests=1500)
    assert smaller == pytest.approx(rates[2], rel=0.08)


def test_without_seek_and_turn_it_is_the_transfer() -> None:
    assert random_rate(STILL, SIZE, 8, seed=3, requests=500) == pytest.approx(140e6 / 4096, rel=0.05)


def test_the_page_has_the_models_own_figures() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/scenario-language.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| [^|]+ \| (\d+) and (\d+) a second \| (\d+) MB/s \|$", page, re.MULTILINE)
    assert {name for name, *_ in rows} == {*DISK_PROFILES}
    for name, alone, deep, stream in rows:
        profile = DISK_PROFILES[name]
        rates = [random_rate(profile, 2**35, depth, seed=1) for depth in (1, 16)]
        assert [int(alone), int(deep)] == pytest.approx(rates, rel=0.02)
        assert int(stream) * 1e6 == pytest.approx(2**30 / stream_seconds(profile, 2**30))


def test_a_scenario_can_name_all_of_them() -> None:
    assert {*get_args(DiskName)} == {*DISK_PROFILES}
