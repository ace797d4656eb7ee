"""``python3 packaging/hashed.py [EXTRA …]``: what vmlab with these extras needs, for `pip install --require-hashes -r`.

A line for each package, with its version and the digest of each of its files, out of ``constraints-hashed.txt``, which
`make hashes` writes. The backend that builds vmlab itself is in it, so that `--no-build-isolation` needs no more.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
_ENTRY = re.compile(
    r"^(?P<lines>(?P<name>[A-Za-z0-9._-]+)(?:\[[a-z,-]+\])?==.*(?:\n +--hash=.*)+)\n +# via (?P<via>.*)$", re.MULTILINE
)
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def normal(requirement: str) -> str:
    """The name of a requirement as package indexes compare it."""
    found = _NAME.match(requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def entries(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """The lines of each package by its name, and the names of the packages that need it."""
    return {
        normal(one["name"]): (one["lines"], frozenset(normal(via) for via in one["via"].split(", ") if via[0] != "-"))
        for one in _ENTRY.finditer(text)
    }


def needed(known: Mapping[str, tuple[str, frozenset[str]]], roots: Iterable[str]) -> list[str]:
    """The names of these packages and of all that they need, in the order of the file. Raises KeyError."""
    found, left = set[str](), set(roots)
    for name in left:
        known[name]
    while left:
        found |= left
        left = {name for name, (_, by) in known.items() if by & left} - found
    return [name for name in known if name in found]


def main(extras: list[str]) -> int:
    """Print the lines."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    optional = project["project"]["optional-dependencies"]
    if unknown := [name for name in extras if name not in optional]:
        sys.stderr.write(f"hashed: no extra {unknown[0]!r}; there are {', '.join(optional)}\n")
        return 2
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    asked += [one for name in extras for one in optional[name]]
    known = entries((CHECKOUT / "constraints-hashed.txt").read_text())
    for name in needed(known, map(normal, asked)):
        sys.stdout.write(f"{known[name][0]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
