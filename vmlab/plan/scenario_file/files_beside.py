"""The files beside a scenario that its workloads send to guests: read where the scenario lies, and kept with a run."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from vmlab.model.errors import UsageError
from vmlab.model.quantities import format_bytes
from vmlab.system.given_file import open_given
from vmlab.workloads.sent_file import GivenFile

MOST_BYTES = 2**20
"""Of all files of a scenario together, as each run keeps them."""
_NONE: Mapping[str, str] = MappingProxyType({})
_EXECUTABLE, _PLAIN = "x", "-"


class FilesBeside:
    """Each file is read once. Without a `folder` there are those alone that a run has `kept`."""

    def __init__(self, folder: Path | None, kept: Mapping[str, str] = _NONE) -> None:
        self._folder = folder
        self.kept = dict(kept)
        """What a run keeps of each file, by its path: a letter for its mode, and its content in base64."""

    def read(self, path: str) -> GivenFile:
        """The file at a path below the folder. Raises ValueError for what is none that can be sent."""
        if path not in self.kept:
            self.kept[path] = self._read(path)
        mode, content = self.kept[path][:1], self.kept[path][1:]
        return GivenFile(base64.b64decode(content), mode == _EXECUTABLE)

    def _read(self, path: str) -> str:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or len(path) > 200 or not path.isprintable():
            raise ValueError("needs a path below the scenario's folder, such as ./bench.sh")
        if self._folder is None:
            raise ValueError("is a file that was not kept with the scenario")
        target = _below(self._folder, path)
        room = MOST_BYTES - sum(len(one) * 3 // 4 for one in self.kept.values())
        try:
            with open_given(target, follow=False) as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read(room + 1)
        except (UsageError, OSError) as error:
            raise ValueError(str(error)) from error
        if len(content) > room:
            raise ValueError(f"is too large: the files of a scenario have {format_bytes(MOST_BYTES)} together at most")
        return (_EXECUTABLE if mode & 0o100 else _PLAIN) + base64.b64encode(content).decode()


def _below(folder: Path, path: str) -> Path:
    """The file that is meant, behind all links. Raises ValueError for none, and for one outside of the folder."""
    try:
        target = (folder / path).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        # Before Python 3.13 a link to itself is a RuntimeError.
        raise ValueError("is no file below the scenario's folder") from error
    if not target.is_relative_to(folder.resolve()):
        raise ValueError("leads out of the scenario's folder by a link")
    return target
