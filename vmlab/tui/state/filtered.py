"""Which rows a filter leaves."""

from __future__ import annotations


def has_words(text: str, wanted: str) -> bool:
    """Whether every word of `wanted` is in `text`, in capital letters or small ones."""
    return all(word in text.lower() for word in wanted.lower().split())
