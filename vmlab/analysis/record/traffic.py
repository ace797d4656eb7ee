"""Where the guests' bytes went: what their disks moved, against what the host's disk moved in the same time."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.analysis.cell_shape import MovedDocument, TrafficDocument
from vmlab.analysis.record.coverage import Span, Window, covered, instances_of
from vmlab.model.quantities import format_bytes
from vmlab.model.sample import Sample

FEW_BYTES = 2.0**20
"""Of fewer bytes no share is given: the host's own small reads and writes are as large."""
PARTED_PERCENT = 10.0
"""From here on the two are said to part. Other work on the disk and the edges of ticks make smaller differences."""
_ROUNDING = 1e-6
"""Rates are kept as 32-bit floats, so that equal bytes of guests and host are not equal to the last."""
_WORDS = {"read": ("read", "served from the host's memory"), "write": ("wrote", "not on the host's disk by then")}


def disk_traffic(samples: Sequence[Sample], window: Window) -> TrafficDocument | None:
    """Reads and writes in a window; None where no guest's disk was watched.

    The host's disk is the one that holds the lab's files. It also moves what the host itself reads and writes, so that
    a share that memory served is the least that it can be.
    """
    read, written = (_moved(samples, direction, window) for direction in ("read", "write"))
    if read.guests_bytes is None and written.guests_bytes is None:
        return None
    return _document(read, written, exact=window.is_exact)


def traffic_over(cells: Sequence[TrafficDocument]) -> TrafficDocument:
    """The bytes of several cells together."""
    read, written = (_sum([getattr(one, way) for one in cells]) for way in ("read", "written"))
    return _document(read, written, exact=all(one.exact for one in cells))


def _sum(moved: Sequence[MovedDocument]) -> MovedDocument:
    asked, host = [one.guests_bytes for one in moved], [one.host_bytes for one in moved]
    return _moved_document(
        None if None in asked else sum(one or 0.0 for one in asked),
        None if None in host else sum(one or 0.0 for one in host),
    )


def _document(read: MovedDocument, written: MovedDocument, *, exact: bool) -> TrafficDocument:
    parts = [text for text in (_words("read", read), _words("write", written)) if text]
    return TrafficDocument(read=read, written=written, sentence="; ".join(parts), exact=exact)


def _moved(samples: Sequence[Sample], direction: str, window: Window) -> MovedDocument:
    own = f"disk_{direction}_bytes_per_second"
    guests = instances_of(samples, f"guest_{own}")
    found = covered(samples, [own, *guests], window)

    def moved(name: str, span: Span) -> float | None:
        """Over all of a span, where the rate is known for most of it."""
        seconds = span[1] - span[0]
        rate = found[name].over(seconds) if name in found else None
        return None if rate is None else float(round(rate * seconds))

    of_guests = [moved(name, window.guests_disks) for name in guests]
    # Without one of its guests the sum would be that of others.
    asked = None if not guests or None in of_guests else sum(one or 0.0 for one in of_guests)
    return _moved_document(asked, moved(own, window.host))


def _moved_document(asked: float | None, moved: float | None) -> MovedDocument:
    return MovedDocument(guests_bytes=asked, host_bytes=moved, memory_percent=_memory_percent(asked, moved))


def _memory_percent(asked: float | None, moved: float | None) -> float | None:
    if asked is None or moved is None or asked < FEW_BYTES:
        return None
    return 100.0 * max(0.0, 1.0 - moved / asked)


def _words(direction: str, moved: MovedDocument) -> str:
    asked, host, percent = moved.guests_bytes, moved.host_bytes, moved.memory_percent
    if asked is None or host is None:
        return ""
    verb, part = _WORDS[direction]
    besides = " (with the host's own)" if host > asked * (1 + _ROUNDING) else ""
    text = f"the guests {verb} {format_bytes(asked)}, the host's disk {verb} {format_bytes(host)}{besides}"
    return f"{text}: {percent:.0f} % {part}" if percent is not None and percent >= PARTED_PERCENT else text
