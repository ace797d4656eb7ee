"""The notices of a run in few lines, and what a comparison makes of the CPUs' speed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from vmlab.analysis.comparison.comparison import AT_BEST, Row
from vmlab.analysis.speed_spans import SpeedSpan
from vmlab.report.words import LEAST_FOLDED, cells_words, folded, plural, without_numbers

_ABOUT = re.compile(r"(?P<side>.+?: )?(?P<who>cell \d+|t\d+-[a-z0-9-]+): (?P<text>.*)", re.DOTALL)
"""A notice on a cell or a guest, of a comparison with the side to which that belongs."""


EMULATED_NOTICE = "guests are emulated (TCG)"
_BRIEF = (
    (r"the host's other work took (\d+ %) of the CPUs", "other work {}"),
    (r"the CPUs ran at (\d+ %) of their best speed on average", "CPUs at {} of best"),
    (r"steal: the hypervisor that this host runs on took (\d+ %) of the CPUs", "steal {}"),
    (r"a CPU quota held the lab back for ([\d.]+ %) of the time", "held back {}"),
    (r"the host swapped (\S+ \S+) while the workloads ran", "swapped {}"),
    (r"tasks on the host waited for memory for (\d+ %) of the time", "memory wait {}"),
    (r"samples of the host were taken (\d+ ms) late", "samples {} late"),
    (r"the processor became too hot and slowed down", "CPU too hot"),
    (r"no host (?:metrics|figures) were recorded", "no host metrics"),
)
"""What disturbed a cell, in few words with the number, for where a line has no room for the sentence."""


def brief_notice(text: str) -> str:
    """A notice about a cell in few words, without the cell; of an unknown one its first clause."""
    said = _parts(text)[1][1]
    for pattern, words in _BRIEF:
        if found := re.match(pattern, said):
            return words.format(*found.groups())
    return re.split(r"; |: | \(", said, maxsplit=1)[0]


def cell_of_notice(notice: str) -> int | None:
    """The number of the cell that a notice is about; None for all others."""
    who = _parts(notice)[1][0]
    return int(who.removeprefix("cell ")) if who.startswith("cell ") else None


def at_best_notes(span: SpeedSpan | None, rows: Sequence[Row]) -> Iterator[str]:
    """How the CPUs' speed, by `span`, is taken out of differences, where `rows` have such ones."""
    if span is not None and any(any(row.differences_at_best) for row in rows):
        yield (
            f"{AT_BEST}: each time multiplied by, and each rate divided by, the CPUs' mean speed during the workload, "
            f"relative to their best in the run; in these cells that was {span.mean:.0f} % on average, by cell "
            f"{span.lowest:.0f} to {span.highest:.0f} %; the difference as measured decides"
        )


def short_notices(notices: Sequence[str]) -> list[str]:
    """The notices of a run or of a comparison, three or more of a kind as one line at the place of the first.

    Such a line has the cells or guests, and the range of each number.
    """
    found = []
    for side, those in groupby(map(_parts, notices), key=itemgetter(0)):
        for names, text, count in folded([named for _, named in those]):
            about = ": ".join(filter(None, [_who(names), text]))
            found.append(side + about + (f" ({plural(count, 'notice')}, listed in the JSON)" if count > 1 else ""))
    return found


def brief_notices(notices: Sequence[str]) -> list[str]:
    """The notices of a run in few words, those of cells that say the same as one, at the place of the first.

    That guests are emulated is said of the figures themselves.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for notice in dict.fromkeys(notices):
        side, (who, _) = _parts(notice)
        text = f"{side}{brief_notice(notice)}" if who else notice
        if not notice.startswith(EMULATED_NOTICE):
            found.setdefault(without_numbers(text) if who else text, []).append((who, text))
    return [_of_a_kind(those) for those in found.values()]


def _of_a_kind(those: Sequence[tuple[str, str]]) -> str:
    if len(those) < LEAST_FOLDED:
        return "; ".join(": ".join(filter(None, one)) for one in those)
    return "; ".join(": ".join(filter(None, [_who(names), text])) for names, text, _ in folded(those))


def _parts(notice: str) -> tuple[str, tuple[str, str]]:
    """The side with its colon, and the cell or guest with the text; the first two are empty where there is none."""
    match = _ABOUT.fullmatch(notice)
    return (match["side"] or "", (match["who"], match["text"])) if match else ("", ("", notice))


def _who(names: Sequence[str]) -> str:
    cells = [int(name.removeprefix("cell ")) for name in names if name.startswith("cell ")]
    return cells_words(cells) if cells and len(cells) == len(names) else ", ".join(names)
