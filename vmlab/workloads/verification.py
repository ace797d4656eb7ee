"""Checks of a client that ended, and of the text that a tool printed, for all workloads."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from vmlab.model.errors import WorkloadError
from vmlab.workloads.contract import Finished


def demand_success(finished: Finished, tool: str) -> None:
    """Raises WorkloadError with the last line that the tool printed when its status is not 0."""
    if finished.status == 0:
        return
    raise WorkloadError(f"{tool} exited with {finished.status}{last_words(finished)}")


def last_words(finished: Finished) -> str:
    """The last line that a client printed for people, behind a colon; that of its account only where there is none."""
    lines = [line for line in (finished.stderr.strip() or finished.stdout.strip()).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("{")] or lines
    return f": {said[-1].strip()[:300]}" if said else ""


def demand_equal(what: str, found: float, asked: float) -> None:
    """Raises WorkloadError when a count is not what was asked for."""
    if found != asked:
        raise WorkloadError(f"{what}: {found:.0f}, but {asked:.0f} were asked for")


def demand_within(what: str, seconds: float, client_seconds: float) -> None:
    """Raises WorkloadError where a tool claims more time than its client ran, by the clock of the client's place.

    A clock that went wrong meanwhile makes rates that are too low or too high, and no count shows it.
    """
    if seconds > client_seconds:
        raise WorkloadError(f"{what} took {seconds:.3f} s together, but the client ran for {client_seconds:.3f} s")


UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What reading the output of a hostile guest may raise: a number beyond all bounds, say, or JSON a thousand deep."""


@contextlib.contextmanager
def read_from_a_guest(what: str) -> Iterator[None]:
    """A fault of what a guest printed is one of its workload, not of the run. Raises WorkloadError."""
    try:
        yield
    except UNREADABLE as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise WorkloadError(f"what {what} printed cannot be read: {why[:200]}") from error


def demand_one_report(text: str, *marks: str, tool: str) -> None:
    """Raises WorkloadError where a line that each report has once, by one of the patterns `marks`, stands twice.

    Every parser of a tool's text keeps this rule: it reads exactly one report, as of two nobody knows which is meant.
    """
    count = max(len(re.findall(mark, text, re.MULTILINE)) for mark in marks)
    if count > 1:
        raise WorkloadError(f"{tool} printed {count} reports, not one")


def labelled(text: str, label: str, pattern: str, tool: str) -> re.Match[str]:
    """The part of the line that starts with ``label:`` behind the colon, matched as a whole by `pattern`.

    Raises WorkloadError: with the line where it does not match, where two lines do, and with the last line of `text`
    where there is none.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    said = [line for line in lines if line.startswith(f"{label}:")]
    found = [match for line in said if (match := re.fullmatch(pattern, line[len(label) + 1 :].strip()))]
    if len(found) == 1:
        return found[0]
    if found:
        raise WorkloadError(f"{tool} printed {label!r} {len(found)} times, not once")
    if said:
        raise WorkloadError(f"{tool} printed a line that cannot be read: {said[0][:200]!r}")
    last = lines[-1][:200] if lines else ""
    raise WorkloadError(f"{tool} printed no {label!r}; its last line is {last!r}")
