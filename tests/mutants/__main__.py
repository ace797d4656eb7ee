"""Which share of the mutants of each module the tests kill: `make mutants`, or `python -m tests.mutants MODULE…`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.measured_on import processor
from tests.mutants.found import Equivalent, Mutant

CHECKOUT = Path(__file__).parents[2]
RESULTS = CHECKOUT / ".mutants"
"""One file a module with what became of each mutant, as JSON lines."""

_KILLED: tuple[str, ...] = ("killed", "timeout")
_TRIED = (*_KILLED, "survived")
_KEYS = ("operator", "was", "now", "occurrence")


def main() -> None:
    """Tries the mutants of each module and prints the table; 1 where fewer than the wanted share are killed."""
    configured = tomllib.loads((CHECKOUT / "tests/mutants/modules.toml").read_text())
    modules: dict[str, list[str]] = configured["modules"]
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("module", nargs="*", help=f"one of {', '.join(modules)}; all by default")
    parser.add_argument("--again", action="store_true", help="try those that the last time did not kill")
    parser.add_argument("--more", action="store_true", help="try those that the last time did not try")
    parser.add_argument("--sample", type=int, metavar="N", help="try N of each module; a smaller sample is in a larger")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no mutant of a module after so many")
    parser.add_argument("--report", action="store_true", help="try none, print the table of the last time")
    parser.add_argument(
        "--page", type=Path, metavar="BEFORE", help="write docs/evidence/mutants.md, beside those of a folder"
    )
    chosen = parser.parse_args()
    unknown = set(chosen.module) - set(modules)
    if unknown:
        parser.error(f"no such module: {', '.join(sorted(unknown))}; there are {', '.join(modules)}")
    RESULTS.mkdir(exist_ok=True)
    names = chosen.module or list(modules)
    if not chosen.report:
        for name in names:
            kept = _KILLED if chosen.again else _TRIED if chosen.more else ()
            if kept and chosen.sample is None:
                kept += ("left out",)
            asked = {"operators": configured["operators"], "sample": chosen.sample, "seconds": chosen.seconds}
            _try_out(name, asked | {"tests": modules[name]}, kept)
    equivalent = [Equivalent(**one) for one in configured.get("equivalent", [])]
    shares = [_row(name, equivalent) for name in names]
    if chosen.page:
        _write_page(chosen.page, list(modules), equivalent)
    sys.exit(min(shares) < configured["least_percent"])


def _file(name: str, folder: Path = RESULTS) -> Path:
    return folder / name.replace("/", ".").replace(".py", ".jsonl")


def _read(name: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    file = _file(name, folder)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _try_out(name: str, asked: dict[str, Any], kept: Sequence[str]) -> None:
    """Writes the results of one module, which appear as they come; those that are `kept` are not tried anew."""
    before = [([one[key] for key in _KEYS], one["outcome"]) for one in _read(name) if one["outcome"] in kept]
    asked = asked | {"module": f"vmlab/{name}", "before": before}
    sandbox = ["sh", str(CHECKOUT / "tests/mutants/sandbox.sh"), str(CHECKOUT)]
    argv = [*sandbox, sys.executable, "-B", "-m", "tests.mutants.inside"]
    lines = []
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as inside:
        assert inside.stdin is not None and inside.stdout is not None
        inside.stdin.write(json.dumps(asked))
        inside.stdin.close()
        about = json.loads(inside.stdout.readline() or "{}")
        if about:
            sys.stderr.write(f"{name}: {about['tests']} tests in {about['seconds']} s\n")
        for line in inside.stdout:
            lines.append(line)
            one = json.loads(line)
            if one["outcome"] == "survived":
                sys.stderr.write(f"{name}:{one['line']}: {one['outcome']}: {one['was']}\n    → {one['now']}\n")
    if inside.returncode or not about:
        sys.exit(f"{name}: the sandbox ended with {inside.returncode}")
    _file(name).write_text("".join(lines))


@dataclass(frozen=True)
class _Tally:
    """Of one module: its mutants, how many are in the sample, and of these the killed, equivalent and not yet tried."""

    mutants: int
    sample: int
    killed: int
    equivalent: int
    not_tried: int

    @classmethod
    def of(cls, name: str, equivalent: list[Equivalent], folder: Path = RESULTS) -> _Tally:
        """From the results in `folder`."""
        mutants = _read(name, folder)
        sample = [one for one in mutants if one["outcome"] != "left out"]
        left = [one for one in sample if one["outcome"] == "survived"]
        survivors = [Mutant(**{field.name: one[field.name] for field in fields(Mutant)}) for one in left]
        same = sum(any(one.covers(name, mutant) for one in equivalent) for mutant in survivors)
        rest = sum(one["outcome"] == "not tried" for one in sample)
        return cls(len(mutants), len(sample), len(sample) - len(left) - rest, same, rest)

    @property
    def percent(self) -> float:
        """The share of those that are killed among those that are not equivalent; 0 where some were not tried."""
        return 100 * self.killed / max(1, self.sample - self.equivalent) if not self.not_tried else 0.0

    @property
    def tried(self) -> str:
        """How many of how many, for the page."""
        return f"{self.sample} of {self.mutants}" if self.sample < self.mutants else str(self.mutants or "")

    @property
    def share(self) -> str:
        """For the page."""
        if self.not_tried or not self.mutants:
            return "not measured"
        return f"{self.percent:.0f} % ({self.killed} of {self.sample - self.equivalent})"


def _row(name: str, equivalent: list[Equivalent]) -> float:
    """Prints the line of one module; its share in percent."""
    tally = _Tally.of(name, equivalent)
    behind = f"{tally.not_tried} not tried" if tally.not_tried else f"{tally.percent:.1f} %"
    counted = f"{tally.tried:>10} mutants {tally.killed:5} killed {tally.equivalent:4} equivalent"
    sys.stdout.write(f"{name:28} {counted}  {behind}\n")
    return tally.percent


def _write_page(before: Path, names: list[str], equivalent: list[Equivalent]) -> None:
    """Puts the table of the last results, beside those in the folder `before`, into the page."""
    page = CHECKOUT / "docs" / "evidence" / "mutants.md"
    newest = max(file.stat().st_mtime for file in RESULTS.iterdir())
    day = datetime.fromtimestamp(newest, UTC).date()
    lines = [
        f"Measured on {day}: {os.cpu_count()} CPUs, {processor()}; Python {platform.python_version()};"
        f" cosmic-ray {version('cosmic-ray')}.",
        "",
        "| module | mutants before | killed before | mutants now | equivalent now | killed now |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        was, now = _Tally.of(name, equivalent, before), _Tally.of(name, equivalent)
        lines.append(f"| `{name}` | {was.tried} | {was.share} | {now.tried} | {now.equivalent or ''} | {now.share} |")
    head, rest = page.read_text().split("<!-- mutants -->\n")
    tail = rest.split("<!-- end -->")[1]
    page.write_text(f"{head}<!-- mutants -->\n" + "\n".join(lines) + f"\n<!-- end -->{tail}")


if __name__ == "__main__":
    main()
