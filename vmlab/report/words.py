"""Numbers and values in words: the same everywhere in the reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vmlab.model.grouping import grouped
from vmlab.model.names import guest_key
from vmlab.model.quantities import format_bytes, format_seconds
from vmlab.model.run import AS_WRITTEN

if TYPE_CHECKING:
    # They bring pydantic, or many classes, which would delay the console's first picture.
    from vmlab.model.cell_event import DiskSilent
    from vmlab.model.results import NetworkProof
    from vmlab.model.scenarios.table_words import Relative

NOT_MEASURED = "-"
MARK = "!"
"""Marks a figure that is not certain; the reason is given below the table."""
APART = "*"
"""Marks a sum or an index of rates that were not measured over the same span."""
LEAST_FOLDED = 3
"""So many texts that say the same of several things become one."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?!\.?\w)")
_UPPER_END = re.compile(r"between [\d.]+ and $")
_MOST_CELLS = 12
_LONGEST = 1e15
STATISTIC_WORDS = {
    "sd": "sd: standard deviation of a sample, with n - 1 below",
    "cv": "cv: standard deviation (n - 1) in percent of the mean",
    "jain": "jain: Jain's index of fairness, (Σx)² / (n Σx²); 1 is equal shares",
}
"""What statistics mean, for the notes below a table."""


def number(value: float) -> str:
    """A figure with three or four digits, as one reads it in a column: ``0.0123``, ``1.23``, ``12.3``, ``1234``.

    From a thousand million million on it has an exponent, ``1.23e+15``, as floats have no further digit to show.
    """
    size = abs(value)
    if size >= _LONGEST:
        return f"{value:.3g}"
    if size >= 1000:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 or value == 0 else f"{value:.3g}"


def host_number(value: float, unit: str = "") -> str:
    """A sampled figure of the host, with two digits after the point at most: ``0.03`` or ``<0.01``.

    Bytes of either kind are written in their binary units.
    """
    if unit in ("B", "B/s"):
        return format_bytes(value) + unit[1:]
    if unit == "1" and value == round(value):
        return f"{value:.0f}"
    if 0 < value < 0.005:
        return "<0.01"
    return number(value) if abs(value) >= 0.1 else f"{value:.2f}"


def in_brackets(interval: tuple[float, float] | None, relative: Relative = "difference") -> str:
    """``(-63.0 to -59.9)``, the ends of an interval; empty without one."""
    if interval is None:
        return ""
    low, high = (relative_number(end, relative).removesuffix(" %") for end in interval)
    return f"({low} to {high})"


def relative_number(value: float, relative: Relative) -> str:
    """A ratio with three digits behind the point, percent with one up to 100 and a sign where they are a difference.

    Differences below a tenth of a percent have a digit more. What is very large has an exponent, as of `number`.
    """
    if abs(value) >= _LONGEST:
        sign = " %" if relative in ("difference", "percent", "overhead") else ""
        return f"{value:+.3g}{sign}" if relative == "difference" else f"{value:.3g}{sign}"
    match relative:
        case "difference":
            return f"{value:+.2f} %" if 0 < abs(value) < 0.095 else f"{value:+.1f} %"
        case "percent" | "overhead":
            return f"{value:.0f} %" if abs(value) >= 100 else f"{value:.1f} %"
        case _:
            return f"{value:.3f}"


def apart_words(overlaps: Sequence[float | None]) -> str:
    """The note for rates of tiles that were added up, or their fairness calculated, though they did not run together.

    `overlaps` are the shares of their spans in which all tiles ran, None where that is not known; one at least.
    """
    known = [overlap for overlap in overlaps if overlap is not None]
    share = f"for {100 * min(known):.0f} % of their time at least" if known else "for an unknown time"
    return (
        f"{APART} the tiles ran together only {share}; each rate is over its own tile's time, since tools report "
        "no rate for the span in which all ran"
    )


def capital(text: str) -> str:
    """The text with a capital as its first letter, as titles and sentences of their own begin."""
    return text[:1].upper() + text[1:]


