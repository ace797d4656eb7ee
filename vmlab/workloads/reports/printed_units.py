"""The units of metrics, and those that a command prints beside a number.

Many tools change the unit with the size: ``998 MB/s``, ``1.2 GB/s``, ``12.3k``, ``lat (msec): avg=12``. So a
unit behind the number, or in brackets before it, has to be the metric's, whether the output or the pattern says it. It
may be one that no metric can have: ``KB/s``, ``kops/s``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from vmlab.model.quantities import parse_bit_rate, parse_bytes, parse_seconds
from vmlab.workloads.metrics import Unit

_UNITS = "1, k, M, these with /s, %, a time such as ms, a size such as MiB, or a rate such as MB/s or Mbit/s"
_SAME, _EXACT = 1.13, 1.001
"""Some tools call 1,024 bytes a KB, and 1,024 of these a MB; a MiB is one to all of them."""


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


_LETTERS: Mapping[str, float] = {
    "": 1.0,
    "n": 1e-9,
    **dict.fromkeys("u\u00b5\u03bc", 1e-6),
    "m": 1e-3,
    **{name: 1000.0**n for n, names in enumerate(("kK", "M", "gG", "tT", "pP"), start=1) for name in names},
    **{f"{name}i": 1024.0**n for n, name in enumerate("KMGTP", start=1)},
}
_WORDS: Mapping[str, float] = {
    "nano": 1e-9,
    "micro": 1e-6,
    "milli": 1e-3,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
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
    r"(?P<gap>[ \t]{0,3})(?P<open>[\[(][ \t]*)?(?P<word>(?!per[ \t])[A-Za-z\u00b5\u03bc]*)"
    r"(?:(?:/|[ \t]?per[ \t])(?P<by>[A-Za-z\u00b5\u03bc]+))?(?(open)[ \t]*[\])])(?![\w*+?{]|[ \t]*[=:])"
)
"""A word before ``=`` or ``:`` begins the next figure of a line, and one in brackets is alone there."""
_APART = re.compile(r"\A([ \t]?(?:[kKMGTP]i?|thousand|million|billion)) (?=[A-Za-z])")
"""A prefix and what it counts in two words, as in ``12.3 K ops/s``."""
_NEXT = re.compile(r"[ \t]+[0-9.]+(?![0-9.]*[ \t]?s)")
"""Behind ``min``: a figure of its own, and not the seconds of a time."""
_BRACKETS = re.compile(
    r"(?<![\w)\]])[\[(][ \t]*([^\s\[\]()]+)[ \t]*[\])][ \t:]*"
    r"(?:[\w.%]+=[ \t]*[0-9.]+[A-Za-z%]?,[ \t]*)*[A-Za-z_.]*(?:[ \t][A-Za-z_.]+){0,3}[ \t:=]*\Z"
)
"""The unit in ``Latency [ns]: avg 12`` and ``lat (usec): min= 1, max=30, avg=12``."""
_NAMES = re.compile(r"\)*(?:(?:\\s|[ \t]|\[ \])[*+?]?\)*)*(?:\(\?:)*(?:\\[\[(/]|[A-Za-z/]|\[(?!\^))")
"""What a pattern has behind its group where it names a unit, or a choice of units."""


class _Printed(NamedTuple):
    """A unit in a text: what it counts (None for a prefix alone), how many of that it is, and its prefix alone."""

    word: str
    counts: Unit | None
    factor: float
    prefix: float
    apart: bool
    by_time: bool

    @property
    def is_binary(self) -> bool:
        """Whether its prefix is a power of 1,024 to all."""
        return re.match(r"[KMGTP]i|(?:kibi|mebi|gibi|tebi|pebi)", self.word) is not None


def other_unit(pattern_behind: str, before: str, after: str, unit: str) -> str | None:
    """The unit, or the prefix, beside a group that is not `unit`; None where nothing tells that.

    `before` and `after` are the letters around the group, `pattern_behind` what the pattern has behind it. A metric in
    1 may have any unit that the pattern names. One in brackets before the group counts where it is of the same kind.
    """
    if unit == "1" and _NAMES.match(pattern_behind):
        return None
    printed = _printed(after)
    if printed is None and (bracket := _BRACKETS.search(before.rpartition("\n")[2])):
        printed = _printed(f"({bracket[1]})")
        if printed is not None and printed.counts != base_unit(unit).unit.removesuffix("/s"):
            return None
    if printed is None or _is_unit(printed, unit, named=_named(pattern_behind) is not None):
        return None
    return printed.word


def contradicted(pattern_behind: str, unit: str) -> str | None:
    """The unit that a pattern names behind its group and that is not the metric's; None where there is none.

    One letter may begin any word.
    """
    named = _named(pattern_behind)
    if named is None or unit == "1" or len(named.word) == 1 or _is_unit(named, unit, named=True):
        return None
    return named.word


def _named(pattern_behind: str) -> _Printed | None:
    """The unit that a pattern has literally behind its group."""
    literal = re.sub(r"\A\)*(?:(?:\\s|[ \t]|\[ \])[*+?]?\)*)+", " ", pattern_behind).lstrip(")")
    # A bracket that is not escaped begins a class.
    return _printed(re.sub(r"\\([/\[\](): ])", r"\1", re.sub(r"(?<!\\)[\[(]", "\0", literal)))


def _is_unit(printed: _Printed, unit: str, *, named: bool) -> bool:
    kind, factor = base_unit(unit)
    if printed.counts is None:
        own = _printed(unit)
        minutes = kind == "s" and printed.word == "m"
        of_own = 1.0 if own is None or kind in ("1", "1/s") else factor / own.prefix
        factors = [60.0 if minutes else printed.factor * of_own]
    elif printed.counts != kind.removesuffix("/s"):
        # What begins the next figure of a line is no unit: `time 12.3 bytes 500`.
        if printed.apart and printed.prefix == 1 and not printed.by_time:
            return True
        factors = [printed.factor] if unit == "1" else []
    else:
        factors = [printed.factor] if kind != "B" or not printed.by_time else []
        if printed.word.partition("/")[0].endswith("b") and (named or printed.word.islower()):
            factors.append(8 * printed.factor)
    same = _EXACT if printed.is_binary else _SAME
    return any(1 / same < one / factor < same for one in factors)


def _printed(text: str) -> _Printed | None:
    """The unit at the beginning of a text. A prefix alone is one only where it follows the number at once, or is of a
    time.
    """
    for said in (_APART.sub(r"\1", text), text):
        found = _PRINTED.match(said)
        if found is None or not (found["word"] or found["by"]):
            continue
        time = next((base.factor * size for size, base in _read(found["by"] or "") if base and base.unit == "s"), None)
        word = said[found.start("word") : found.end("by" if found["by"] else "word")].strip()
        for size, base in _read(found["word"]):
            if base is None:
                # A prefix alone, or nothing before `/min`.
                if time is None and (size == 1 or (found["gap"] and found["word"].lower() not in _WORDS)):
                    continue
                return _Printed(word, None, size / (time or 1.0), size, apart=False, by_time=time is not None)
            if base.unit == "s" and base.factor == 60 and found["gap"] and _NEXT.match(said, found.end()):
                return None
            factor = size * base.factor / (time if time is not None and base.unit != "s" else 1.0)
            by_time = time is not None or found["word"].endswith("ps")
            return _Printed(word, base.unit, factor, size, bool(found["gap"]), by_time)
    return None


def _read(word: str) -> Iterator[tuple[float, BaseUnit | None]]:
    """What a word may be: the size of its prefix, and what it counts, None for a prefix alone."""
    lowered = word.lower()
    known = [(prefix, size) for prefix, size in _LETTERS.items() if word.startswith(prefix)]
    for prefix, size in [*known, *((one, size) for one, size in _WORDS.items() if lowered.startswith(one))]:
        base = word[len(prefix) :]
        counted = _BASES.get(base) or _BASES.get(base.lower() if len(base) > 1 else "")
        if not base:
            yield size, None
        elif counted is not None and (counted.unit != "s" or size <= 1):
            # Nobody counts thousandths of a byte or of a request.
            yield 1e6 if counted.unit != "s" and prefix == "m" else size, counted
