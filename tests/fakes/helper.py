"""A helper without a guest: it remembers what it is asked to run, and answers at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vmlab.guests.payload.helper_frames import decoded, encoded, packed, take


@dataclass
class ScriptedHelper:
    """Programs print `says` and end with status 0. One that is `mute` takes what comes, and never answers."""

    says: str = "ok\n"
    mute: bool = False
    ran: list[tuple[list[str], str]] = field(default_factory=list)
    _given: dict[int, bytes] = field(default_factory=dict)

    @asynccontextmanager
    async def at(self, path: Path) -> AsyncIterator[None]:
        """It answers at `path` while the block runs."""
        tasks: list[asyncio.Task[None]] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.append(asyncio.current_task())  # type: ignore[arg-type]
            buffer = bytearray()
            try:
                while piece := await reader.read(65536):
                    buffer += piece
                    for body in take(buffer):
                        for answer in () if self.mute else self._answers(body):
                            writer.write(packed({"s": body["s"], **answer}))
            except OSError:
                pass
            finally:
                writer.transport.abort()

        server = await asyncio.start_unix_server(serve, path)
        try:
            yield
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)

    def _answers(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        if "hello" in body:
            return [{"hello": 1}]
        number = body["id"]
        if "in" in body:
            self._given[number] = self._given.get(number, b"") + decoded(body["in"])
        elif "clock" in body:
            return [{"id": number, "ended": 0, "clock": time.time_ns()}]
        elif "run" in body:
            self.ran.append((body["run"], self._given.pop(number, b"").decode()))
            return [{"id": number, "ended": 0, "out": encoded(self.says.encode())}]
        return []
