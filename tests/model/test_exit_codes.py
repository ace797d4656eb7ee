"""Exit codes are a promise, and what a signal means is the same for all that hear one."""

import signal

import pytest

from vmlab.model.errors import MOST_LETTERS, ExitCode, WorkloadError


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_a_signal_that_asks_to_stop_has_its_code(number: int, code: int) -> None:
    assert ExitCode.of_signal(number) == code


def test_an_error_has_so_many_letters_as_fit_a_record() -> None:
    assert str(WorkloadError("a" * MOST_LETTERS)) == "a" * MOST_LETTERS
    assert str(WorkloadError("a" * 5 * 2**20)) == "a" * (MOST_LETTERS - 1) + "…"
