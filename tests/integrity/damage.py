"""The fault that nothing but a comparison with a digest can find."""

from __future__ import annotations

from pathlib import Path


def flip(file: Path, offset: int | None = None) -> None:
    """Flip one bit of the byte at `offset`, or else in the middle of the file."""
    at = file.stat().st_size // 2 if offset is None else offset
    with file.open("r+b") as opened:
        opened.seek(at)
        (byte,) = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte ^ 1]))
