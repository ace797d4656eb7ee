"""The SSH connection to a guest with Windows: commands as cmd.exe reads them, files over SFTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncssh

from vmlab.guests.channel import START_LINE, Channel
from vmlab.guests.host_start_line import HostStartLine
from vmlab.guests.ssh import SshShell, opened_connection
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import MOST_PRINTED

_FILE_SECONDS = 120.0
_PLAIN = re.compile(r"[A-Za-z0-9_.,:=/\\$+-]+", re.ASCII)
"""Words that cmd.exe and the C library of a program leave as they are."""
_UNQUOTABLE = re.compile(r'["%!\x00-\x1f]')
"""What has a meaning for cmd.exe within quotes too, or ends a command."""


def windows_command(argv: Sequence[str]) -> str:
    """The command line that OpenSSH for Windows hands to cmd.exe, its default shell, and that gives a program `argv`.

    Raises ValueError for a word that cannot be written so that both cmd.exe and the C library read it as it is.
    """
    return " ".join(_word(word) for word in argv)


def _word(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    if _UNQUOTABLE.search(word) or word.endswith("\\"):
        raise ValueError(f"{word[:80]!r} cannot be a word of a command of Windows")
    return f'"{word}"'


class WindowsShell(SshShell):
    """A guest with Windows, as `workloads.own_files.WindowsPlace` describes it. Its user is an administrator.

    Paths are written with slashes, such as ``C:/vmlab/disk``.
    """

    @classmethod
    async def log_in(cls, name: str, address: str, *, user: str, key: asyncssh.SSHKey, deadline: float) -> WindowsShell:
        """As `SshShell.log_in`."""
        return cls(name, address, await opened_connection(name, address, user, key, {"known_hosts": None}, deadline))

    def command_line(self, argv: Sequence[str]) -> str:
        """As cmd.exe reads it."""
        return windows_command(argv)

    async def launch(self, argv: list[str]) -> Channel:
        """The start line alone, which then stands on this side of the connection: Windows has no Python.

        Raises GuestError for any other program.
        """
        if argv[-1] != START_LINE:
            raise GuestError(f"{self.name}: Windows cannot run {argv[0]}")
        return HostStartLine(self.name, self._begin)

    async def _begin(self, argv: Sequence[str]) -> asyncssh.SSHClientProcess[str]:
        return await self._connection.create_process(
            self.command_line(argv), encoding="utf-8", errors="replace", stdin=asyncssh.DEVNULL
        )

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file; Windows has no use for its `mode`. Raises as `Shell.write`."""
        async with self._files(f"cannot write {path}") as files:
            await files.makedirs(_remote(path.rpartition("/")[0]), exist_ok=True)
            async with files.open(_remote(path), "wb") as file:
                await file.write(content)

    async def read(self, path: str) -> str:
        """A file's text, with a newline alone where Windows ends a line.

        Raises GuestError, also for more than `MOST_PRINTED` bytes, and DeadlineExceeded.
        """
        async with self._files(f"cannot read {path}") as files, files.open(_remote(path), "rb") as file:
            content: bytes = await file.read(MOST_PRINTED + 1)
        if len(content) > MOST_PRINTED:
            raise GuestError(f"{self.name}: {path} is larger than {format_bytes(MOST_PRINTED)}")
        return content.decode("utf-8", "replace").replace("\r\n", "\n")

    async def make_folder(self, path: str) -> None:
        """Make an empty folder, with those above it; what was in it is removed. Raises as `read`."""
        await self.remove_folder(path)
        async with self._files(f"cannot make {path}") as files:
            await files.makedirs(_remote(path))

    async def sizes(self, path: str) -> dict[str, int]:
        """The bytes of each file in a folder, by its name. Raises as `read`."""
        async with self._files(f"cannot list {path}") as files:
            listed = await files.readdir(_remote(path))
            return {str(one.filename): int(one.attrs.size or 0) for one in listed if one.filename not in (".", "..")}

    async def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it; one that is not there is no error. Raises as `read`."""
        async with self._files(f"cannot remove {path}") as files:
            if await files.exists(_remote(path)):
                await files.rmtree(_remote(path))

    @asynccontextmanager
    async def _files(self, what: str) -> AsyncIterator[Any]:
        try:
            async with asyncio.timeout(_FILE_SECONDS), self._connection.start_sftp_client() as files:
                yield files
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self.name}: {what} within {_FILE_SECONDS:g} s") from error
        except (OSError, asyncssh.Error) as error:
            raise GuestError(f"{self.name}: {what}: {error}") from error


def _remote(path: str) -> str:
    """The path as the SFTP server of Windows has it."""
    return f"/{path}"
