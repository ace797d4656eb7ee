"""Comparing two listings of a tree; the form is that of ``payload/tree_make.py``."""

from __future__ import annotations

_SHOWN = 3


def first_differences(wanted: str, found: str) -> str:
    """The first paths, in order, that are missing, too many or different, with what is wrong with each."""
    expected, actual = _by_path(wanted), _by_path(found)
    wrong = [
        f"{path} {word}" for path in sorted(expected.keys() | actual.keys()) if (word := _word(path, expected, actual))
    ]
    if not wrong:
        return "the listings agree, but their digests do not"
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return ", ".join(wrong[:_SHOWN]) + more


def _word(path: str, expected: dict[str, tuple[str, str]], actual: dict[str, tuple[str, str]]) -> str:
    if path not in actual:
        return "is missing"
    if path not in expected:
        return "does not belong there"
    if expected[path][0] != actual[path][0]:
        return f"has {actual[path][0]} bytes instead of {expected[path][0]}"
    return "" if expected[path] == actual[path] else "has other content"


def _by_path(listing: str) -> dict[str, tuple[str, str]]:
    entries = (line.split("\t") for line in listing.splitlines())
    return {path: (size, digest) for path, size, digest in entries}
