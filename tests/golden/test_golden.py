"""What every medium tells of recorded stores, byte by byte; ``VMLAB_GOLDEN=write`` writes it anew."""

from __future__ import annotations

import gzip
import os
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.golden.media import OF_ONE, OF_SEVERAL, Told, without_drawing
from tests.golden.stores import ALONE, PAIRS, unpacked

_TOLD = Path(__file__).parent / "told"
_MOST_PLAIN = 2**15
"""Longer texts, which nobody reads as a whole, are kept compressed."""


def check(name: str, medium: str, text: str) -> None:
    """Hold `text` against its file."""
    plain = _TOLD / name / f"{medium}.txt"
    packed = plain.with_suffix(".txt.gz")
    if os.environ.get("VMLAB_GOLDEN") == "write":
        _write(plain, packed, text.encode())
    kept = (gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()).decode()
    lines = (kept.splitlines(keepends=True), text.splitlines(keepends=True))
    assert kept == text, "".join(unified_diff(*lines, f"{name}/{medium}", "now", n=1))


def _write(plain: Path, packed: Path, body: bytes) -> None:
    """Write what differs, and nothing else: compressed bytes depend on the version of zlib."""
    plain.parent.mkdir(parents=True, exist_ok=True)
    if len(body) <= _MOST_PLAIN:
        packed.unlink(missing_ok=True)
        plain.write_bytes(body)
    elif not packed.exists() or gzip.decompress(packed.read_bytes()) != body:
        plain.unlink(missing_ok=True)
        packed.write_bytes(gzip.compress(body, mtime=0))


@pytest.mark.parametrize(
    ("name", "medium"),
    [
        *[(name, medium) for name in ALONE for medium in (*OF_ONE, *OF_SEVERAL)],
        *[(name, medium) for name in PAIRS for medium in OF_SEVERAL],
    ],
)
def test_what_a_medium_tells(
    name: str, medium: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", without_drawing)
    told = Told(tmp_path, capsys)
    check(name, medium, told(*(OF_ONE | OF_SEVERAL)[medium], *unpacked(name)))