def plural(count: int, noun: str) -> str:
    """``1 tile``, ``3 tiles``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def folded(named: Sequence[tuple[str, str]]) -> list[tuple[list[str], str, int]]:
    """Texts, each with the name of what it is about; three or more that differ in numbers alone become one text.

    A text comes with the names and the number of those that it stands for. It stands at the place of the first and has
    the range of each number: ``21 to 48 %``, and of spans the outer ends: ``between 58 and 100 %``.
    """
    alike = grouped((without_numbers(text), (name, text)) for name, text in named)
    found: list[tuple[list[str], str, int]] = []
    for name, text in named:
        those = alike[without_numbers(text)]
        if 0 < len(those) < LEAST_FOLDED:
            found.append(([name], text, 1))
        elif those:
            names = list(dict.fromkeys(one for one, _ in those if one))
            found.append((names, _in_ranges([one for _, one in those]), len(those)))
            those.clear()
    return found


def without_numbers(text: str) -> str:
    """The text with a mark in place of each number: the same for texts that differ in numbers alone."""
    return _NUMBER.sub("#", text)


def _in_ranges(texts: Sequence[str]) -> str:
    ranges = iter([sorted(set(those), key=float) for those in zip(*map(_NUMBER.findall, texts), strict=True)])

    def words(found: re.Match[str]) -> str:
        values: list[str] = next(ranges)
        # Of spans the lowest and the highest end: `between 62 to 70 and 93 to 99 %` has to be read twice.
        if found.string.endswith("between ", 0, found.start()):
            return values[0]
        if _UPPER_END.search(found.string, 0, found.start()):
            return values[-1]
        return " to ".join(dict.fromkeys([values[0], values[-1]]))

    return _NUMBER.sub(words, texts[0])


def cells_words(numbers: Sequence[int]) -> str:
    """``cell 3``, ``cells 3, 4 and 7``, or of many ``15 cells, from 3 to 40``."""
    if len(numbers) == 1:
        return f"cell {numbers[0]}"
    if len(numbers) > _MOST_CELLS:
        return f"{len(numbers)} cells, from {min(numbers)} to {max(numbers)}"
    return f"cells {listed(list(map(str, numbers)))}"


def listed(words: Sequence[str]) -> str:
    """``web, mail and database``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def order_words(order: str, seed: int | None) -> str:
    """In which order the cells of a repeat run: ``as written``, or at random with the seed of the draw."""
    return AS_WRITTEN if order == AS_WRITTEN else f"in random order within each repeat (seed {seed})"


def moment(stamp: str | None) -> str:
    """A time of day of a document as ``2026-11-21 14:30 UTC``."""
    if stamp is None:
        return "at an unknown time"
    return datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M %Z")


def host_words(host: Mapping[str, str | int | None]) -> str:
    """Settings of the host as they were in force: ``ksm off, thp madvise, read-ahead 128 KiB``; empty for none."""
    known = {name: value for name, value in host.items() if value is not None}
    if (ahead := known.pop("read_ahead_bytes", None)) is not None:
        known["read-ahead"] = format_bytes(int(ahead))
    order = ("ksm", "thp", "read-ahead", *known)
    return ", ".join(f"{name} {known[name]}" for name in dict.fromkeys(order) if name in known)


def switch_words(one: Mapping[str, Any]) -> str:
    """``cache writeback to none; guests stood still for at most 6 ms; dirty pages written before in 1.2 s``.

    `one` is a switch as a document has it or as a run answers it; of KSM it has ``what``, ``before`` and ``after``.
    """
    pauses_ms, seconds, written = one.get("pauses_ms", {}), one.get("drained_seconds"), one.get("drained_bytes")
    known = [pause for pause in pauses_ms.values() if pause is not None]
    longest = f"; guests stood still for at most {number(max(known))} ms" if known else ""
    amount = "" if written is None else f" ({format_bytes(written)})"
    drained = "" if seconds is None else f"; dirty pages written before in {format_seconds(seconds)}{amount}"
    return f"{one['what']} {one['before']} to {one['after']}{longest}{drained}"


def changed_now_words(one: Mapping[str, Any]) -> str:
    """What whoever changed the cell that runs hears of the run's answer: of a switch, of a loop's tiles or its end."""
    cell = one["cell"]
    if "what" in one:
        return f"cell {cell}: {switch_words(one)}; invalidates the cell"
    if "ended" in one:
        return f"cell {cell}: no workload starts again; the cell ends when those under way have ended"
    if one["after"] > one["before"]:
        return f"cell {cell}: tile {one['after']} is being added; invalidates the cell"
    return f"cell {cell}: tile {one['before']} is retired when its rounds have ended; invalidates the cell"


def tiles_words(before: int, after: int) -> str:
    """``tile 3 was added``, or ``tile 3 was retired``."""
    return f"tile {max(before, after)} was {'added' if after > before else 'retired'}"


_OF_A_GUEST = {"limit": "limit", "nat": "translated address"}


def network_words(proof: NetworkProof) -> str:
    """What a tunnel, a guest's rules or its limit carried."""
    way = "both ways" if proof.direction == "both" else f"{proof.direction} it"
    device = _OF_A_GUEST.get(proof.device, proof.device)
    of = f"{device} of {proof.guest}, {way}" if proof.guest else proof.device
    bounds = [
        f"{word} {format_bytes(bound)}"
        for word, bound in (("at least", proof.least_bytes), ("at most", proof.most_bytes))
        if bound is not None
    ]
    verdict = "as it must be" if proof.agrees else "NOT as it must be"
    return f"{of}: {format_bytes(proof.carried_bytes)} carried, {verdict} ({', '.join(bounds)})"


def silent_words(disks: Iterable[DiskSilent], now: float) -> str:
    """The disk that has answered nothing for longest, and for how long at the moment `now`; empty without any."""
    silent = sorted(disks, key=lambda one: one.mono - one.seconds)
    if not silent:
        return ""
    first, more = silent[0], f", and {len(silent) - 1} more" if len(silent) > 1 else ""
    seconds = max(first.seconds, now - first.mono + first.seconds)
    return f"{guest_key(first.tile, first.guest)}: no answer from its {first.disk} disk for {seconds:.0f} s{more}"
