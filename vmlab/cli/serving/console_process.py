"""A console for one page: the process that draws it, by the protocol of Textual's own server."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Sequence

from aiohttp.web import WebSocketResponse
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

_END_SECONDS = 5.0
_LOCALE = "C.UTF-8"
"""A page can show every character, whatever the server's terminal can."""


class ConsoleProcess(AppService):
    """Starts `command` and passes on what it draws to `socket`."""

    def __init__(self, command: Sequence[str], socket: WebSocketResponse) -> None:
        # A shell is asked to start it, which makes itself the console.
        super().__init__(
            f"exec {shlex.join(command)}",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=self._over,
            download_manager=DownloadManager(),
        )
        self._socket = socket

    async def _over(self) -> None:
        await self._socket.close()

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment = super()._build_environment(width, height)
        for name in ("NO_COLOR", "VMLAB_ASCII"):
            environment.pop(name, None)
        return environment | {"LC_ALL": _LOCALE}

    async def end(self) -> None:
        """Have the console leave, as `q` does; one that does not is ended. Does nothing where it never began."""
        if self._process is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stop(), _END_SECONDS)
        if self._process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
