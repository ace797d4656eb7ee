"""Runs that wait for their turn on this host, in words."""

from __future__ import annotations

from vmlab.lab.process.measuring_runs import HostQueue
from vmlab.model.quantities import about_seconds
from vmlab.model.visible import visible_line


def begins_words(seconds: float | None) -> str:
    """When a run begins that waits, as an estimate."""
    if seconds is None:
        return "begins at an unknown time"
    return f"begins in {about_seconds(seconds)}" if seconds else "begins as soon as what is before it has ended"


def queue_lines(queue: HostQueue) -> list[str]:
    """A line for each run that waits, the next one first."""
    waiting = enumerate(queue.waiting, 1)
    return [visible_line(f"waiting: {place}. {one}, {begins_words(queue.begins(place))}") for place, one in waiting]


def queue_title(queue: HostQueue) -> str:
    """How many wait, for a list's title; empty where none does."""
    count = len(queue.waiting)
    if not count:
        return ""
    return (
        f"{count} {'waits for its' if count == 1 else 'wait for their'} turn, the first {begins_words(queue.begins(1))}"
    )
