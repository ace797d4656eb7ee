"""Hostile files: whatever is read of them ends in the program's own errors, in time, and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutations import mutated
from tests.fuzz.targets import CRASHERS, TARGETS, harm, seeds

pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
FEW, MANY = 25, 1000
_BOUNDS = settings(suppress_health_check=list(HealthCheck))


def _try_all(target: str, examples: int, *, random: bool = False) -> None:
    @settings(_BOUNDS, max_examples=examples, derandomize=not random)
    @given(mutated(seeds(target)))
    def tried(data: bytes) -> None:
        harm(target, data)

    tried()


@pytest.mark.parametrize("target", TARGETS)
def test_files_that_are_nearly_in_order(target: str) -> None:
    _try_all(target, FEW)


@pytest.mark.nightly
@pytest.mark.parametrize("target", TARGETS)
def test_many_files_that_are_nearly_in_order(target: str) -> None:
    _try_all(target, MANY, random=True)


@pytest.mark.nightly
@pytest.mark.parametrize("target", TARGETS)
def test_files_of_noise(target: str) -> None:
    @settings(_BOUNDS, max_examples=MANY // 4)
    @given(st.binary(max_size=2000))
    def tried(data: bytes) -> None:
        harm(target, data)

    tried()


@pytest.mark.parametrize("target", TARGETS)
def test_each_target_takes_what_is_in_order(target: str) -> None:
    for seed in seeds(target):
        harm(target, seed)
    assert seeds(target)


@pytest.mark.parametrize("file", sorted(CRASHERS.glob("*/*")), ids=lambda file: f"{file.parent.name}-{file.name}")
def test_what_once_broke_it_is_an_error_of_the_program(file: Path) -> None:
    harm(file.parent.name, file.read_bytes())
