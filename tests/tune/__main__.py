"""Tunes disks whose best setting is known, and counts how often it is found.

``python -m tests.tune [CASE…] [-- OPTION…]`` starts guests, as root. The options are further ones of `vmlab tune`,
such as ``--allow-noise``. Attempts that ``--keep`` has kept are not made again, so it may be started several times.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from tests.checklist import say
from tests.tune.constructed import MOST_SECONDS, Attempt, best_of, cases


def main() -> int:
    """Print a line for each attempt, and for each case how often it was found; 1 where that is below nine of ten."""
    known = cases()
    parser = argparse.ArgumentParser(prog="python -m tests.tune", description=__doc__)
    parser.add_argument("case", nargs="*", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--times", type=int, default=10, metavar="N", help="attempts of each case [default: 10]")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin none after so many")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep there what each attempt printed, and go on")
    before, options = _at_dashes(sys.argv[1:])
    chosen = parser.parse_args(before)
    begun = time.monotonic()
    found: dict[str, list[bool]] = {name: [] for name in chosen.case or known}
    for number in range(1, chosen.times + 1):
        for name, results in found.items():
            kept = chosen.keep / f"{name}-{number}.json" if chosen.keep else None
            attempt = _kept(name, kept)
            if attempt is None:
                if time.monotonic() - begun > 60 * chosen.minutes:
                    continue
                attempt = _tried(name, known[name], ["--seed", f"{number}", *options], kept)
            results.append(attempt.found(best_of(known[name])) and attempt.seconds <= MOST_SECONDS)
            words = "no verdict" if attempt.won is None else ", ".join(sorted(attempt.won)) or "the default"
            verdict = "found" if results[-1] else "NOT FOUND"
            say(f"{name} {number}: {verdict}: {words}, {attempt.seconds / 60:.1f} min, exit {attempt.code}")
    for name, results in found.items():
        say(f"{name}: found in {sum(results)} of {len(results)}")
    return int(any(10 * sum(results) < 9 * len(results) for results in found.values()))


def _at_dashes(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and after ``--``."""
    place = words.index("--") if "--" in words else len(words)
    return words[:place], words[place + 1 :]


def _kept(name: str, file: Path | None) -> Attempt | None:
    if file is None or not file.exists():
        return None
    kept = json.loads(file.read_text())
    return Attempt(name, kept["document"], kept["exit_code"], kept["seconds"])


def _tried(name: str, path: Path, options: list[str], kept: Path | None) -> Attempt:
    began = time.monotonic()
    ran = subprocess.run([sys.executable, "-m", "vmlab", "tune", str(path), "--json", *options], stdout=subprocess.PIPE)
    seconds = time.monotonic() - began
    document = json.loads(ran.stdout) if ran.stdout else None
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"seconds": seconds, "exit_code": ran.returncode, "document": document}))
    return Attempt(name, document, ran.returncode, seconds)


if __name__ == "__main__":
    sys.exit(main())
