"""The units of metrics, and those that a command prints beside a number.

Many tools change the unit with the size: ``998 MB/s``, ``1.2 GB/s``, ``12.3k``, ``lat (msec): avg=12``. So a
unit behind the number, or in brackets before it, has to be the metric's, whether the output or the pattern says it. It
may be one that no metric can have: ``KB/s``, ``kops/s``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from vmlab.model.quantities import parse_bit_rate, parse_bytes, parse_seconds
from vmlab.workloads.metrics import Unit

_UNITS = "1, k, M, these with /s, %, a time such as ms, a size such as MiB, or a rate such as MB/s or Mbit/s"
_SAME = 1.1
"""Some tools call 1,024 bytes a KB, and 1,024 of these a MB."""


class BaseUnit(NamedTuple):
    """The lab's unit, and how many of it one of the user's is."""

    unit: Unit
    factor: float


_COUNTS: Mapping[str, BaseUnit] = {
    "%": BaseUnit("%", 1.0),
    **{word or "1": BaseUnit("1", factor) for word, factor in (("", 1.0), ("k", 1e3), ("M", 1e6))},
    **{f"{word}/s": BaseUnit("1/s", factor) for word, factor in (("1", 1.0), ("k", 1e3), ("M", 1e6))},
}
_PARSED: tuple[tuple[Unit, Callable[[str], float]], ...] = (
    ("s", parse_seconds),
    ("B", parse_bytes),
    ("B/s", lambda one: parse_bit_rate(one) / 8),
    ("B/s", lambda one: parse_bytes(one.removesuffix("/s"))),
)


def base_unit(text: str) -> BaseUnit:
    """What a user's unit is in those of metrics. Raises ValueError for one that is none of them."""
    if text in _COUNTS:
        return _COUNTS[text]
    for unit, parse in _PARSED:
        with suppress(ValueError):
            return BaseUnit(unit, float(parse(f"1 {text}")))
    raise ValueError(f"is no unit; use {_UNITS}")


_PREFIXES: Mapping[str, float] = {
    "": 1.0,
    **dict.fromkeys(("n", "nano"), 1e-9),
    **dict.fromkeys(("u", "\u00b5", "\u03bc", "micro"), 1e-6),
    **dict.fromkeys(("m", "milli"), 1e-3),
    **{name: 1000.0**n for n, names in enumerate(("kK", "M", "gG", "tT", "pP"), start=1) for name in names},
    **{f"{name}i": 1024.0**n for n, name in enumerate("KMGTP", start=1)},
    **{name: 1000.0**n for n, name in enumerate(("kilo", "mega", "giga", "tera", "peta"), start=1)},
    **{name: 1024.0**n for n, name in enumerate(("kibi", "mebi", "gibi", "tebi", "pebi"), start=1)},
}
_BASES: Mapping[str, BaseUnit] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), BaseUnit("s", 1.0)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), BaseUnit("s", 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), BaseUnit("s", 3600.0)),
    **dict.fromkeys(("b", "bit", "bits", "bps"), BaseUnit("B", 1 / 8)),
    **dict.fromkeys(("B", "byte", "bytes", "Bps"), BaseUnit("B", 1.0)),
    **dict.fromkeys(("iops", "tps", "qps", "rps", "pps", "op", "ops", "operations", "ios"), BaseUnit("1", 1.0)),
    **dict.fromkeys(("req", "reqs", "requests", "queries", "transactions", "rows", "keys"), BaseUnit("1", 1.0)),
    **dict.fromkeys(("packets", "pkts", "messages", "msgs", "events", "calls"), BaseUnit("1", 1.0)),
}
_PRINTED = re.compile(
    r"(?P<gap>[ \t]{0,3}[\[(]?)(?P<word>[A-Za-z\u00b5\u03bc]+)(?:(?:/| per )(?P<time>[A-Za-z]+))?(?![\w*+?{])"
)
_BRACKETS = re.compile(r"[\[(]([^\s\[\]()]+)[\])]")
_APART = re.compile(r"\A([ \t]?[kKMGTP]i?) (?=[A-Za-z])")
"""A prefix and what it counts in two words, as in ``12.3 K ops/s``."""


