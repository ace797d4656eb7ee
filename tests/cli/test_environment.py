"""Every environment variable that the program reads stands on a page."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import vmlab

ROOT = Path(vmlab.__file__).parent
PAGES = ROOT.parent / "docs"
OWN = ("_VMLAB_COMPLETE", "VMLAB_HOST_PID", "VMLAB_CHILDREN", "PATH", "SUDO_USER")
"""Between parts of the program, by a shell's completion, or of every program."""


def names() -> Iterator[str]:
    """Names that are read from the environment as constants, beside those that the libraries read for it."""
    yield from ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NO_COLOR", "COLUMNS", "TERM")
    yield from ("LC_ALL", "LC_CTYPE", "LANG", "VMLAB_SNAPSHOT_LIMIT")
    for path in (path for path in ROOT.rglob("*.py") if "payload" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=value, attr="get"), args=[ast.Constant(value=str(name)), *_]
                ) if "environ" in ast.unparse(value):
                    yield name
                case ast.Subscript(value=value, slice=ast.Constant(value=str(name))) if "environ" in ast.unparse(value):
                    yield name


def test_each_stands_on_a_page_of_the_reference() -> None:
    page = (PAGES / "reference/command-line.md").read_text()
    assert {name for name in names() if name not in OWN and f"`{name}`" not in page} == set()
