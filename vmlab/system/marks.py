"""The mark that makes a folder the lab's own: a file in it that names its owner and the folder's own inode.

A copy has another inode, and a renamed folder another name: the lab removes from neither. The device is not part of the
mark, because its number may change when the host boots.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from vmlab.system.naming import named
from vmlab.system.removal import MARK_FILE, remove_tree

__all__ = ["MARK_FILE", "make_marked", "mark", "opened", "owner_of"]


def make_marked(folder: Path, owner: str) -> None:
    """Make the new `folder`, for this user alone, and mark it as the property of `owner`.

    Raises OSError; then the folder does not exist, because nothing would ever remove one without a mark.
    """
    folder.mkdir(parents=True, mode=0o700)
    try:
        mark(folder, owner)
    except BaseException:
        remove_tree(folder)
        raise


def mark(folder: Path, owner: str) -> None:
    """Mark `folder`, which the caller has made. Raises OSError."""
    text = json.dumps({"owner": owner, "inode": folder.stat().st_ino})
    with named(folder / MARK_FILE):
        (folder / MARK_FILE).write_text(text, encoding="utf-8")


def owner_of(folder: Path) -> str | None:
    """The owner that the mark of `folder` names; None where it is a link, a copy, or was never marked."""
    with opened(folder) as (_, owner):
        return owner


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[tuple[int, str | None]]:
    """A descriptor of `folder` and its owner; -1 and None where it cannot be opened as a folder, or is a link."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield -1, None
        return
    try:
        yield descriptor, _owner(descriptor)
    finally:
        os.close(descriptor)


def _owner(folder: int) -> str | None:
    try:
        file = os.open(MARK_FILE, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(file, encoding="utf-8") as opened_file:
            mark = json.loads(opened_file.read(4096))
        owner, inode = mark["owner"], mark["inode"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return owner if isinstance(owner, str) and inode == os.fstat(folder).st_ino else None
