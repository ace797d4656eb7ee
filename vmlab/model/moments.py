"""Moments as documents have them."""

from __future__ import annotations

from datetime import UTC, datetime


def time_of_day(wall: float | None) -> str | None:
    """Seconds since the epoch as the documents have them: ISO 8601 in UTC, to the millisecond; None stays None."""
    return None if wall is None else datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")
