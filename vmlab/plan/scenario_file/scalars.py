"""What a plain YAML scalar means: the core schema of YAML 1.2, without infinities.

A number that is whole is one however it is written: ``1e4`` and ``2.0`` are 10000 and 2, ``2.5`` stays a fraction.
"""

from __future__ import annotations

import math
import re

Scalar = None | bool | int | float | str

_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {"true", "True", "TRUE"}
_FALSE = {"false", "False", "FALSE"}
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_MOST_DIGITS = 18
_MOST_EXACT = 2**53
"""Up to here each whole number is a floating-point number of its own."""


def scalar(text: str) -> Scalar:
    """The value of a plain scalar. Raises ValueError for numbers that are not finite or have over 18 digits."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("needs a finite number")
    if _INTEGER.fullmatch(text) or _OTHER_BASE.fullmatch(text):
        return _integer(text)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError("is too large a number")
    return int(text, 0) if text.startswith(("0o", "0x")) else int(text)


def _float(text: str) -> int | float:
    value = float(text) if len(text) < 400 else math.inf
    if not math.isfinite(value):
        raise ValueError("is too large a number")
    return int(value) if value.is_integer() and abs(value) <= _MOST_EXACT else value
