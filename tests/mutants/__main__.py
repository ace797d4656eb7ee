"""Which share of the mutants of each module the tests kill: `make mutants`, or `python -m tests.mutants MODULE…`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.mutants.found import Equivalent, Mutant

CHECKOUT = Path(__file__).parents[2]
RESULTS = CHECKOUT / ".mutants"
"""One file a module with what became of each mutant, as JSON lines."""

_KILLED = ("killed", "timeout")


def main() -> None:
    """Tries the mutants of each module and prints the table; 1 where fewer than the wanted share are killed."""
    configured = tomllib.loads((CHECKOUT / "tests/mutants/modules.toml").read_text())
    modules: dict[str, list[str]] = configured["modules"]
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("module", nargs="*", help=f"one of {', '.join(modules)}; all unless said")
    parser.add_argument("--again", action="store_true", help="try those that the last time did not kill")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no mutant of a module after so many")
    parser.add_argument("--report", action="store_true", help="try none, print the table of the last time")
    chosen = parser.parse_args()
    unknown = set(chosen.module) - set(modules)
    if unknown:
        parser.error(f"no such module: {', '.join(sorted(unknown))}; there are {', '.join(modules)}")
    RESULTS.mkdir(exist_ok=True)
    names = chosen.module or list(modules)
    if not chosen.report:
        for name in names:
            _try_out(name, modules[name], configured["operators"], chosen.again, chosen.seconds)
    equivalent = [Equivalent(**one) for one in configured.get("equivalent", [])]
    shares = [_row(name, equivalent) for name in names]
    sys.exit(min(shares) < configured["least_percent"])


def _file(name: str) -> Path:
    return RESULTS / name.replace("/", ".").replace(".py", ".jsonl")


def _read(name: str) -> list[dict[str, Any]]:
    file = _file(name)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _try_out(name: str, tests: list[str], operators: str, again: bool, seconds: float) -> None:
    """Writes the results of one module, which appear as they come."""
    killed = [
        (one["operator"], one["was"], one["now"], one["occurrence"])
        for one in _read(name)
        if again and one["outcome"] in _KILLED
    ]
    asked = {"module": f"vmlab/{name}", "tests": tests, "operators": operators, "killed": killed, "seconds": seconds}
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
            if one["outcome"] not in _KILLED:
                sys.stderr.write(f"{name}:{one['line']}: {one['outcome']}: {one['was']}\n    → {one['now']}\n")
    if inside.returncode or not about:
        sys.exit(f"{name}: the sandbox ended with {inside.returncode}")
    _file(name).write_text("".join(lines))


def _row(name: str, equivalent: list[Equivalent]) -> float:
    """Prints the line of one module; its share in percent."""
    tried = _read(name)
    killed = sum(one["outcome"] in _KILLED for one in tried)
    left = [one for one in tried if one["outcome"] not in _KILLED]
    mutants = [Mutant(**{key: one[key] for key in ("operator", "occurrence", "line", "was", "now")}) for one in left]
    same = sum(any(one.covers(name, mutant) for one in equivalent) for mutant in mutants)
    rest = sum(one["outcome"] == "not tried" for one in left)
    share = 100 * killed / max(1, len(tried) - same)
    behind = f"; {rest} not tried" if rest else ""
    counted = f"{len(tried):5} mutants {killed:5} killed {same:4} equivalent"
    sys.stdout.write(f"{name:28} {counted} {share:6.1f} %{behind}\n")
    return share


if __name__ == "__main__":
    main()
