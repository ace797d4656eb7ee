"""What an export format is; each is the object of an entry point ``vmlab.exports``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vmlab.report.exports.tidy import Exported
from vmlab.system.entry_points import EXPORTS, Entry, Loaded, entries

Write = Callable[..., None]
"""Writes the runs (``Sequence[Exported]``) to a binary file; it takes the `ExportFormat.options` by name."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """What writes measurements, what writes samples, and the endings of the format's files, in lower case.

    `write` and `write_samples` are None for what the format does not hold. A format whose files are a folder has
    `write_folder` instead, which returns the number of files. `one_run` is a format that holds one whole run, and
    `options` are the keyword arguments that it takes besides.
    """

    endings: tuple[str, ...]
    write: Write | None = None
    write_samples: Write | None = None
    write_folder: Callable[[Exported, Path], int] | None = None
    one_run: bool = False
    options: frozenset[str] = frozenset()


def format_names() -> list[str]:
    """The names of all formats, vmlab's own first, without loading any."""
    return list(dict.fromkeys(entry.name for entry in entries(EXPORTS)))


@cache
def export_formats() -> Mapping[str, ExportFormat]:
    """All formats by name, vmlab's own first. One of another package that cannot be used is left out."""
    return Loaded(EXPORTS, _checked)


def _checked(entry: Entry, found: object) -> ExportFormat:
    """The format of an entry point. Raises TypeError or ValueError for what could not be written."""
    if not isinstance(found, ExportFormat):
        raise TypeError(f"{entry.place} is no ExportFormat")
    if entry.is_own:
        return found
    if found.options or (found.write is None) is (found.write_folder is None):
        raise ValueError("a format has either write or write_folder, and no options")
    return found


def of_ending(ending: str) -> str | None:
    """The name of the format whose files end so, vmlab's own first; None where there is none."""
    return next((name for name, one in export_formats().items() if ending.lower() in one.endings), None)