class _Printed(NamedTuple):
    """A unit in a text: what it counts (None for a prefix alone), how many of that it is, and its prefix alone."""

    word: str
    counts: Unit | None
    factor: float
    prefix: float
    apart: bool
    by_time: bool


def other_unit(pattern_behind: str, before: str, after: str, unit: str) -> str | None:
    """The unit, or the prefix, beside a group that is not `unit`; None where nothing tells that.

    `before` and `after` are the letters around the group, `pattern_behind` what the pattern has behind it. A metric in
    1 may have any unit that the pattern names. One in brackets before the group counts where it is of the same kind.
    """
    printed, named = _printed(after), _named(pattern_behind)
    if printed is None and (brackets := _BRACKETS.findall(before.rpartition("\n")[2])):
        printed = _printed(f"({brackets[-1]}")
        if printed is not None and printed.counts != base_unit(unit).unit.removesuffix("/s"):
            return None
    if printed is None or (unit == "1" and named is not None and named.word == printed.word):
        return None
    return None if _is_unit(printed, unit, named=named is not None) else printed.word


def contradicted(pattern_behind: str, unit: str) -> str | None:
    """The unit that a pattern names behind its group and that is not the metric's; None where there is none."""
    named = _named(pattern_behind)
    return None if named is None or unit == "1" or _is_unit(named, unit, named=True) else named.word


def _named(pattern_behind: str) -> _Printed | None:
    """The unit that a pattern has literally behind its group."""
    literal = re.sub(r"\A\)*(?:(?:\\s|[ \t]|\[ \])[*+?]?\)*)+", " ", pattern_behind).lstrip(")")
    return _printed(re.sub(r"\\([/\[(])", r"\1", literal))


def _is_unit(printed: _Printed, unit: str, *, named: bool) -> bool:
    kind, factor = base_unit(unit)
    if printed.counts is None:
        own = _printed(unit)
        minutes = kind == "s" and printed.word == "m"
        factors = [60.0 if minutes else printed.prefix * factor / (1.0 if own is None else own.prefix)]
    elif printed.counts != kind.removesuffix("/s"):
        # What begins the next figure of a line is no unit: `time 12.3 bytes 500`.
        if printed.apart and printed.prefix == 1 and not printed.by_time:
            return True
        factors = [printed.factor] if unit == "1" else []
    else:
        factors = [printed.factor] if kind != "B" or not printed.by_time else []
        if printed.word.partition("/")[0].endswith("b") and (named or printed.word.islower()):
            factors.append(8 * printed.factor)
    return any(1 / _SAME < one / factor < _SAME for one in factors)


def _printed(text: str) -> _Printed | None:
    """The unit at the beginning of a text. A prefix alone is one only where it follows the number at once."""
    for said in (_APART.sub(r"\1", text), text):
        found = _PRINTED.match(said)
        if found is None:
            continue
        time = _BASES.get(found["time"] or "")
        for prefix, size in _PREFIXES.items():
            if not found["word"].startswith(prefix):
                continue
            base = found["word"].removeprefix(prefix)
            counted = _BASES.get(base) or _BASES.get(base.lower() if len(base) > 1 else "")
            if base == "" and prefix and not found["gap"]:
                return _Printed(found[0].strip(" \t[("), None, size, size, apart=False, by_time=time is not None)
            if counted is None or (counted.unit == "s" and size > 1):
                continue
            size = 1e6 if counted.unit != "s" and prefix == "m" else size
            factor = size * counted.factor / (1.0 if time is None or counted.unit == "s" else time.factor)
            by_time = time is not None or base.endswith("ps")
            return _Printed(found[0].strip(" \t[("), counted.unit, factor, size, bool(found["gap"]), by_time)
    return None
