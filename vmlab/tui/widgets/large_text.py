"""Text in large letters of three by five points: two points a character, three rows high, or larger."""

from __future__ import annotations

_GLYPHS = {
    "A": "010 101 111 101 101",
    "B": "110 101 110 101 110",
    "C": "011 100 100 100 011",
    "D": "110 101 101 101 110",
    "E": "111 100 110 100 111",
    "F": "111 100 110 100 100",
    "G": "011 100 101 101 011",
    "H": "101 101 111 101 101",
    "I": "111 010 010 010 111",
    "J": "001 001 001 101 010",
    "K": "101 101 110 101 101",
    "L": "100 100 100 100 111",
    "M": "101 111 111 101 101",
    "N": "110 101 101 101 101",
    "O": "010 101 101 101 010",
    "P": "110 101 110 100 100",
    "Q": "010 101 101 110 011",
    "R": "110 101 110 101 101",
    "S": "011 100 010 001 110",
    "T": "111 010 010 010 010",
    "U": "101 101 101 101 111",
    "V": "101 101 101 101 010",
    "W": "101 101 111 111 101",
    "X": "101 101 010 101 101",
    "Y": "101 101 010 010 010",
    "Z": "111 001 010 100 111",
    "0": "111 101 101 101 111",
    "1": "010 110 010 010 111",
    "2": "110 001 010 100 111",
    "3": "110 001 010 001 110",
    "4": "101 101 111 001 001",
    "5": "111 100 110 001 110",
    "6": "011 100 111 101 111",
    "7": "111 001 010 010 010",
    "8": "111 101 111 101 111",
    "9": "111 101 111 001 110",
    "/": "001 001 010 100 100",
    ":": "000 010 000 010 000",
    "-": "000 000 111 000 000",
    ".": "000 000 000 000 010",
    "?": "110 001 010 000 010",
    "+": "000 010 111 010 000",
    "%": "101 001 010 100 101",
    " ": "000 000 000 000 000",
}
_HALVES = {("0", "0"): " ", ("1", "0"): "▀", ("0", "1"): "▄", ("1", "1"): "█"}
ROWS = 3
LARGER_ROWS = 5
COLUMNS = 4
"""Columns of a letter, with the gap behind it."""


def large(text: str, *, twice: bool = False) -> list[str]:
    """Three rows of characters, or `LARGER_ROWS` of letters twice as wide; what has no letter here is a space."""
    points = [_GLYPHS.get(letter, _GLYPHS[" "]).split() for letter in text.upper()]
    if twice:
        return [
            "  ".join("".join("██" if point == "1" else "  " for point in one[row]) for one in points)
            for row in range(LARGER_ROWS)
        ]
    rows = []
    for row in range(ROWS):
        pairs = ((one[2 * row], one[2 * row + 1] if 2 * row + 1 < len(one) else "000") for one in points)
        rows.append(" ".join("".join(_HALVES[pair] for pair in zip(*both, strict=True)) for both in pairs))
    return rows
