"""Names that a user gives to runs, such as ``baseline``: a small file for each, in the state folder.

A name may have several runs, which are one side of a comparison; its file has a line for each.

A file appears under its name only when it is complete, and each name has its own, so processes that name runs at the
same time lose nothing of each other's.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from vmlab.model.errors import UsageError
from vmlab.model.places import state_folder
from vmlab.system.given_file import open_given, read_given
from vmlab.system.new_file import new_file
from vmlab.system.removal import remove_file

LATEST = ("last", "latest")
"""What names the newest run, and so is no tag."""
LONGEST = 64
"""Characters of the longest name."""
_CHANGES = ("skip", "planned", "end")
"""Words of `vmlab set`, after which a run of that name could not be named there."""
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9._-]{{0,{LONGEST - 1}}}", re.ASCII)
_FILES = (".sqlite", ".yaml", ".yml", ".vmlab")
"""What ends so is taken for a file."""
_RULE = f"use letters from a to z and A to Z, digits, '.', '_' and '-', a letter first, {LONGEST} at most"
_LONGEST_RUN = 255
MOST_RUNS = 256
"""Runs that one name may have."""
_LONGEST_FILE = MOST_RUNS * (_LONGEST_RUN + 1)


def tags_folder() -> Path:
    """The folder of the files."""
    return state_folder() / "tags"


def demand_name(name: str) -> None:
    """Raises UsageError, with one line, for a name that could be taken for something else, or that is not plain."""
    if len(name) > LONGEST:
        raise UsageError(f"a name has at most {LONGEST} characters; {name[:LONGEST]!r}… has {len(name)}; {_RULE}")
    if name[:1].isdigit():
        raise UsageError(f"{name!r} could be the id of a run; a name begins with a letter: {_RULE}")
    if name in LATEST:
        raise UsageError(f"{name!r} is always the newest run, and names no other")
    if name in _CHANGES:
        raise UsageError(f"{name!r} is a word of `vmlab set`, and names no run")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name: {_RULE}")
    if name.lower().endswith(_FILES):
        raise UsageError(f"{name!r} could be a file; a name does not end in {', '.join(_FILES)}")


def all_tags() -> dict[str, tuple[str, ...]]:
    """The ids of the runs of each name, by name; () for one whose file is damaged. Raises OSError."""
    try:
        names = sorted(path.name for path in tags_folder().iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return {}
    found = ((name, tagged(name)) for name in names)
    return {name: run for name, run in found if run is not None}


def tagged(name: str) -> tuple[str, ...] | None:
    """The ids of the runs of that name; None where there is no such name, () where its file is damaged or no file."""
    if not _NAME.fullmatch(name):
        return None
    path = tags_folder() / name
    if not os.path.lexists(path):
        return None
    try:
        runs = os.fsdecode(read_given(path, _LONGEST_FILE, follow=False)).removesuffix("\n").split("\n")
    except UsageError:
        return ()
    return tuple(runs) if len(runs) <= MOST_RUNS and all(map(_plain, runs)) else ()


def names_of_runs() -> dict[str, list[str]]:
    """The names of each run that has any, by its id. Raises OSError."""
    names: dict[str, list[str]] = {}
    for name, runs in all_tags().items():
        for run in runs:
            names.setdefault(run, []).append(name)
    return names


def _plain(run: str) -> bool:
    return run not in ("", ".", "..") and "/" not in run and "\0" not in run and len(run) <= _LONGEST_RUN


def write_tag(name: str, *runs: str) -> None:
    """Give the name to the runs with these ids, and to no others. Raises OSError.

    Raises UsageError where a link, a folder or a special file stands in the name's place, which stays as it is.
    """
    path = tags_folder() / name
    tags_folder().mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        with open_given(path, follow=False):
            pass
    with new_file(path) as file:
        file.write(os.fsencode("".join(f"{run}\n" for run in runs)))
        file.flush()
        # The name may be moved after hours of measuring; it is on the disk before it has its place.
        os.fsync(file.fileno())


def remove_tag(name: str) -> bool:
    """Remove a name; False where there is none. The run stays. Raises OSError."""
    return bool(_NAME.fullmatch(name)) and remove_file(tags_folder() / name)


def take_name(name: str, run: str) -> None:
    """Take a name from a run; the other runs that have it keep it. Raises OSError."""
    rest = [one for one in tagged(name) or () if one != run]
    if rest:
        write_tag(name, *rest)
    else:
        remove_tag(name)
