"""Quantities with units, read and written; only with the standard library, so that small programs start quickly."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

_SIZES: dict[str, int] = {
    "B": 1,
    **{f"{p}B": 1000**n for n, p in enumerate(("k", "M", "G", "T", "P", "E"), start=1)},
    **{f"{p}iB": 1024**n for n, p in enumerate(("K", "M", "G", "T", "P", "E"), start=1)},
}
_BIT_RATES: dict[str, int] = {f"{prefix}bit/s": 1000**n for n, prefix in enumerate(("", "k", "M", "G"))}
_DURATIONS: dict[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_QUANTITY = r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z]+(?:/s)?)"
"""Compiled when a quantity is first read: the console only writes them until its first picture is there."""
_PACES: dict[str, float] = {"s": 1.0, "min": 60.0}
LARGEST_BYTES = 2**60
_LONGEST_SECONDS = 30 * 86400.0
_HIGHEST_RATE = 10**12
_HIGHEST_PACE = 1e6


def _parse(text: object, units: dict[str, int] | dict[str, float], example: str) -> float:
    match = re.fullmatch(_QUANTITY, text.strip(), re.ASCII) if isinstance(text, str) and len(text) < 40 else None
    if match is None:
        comma = isinstance(text, str) and re.search(r"[0-9],[0-9]", text)
        raise ValueError(f"needs a number{' with a point' if comma else ''} and a unit, such as {example}")
    if match["unit"] not in units:
        raise ValueError(f"{_unknown(match['unit'], units)}; use one of {', '.join(units)}, such as {example}")
    return float(match["number"]) * units[match["unit"]]


def _unknown(unit: str, units: Iterable[str]) -> str:
    """Says that there is no such unit, and which is like it: in other letters, or without its B."""
    like = [one for one in units if one.lower() in (unit.lower(), f"{unit}b".lower(), f"{unit}ib".lower())]
    return f"unknown unit {unit!r}" + (f" (did you mean {' or '.join(like)}?)" if like else "")


def parse_bytes(text: object) -> int:
    """``"670 MB"`` to bytes. Decimal units are powers of 1000, binary ones of 1024.

    Raises ValueError, with what would be right, for anything else, including a plain number.
    """
    if isinstance(text, int) and not isinstance(text, bool) and text == 0:
        return 0
    value = _parse(text, _SIZES, "512 MiB")
    if value > LARGEST_BYTES:
        raise ValueError("is larger than any disk; at most 1 EiB")
    if value != int(value):
        raise ValueError("is not a whole number of bytes")
    return int(value)


def whole(text: str | None) -> int:
    """A number without a sign, of at most 18 digits, as other programs write it; 0 for anything else."""
    found = (text or "").strip()
    return int(found) if found.isascii() and found.isdigit() and len(found) <= 18 else 0


def parse_seconds(text: object) -> float:
    """``"1.5 s"`` to seconds. Raises ValueError, with what would be right, for anything else."""
    if isinstance(text, int) and not isinstance(text, bool) and text == 0:
        return 0.0
    value = _parse(text, _DURATIONS, "30 s")
    if value > _LONGEST_SECONDS:
        raise ValueError("is longer than 30 days")
    return value


def parse_bit_rate(text: object) -> int:
    """``"1 Gbit/s"`` to bits in a second; units are powers of 1000. Raises ValueError, with what would be right."""
    value = _parse(text, _BIT_RATES, "100 Mbit/s")
    if not 1 <= value <= _HIGHEST_RATE:
        raise ValueError("is out of bounds; at least 1 bit/s and at most 1000 Gbit/s")
    if value != int(value):
        raise ValueError("is not a whole number of bits in a second")
    return int(value)


def format_bit_rate(rate: int) -> str:
    """Bits in a second for people, as scenarios have them: ``30 Mbit/s``."""
    unit, size = max((one for one in _BIT_RATES.items() if one[1] <= rate), key=lambda one: one[1])
    return f"{rate / size:.4g} {unit}"


def parse_pace(text: object) -> float:
    """``"5/s"`` or ``"30/min"`` to operations in a second. Raises ValueError, with what would be right."""
    words = text.strip() if isinstance(text, str) and len(text) < 40 else ""
    match = re.fullmatch(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*/\s*(?P<unit>s|min)", words, re.ASCII)
    if match is None:
        raise ValueError("needs a number in a second or a minute, such as 5/s or 30/min")
    value = float(match["number"]) / _PACES[match["unit"]]
    if not 0 < value <= _HIGHEST_PACE:
        raise ValueError("is out of bounds; more than 0 and at most 1000000/s")
    return value


def parse_percent(text: object) -> float:
    """``"5 %"`` to 5.0. Raises ValueError, with what would be right, for anything else."""
    words = text.strip() if isinstance(text, str) and len(text) < 40 else ""
    match = re.fullmatch(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*%", words, re.ASCII)
    if match is None:
        raise ValueError("needs a number of percent, such as 25 %")
    return float(match["number"])


def format_bytes(count: float) -> str:
    """Bytes for people, in binary units with three figures: ``1.20 GiB``; ``- B`` for NaN and infinity."""
    size = float(count)
    if not math.isfinite(size):
        return "- B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        # 1,000 to 1,023 of a unit have four figures, and are written in the next one.
        if abs(size) < (1024 if unit == "B" else 999.5):
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} EiB"


def exact_bytes(count: int) -> str:
    """Bytes as a scenario has them, without rounding: ``1536 MiB``."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count and not count % (1 << power):
            return f"{count >> power} {unit}"
    return f"{count} B"


def about_seconds(seconds: float) -> str:
    """An estimate for people, with no more digits than it is accurate to: ``about 40 s``, ``about 4 min``, ``about 2.5
    h``.
    """
    if not math.isfinite(seconds):
        return "an unknown time"
    if seconds < 10:
        return f"about {max(1, round(seconds))} s"
    if seconds < 55:
        return f"about {10 * round(seconds / 10)} s"
    if seconds < 90 * 60:
        return f"about {max(1, round(seconds / 60))} min"
    return f"about {round(seconds / 1800) / 2:g} h"


def format_seconds(seconds: float) -> str:
    """Seconds for people: ``8.4 s``, ``3 min 20 s``, ``2 h 05 min``; ``- s`` for NaN and infinity."""
    if not math.isfinite(seconds):
        return "- s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Written(NamedTuple):
    """How figures of a unit are written: each is multiplied by `factor`, and has `unit` behind it or in its heading."""

    unit: str
    factor: float = 1.0


_WRITTEN = {"B": Written("MiB", 2**-20), "B/s": Written("MB/s", 1e-6), "1": Written("")}
_TIMES = ((1.0, Written("s")), (1e-3, Written("ms", 1e3)), (0.0, Written("µs", 1e6)))
"""Times, each from so many seconds on."""


def written(unit: str, sizes: Iterable[float | None] = ()) -> Written:
    """How figures in `unit` are written together, which have these `sizes`; without any, whatever their size.

    Times in seconds are written in s, ms or µs, by the geometric middle of the smallest and the largest.
    """
    if unit != "s":
        return _WRITTEN.get(unit, Written(unit))
    known = [abs(size) for size in sizes if size and math.isfinite(size)]
    middle = math.sqrt(min(known)) * math.sqrt(max(known)) if known else 1.0
    return next(form for least, form in _TIMES if middle >= least)
