"""``python -m tests.fuzz TARGET SECONDS``: one target under atheris, guided by the lines that are reached.

Needs ``pip install atheris``. A crasher is kept in ``tests/fuzz/crashers/TARGET``, where a test tries it from then on.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from tests.checklist import say


def main(target: str, seconds: int) -> None:
    """Try a target for some seconds; prints the number of trials, and what broke."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["vmlab"]):
        targets = importlib.import_module("tests.fuzz.targets")
    corpus = Path(tempfile.mkdtemp(prefix="vmlab-fuzz-"))
    for number, seed in enumerate(targets.seeds(target)):
        (corpus / str(number)).write_bytes(seed)
    end, count = time.monotonic() + seconds, 0
    known: set[str] = set()

    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        try:
            targets.harm(target, data)
        except Exception as error:  # noqa: BLE001
            place = str(traceback.extract_tb(error.__traceback__)[-1])
            if place not in known:
                known.add(place)
                folder = targets.CRASHERS / target
                folder.mkdir(parents=True, exist_ok=True)
                (folder / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
                say(f"{target}: {error!r} at {place}")
        if time.monotonic() > end:
            say(f"{target}: {count} trials in {seconds} s, {len(known)} places broke")
            os._exit(bool(known))

    atheris.Setup([sys.argv[0], str(corpus), "-max_len=20000", "-rss_limit_mb=4096"], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
