"""The note of a run: a line of a user's own on what it was, in a small file in the run's folder, with which it goes."""

from __future__ import annotations

import os
from pathlib import Path

from vmlab.model.errors import UsageError
from vmlab.system.given_file import new_file, open_given, read_given

NOTE = "note.txt"
LONGEST_NOTE = 500
"""Characters, of any script."""
_MOST_BYTES = 4 * LONGEST_NOTE + 1


def checked_note(text: str) -> str:
    """A note as it is kept, without spaces around it. Raises UsageError, with one line, for one that cannot be kept."""
    note = text.strip()
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"a note has at most {LONGEST_NOTE} characters; this one has {len(note)}")
    try:
        note.encode()
    except UnicodeEncodeError:
        raise UsageError("a note is text in UTF-8; this one has other bytes") from None
    return note


def note_of(folder: Path) -> str:
    """The note of the run in `folder`; empty for none, and for a file that nobody can have written as one."""
    try:
        return checked_note(read_given(folder / NOTE, _MOST_BYTES, follow=False).decode())
    except (UsageError, UnicodeDecodeError):
        return ""


def write_note(folder: Path, note: str) -> None:
    """Keep a `checked_note` in the place of the one that was there; an empty one removes it. Raises OSError.

    Raises UsageError where a link, a folder or a special file stands in its place, which stays as it is.
    """
    path = folder / NOTE
    if os.path.lexists(path):
        with open_given(path, follow=False):
            pass
    elif not note:
        return
    with new_file(path) as file:
        file.write(f"{note}\n".encode() if note else b"")
        file.flush()
        os.fsync(file.fileno())
