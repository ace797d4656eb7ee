"""Percentiles from counts in bins, by hand and against the requests themselves."""

import json
import math
import random
import subprocess

import pytest

from vmlab.telemetry.latency_bins import BINS, LatencyBins, bins_of, packed


def counted(bins: LatencyBins, latencies: list[int]) -> list[int]:
    """As QEMU counts: a boundary belongs to the bin above it."""
    counts = [0] * (len(bins.boundaries) + 1)
    for one in latencies:
        counts[sum(boundary <= one for boundary in bins.boundaries)] += 1
    return counts


def test_boundaries_are_whole_and_grow_from_10_us_to_100_s() -> None:
    assert (BINS.boundaries[0], BINS.boundaries[10], BINS.boundaries[-1]) == (10_000, 100_000, 100 * 10**9)
    assert sorted(set(BINS.boundaries)) == BINS.boundaries
    assert (BINS.least_ms, BINS.most_ms) == (0.01, 100_000.0)


def test_the_error_is_half_a_bin_on_a_logarithmic_scale() -> None:
    assert BINS.error_percent == pytest.approx((10 ** (1 / 20) - 1) * 100, abs=0.01)
    assert LatencyBins(1000, 1, 3).error_percent == pytest.approx((math.sqrt(10) - 1) * 100)


def test_a_percentile_by_hand() -> None:
    bins = LatencyBins(1_000_000, 1, 3)
    # 1 below 1 ms, 3 from 1 to 10 ms, 5 from 10 to 100 ms, 1 beyond.
    counts = [1, 3, 5, 1]
    assert bins.percentile_ms(counts, 10) == 1.0
    assert bins.percentile_ms(counts, 40) == pytest.approx(math.sqrt(1 * 10))
    assert bins.percentile_ms(counts, 50) == pytest.approx(math.sqrt(10 * 100))
    assert bins.percentile_ms(counts, 99) == 100.0
    assert bins.percentile_ms([0, 0, 0, 0], 99) is None


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 99.9])
def test_percentiles_are_within_the_error_of_those_of_the_requests(percent: float) -> None:
    draw = random.Random(7)
    latencies = sorted(round(draw.lognormvariate(math.log(3e6), 1.5)) for _ in range(5000))
    latencies = [one for one in latencies if BINS.boundaries[0] <= one < BINS.boundaries[-1]]
    true = latencies[math.ceil(len(latencies) * percent / 100) - 1] / 1e6
    found = BINS.percentile_ms(counted(BINS, latencies), percent)
    assert found is not None
    assert abs(found / true - 1) * 100 <= BINS.error_percent


def test_packed_counts_are_unpacked_and_added() -> None:
    counts = [0] * 72
    counts[3], counts[5] = 7, 2
    assert packed(counts) == [3, 7, 0, 2]
    assert packed([0] * 72) == []
    total = BINS.total([packed(counts), [5, 1]])
    assert (total[3], total[4], total[5], sum(total), len(total)) == (7, 0, 3, 10, 72)


def test_bins_that_there_are_not_are_left_out() -> None:
    assert sum(BINS.total([[71, 1, 1], [200, 4]])) == 1


def test_a_scale_gives_the_same_bins_again() -> None:
    assert bins_of(*BINS.scale).boundaries == BINS.boundaries


def test_qemu_takes_the_boundaries() -> None:
    """QEMU wants whole numbers in order, each above 0 (`block_latency_histogram_set` in block/accounting.c)."""
    argv = ["qemu-system-x86_64", "-machine", "none", "-display", "none", "-qmp", "stdio"]
    ask = [
        {"execute": "qmp_capabilities"},
        {"execute": "block-latency-histogram-set", "arguments": {"id": "no-disk", "boundaries": BINS.boundaries}},
        {"execute": "quit"},
    ]
    try:
        said = subprocess.run(argv, input="\n".join(map(json.dumps, ask)), capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("QEMU is not installed")
    assert "Device 'no-disk' not found" in said.stdout
