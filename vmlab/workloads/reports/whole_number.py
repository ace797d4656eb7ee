"""Whether the group of a pattern has the whole of a number.

Numbers are printed as ``1.5e+06``, ``1,234``, ``1'234``, ``0,52``, ``1:02.3`` and ``1m2.3s``. What the pattern itself
names next to its group is meant so.
"""

from __future__ import annotations

import re
import warnings

_GOES_ON = re.compile(
    r"[0-9]+|\.[0-9]+|,[0-9]{3}(?![0-9])|,[0-9]{1,2}(?![0-9,])|['_\u00a0\u2009\u202f][0-9]{3}(?![0-9])"
    r"|[eE][+-]?[0-9]+|:[0-5][0-9](?:\.[0-9]|:[0-5][0-9])|m[0-9]+",
    re.ASCII,
)
_BEGAN = re.compile(
    r"[0-9][.,'_\u00a0\u2009\u202f]?\Z|[0-9]\.?[eE][+-]?\Z|(?<![^\s=:(])-\Z|(?<![A-Za-z0-9])[0-9]+m\Z", re.ASCII
)
"""What follows and what precedes a part of a number."""
_MINUTES = re.compile(r"(?<![\w.%])[0-9]+:(?P<minutes>[0-5][0-9]:)?\Z", re.ASCII)
_SECONDS = re.compile(r"[0-5][0-9](?P<part>\.[0-9]+)?", re.ASCII)
"""A time has parts of seconds, or hours; ``3:45`` alone may be anything."""
_NO_COMMENT = re.compile(r"(?<!\\)\(\?(?:#|[aiLmsu]*x)")
"""What begins a comment in a pattern, or allows comments."""
_CLASS = r"\[(?!\^)\]?(?:\\.|[^\]\\])*\]"
_FIRST = re.compile(rf"(?:\(\?:|\))*(\\[^A-Za-z]|\\d|{_CLASS}|[^.\[()\\^$|*+?{{])", re.DOTALL)
_LAST = re.compile(rf"(\\[^A-Za-z]|\\d|{_CLASS}|(?<!\\)[^.\](\\^$|)*+?}}])(?:\(\?:)*\Z", re.DOTALL)
_GROUP_BEGINS = re.compile(r"\((?!\?)|\(\?P<")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9,]*\})[?+]?\Z")


def fault_of_group(pattern: str, group: str, before: str, after: str) -> str | None:
    """Of what number the group has a part; None where it has all. `before` and `after` are the letters around it."""
    ahead, behind = sides(pattern)
    goes_on, began = _GOES_ON.match(after), _BEGAN.search(before)
    if began is None and (seconds := _SECONDS.fullmatch(group)) is not None:
        began = _MINUTES.search(before)
        began = began if began is not None and (seconds["part"] or began["minutes"]) else None
    commas = _names_first(behind, ",") or _names_last(ahead, ",")
    if goes_on is not None and (_names_first(behind, after[0]) or (after[0] == "," and commas)):
        goes_on = None
    if began is not None and (_names_last(ahead, before[-1]) or (before[-1] == "," and commas)):
        began = None
    if goes_on is None and began is None:
        return None
    return f"{began[0] if began else ''}{group}{goes_on[0] if goes_on else ''}"


def demand_no_comment(pattern: str) -> None:
    """Raise ValueError for a pattern with comments, in which a group may stand that is none."""
    if _NO_COMMENT.search(pattern):
        raise ValueError("has a comment, or the flag x, which a metric's pattern cannot have")


def sides(pattern: str) -> tuple[str, str]:
    """What a pattern has before and behind its only group."""
    opened: list[bool] = []
    begin, end, at = 0, len(pattern), 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            # A closing bracket that comes first is one of the class.
            at += 2 if pattern[at + 1] == "^" else 1
            at += pattern[at] == "\\"
            while pattern[at + 1] != "]":
                at += 2 if pattern[at + 1] == "\\" else 1
            at += 1
        elif pattern[at] == "(":
            opened.append(_GROUP_BEGINS.match(pattern, at) is not None)
            begin = at if opened[-1] else begin
        elif pattern[at] == ")" and opened.pop():
            end = at + 1
        at += 1
    return pattern[:begin], pattern[end:]


def _names_first(pattern: str, letter: str) -> bool:
    """Whether a pattern begins with this letter, or a class with it."""
    part = _FIRST.match(pattern)
    return part is not None and _is_one_of(part[1], letter)


def _names_last(pattern: str, letter: str) -> bool:
    """Whether a pattern ends with this letter, or a class with it; more than one digit before a group is none."""
    plain = _QUANTIFIER.sub("", pattern)
    part = _LAST.search(plain)
    several = plain != pattern and letter.isdigit()
    return part is not None and not several and _is_one_of(part[1], letter)


def _is_one_of(part: str, letter: str) -> bool:
    """Whether a letter or a class of a pattern matches it. Python warns of `[[`, which may once mean something else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.fullmatch(part, letter) is not None
