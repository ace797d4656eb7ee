"""Numbers as publications print them: ``.996``, ``13.0k``, ``6,925``, ``~670``, ``5+`` or ``115m25s``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CLOCK = re.compile(r"(?P<minutes>\d+)m(?P<seconds>\d\d)s")
_FRACTION = re.compile(r"(?P<top>\d+)/(?P<bottom>[1-9]\d*)")
_NUMBER = re.compile(r"~?(?P<whole>\d[\d,]*|)(?:\.(?P<part>\d+))?(?P<thousands>k?)\+?")
_MEBIBYTE = 1024.0**2
_UNITS: dict[str, tuple[str, float]] = {
    "seconds": ("s", 1.0),
    "m s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "min": ("s", 60.0),
    "IOPS": ("1/s", 1.0),
    "lps": ("1/s", 1.0),
    "MWIPS": ("1/s", 1e6),
    "%": ("1", 0.01),
    "MB": ("B", 1e6),
    "GB": ("B", 1e9),
    "MiB": ("B", _MEBIBYTE),
    "GiB": ("B", 1024.0**3),
    "KBps": ("B/s", 1024.0),
    "MB/s": ("B/s", 1e6),
    "KiB/s": ("B/s", 1024.0),
    "MiB/s": ("B/s", _MEBIBYTE),
    "GiB/s": ("B/s", 1024.0**3),
    # sysbench means 1024 by it: its 150 GB are 153,600 MB.
    "MB/sec": ("B/s", _MEBIBYTE),
    "Mbps": ("B/s", 1e6 / 8),
    "Gbps": ("B/s", 1e9 / 8),
}
"""Units that publications print, each as a number of the unit in which the lab measures."""


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A number, and half a unit of its last digit: it stands for every value that rounds to it."""

    value: float
    half: float


def printed_number(text: str) -> PrintedNumber:
    """What is printed, as a number; a dot is the decimal point, a comma separates thousands.

    Raises ValueError for a text that is no number.
    """
    if (clock := _CLOCK.fullmatch(text)) is not None:
        return PrintedNumber(60.0 * int(clock["minutes"]) + int(clock["seconds"]), 0.5)
    if (fraction := _FRACTION.fullmatch(text)) is not None:
        return PrintedNumber(int(fraction["top"]) / int(fraction["bottom"]), 0.0)
    match = _NUMBER.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise ValueError("is no number as publications print them, such as '85.3440', '.996', '13.0k' or '115m25s'")
    factor = 1000.0 if match["thousands"] else 1.0
    digits = match["part"] or ""
    value = float(f"{match['whole'].replace(',', '') or '0'}.{digits or '0'}")
    return PrintedNumber(value * factor, 0.5 * 10.0 ** -len(digits) * factor)


def unit_factor(printed: str, measured: str) -> float | None:
    """What a figure in the unit `printed` is multiplied by to be in `measured`; None for units of different things."""
    if printed == measured:
        return 1.0
    unit, factor = _UNITS.get(printed, ("", 0.0))
    return factor if unit == measured else None
